"""Fits of torques in few rows: the same fit as in all rows, where torques are linear."""

import dataclasses
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie import identify as di
from difflie.identify import search
from difflie.identify.search import in_few_rows

ARM = dl.load(Path(dl.__file__).parent / "data" / "arm7.urdf")
FREE = ["link*/inertial", "*/damping", "*/friction"]


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    t = 0.01 * np.arange(300)
    w = np.array((2.0, 3.1, 2.3, 4.2, 3.7, 5.3, 4.5))
    q, v, a = (0.8 * w**k * np.sin(np.outer(t, w) + k * np.pi / 2) for k in range(3))
    true = ARM.replace(damping=np.full(7, 0.5), friction=np.full(7, 0.2))
    silent = di.Recording("sines", t, q, v, a, np.zeros_like(q))
    tau = np.asarray(di.InverseDynamics.of(true, [silent]).torques(true)).reshape(q.shape)
    tau = tau + 0.1 * rng.normal(size=q.shape)
    tau[50:60, 3] = np.nan
    return di.InverseDynamics.of(ARM, [dataclasses.replace(silent, tau=tau)], 0.1)


@pytest.mark.slow
def test_the_fit_is_that_of_all_rows(problem, monkeypatch):
    """Cost, values and errors; with a prior near the file where torques tell nothing."""
    parameters = dl.Parameters(ARM, FREE)
    problems = problem, di.NominalPrior.of(ARM, 10.0)
    few = di.fit(parameters, problems)
    monkeypatch.setattr(search, "_MANY", 10**6)
    many = di.fit(parameters, problems)
    assert few.converged
    assert np.isclose(few.cost, many.cost, rtol=1e-7)
    scale = few.standard_errors + 1e-9
    assert np.abs((few.values - many.values) / scale).max() < 0.02
    assert np.allclose(few.standard_errors, many.standard_errors, rtol=1e-2)


@pytest.mark.slow
def test_the_sum_of_squares_is_that_of_all_rows(problem):
    parameters = dl.Parameters(ARM, FREE)
    (few,) = in_few_rows(parameters, (problem,))
    assert len(few.target) < 110
    for shift in (0.0, 0.3):
        system = parameters.system_at(parameters.start + shift)
        squares = [float(jnp.sum(p.residual(system, p.own) ** 2)) for p in (few, problem)]
        assert np.isclose(*squares, rtol=1e-10)


@pytest.mark.parametrize("more", ["*/friction_velocity", "joint3/position"])
def test_other_numbers_keep_all_rows(problem, more):
    parameters = dl.Parameters(ARM, [*FREE, more])
    assert in_few_rows(parameters, (problem,)) == (problem,)
