"""Row by row as all at once: against numpy's least squares, and a payload against what it is."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import difflie as dl
from difflie import identify as di

ROWS, P = 60, 5


def rows(seed=0, dtype=float):
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(ROWS, P)) * 2.0 ** np.arange(P)
    deviations = rng.uniform(0.1, 1.0, ROWS)
    torques = columns @ np.arange(1.0, P + 1) + deviations * rng.normal(size=ROWS)
    return tuple(jnp.asarray(x, dtype) for x in (columns, torques, deviations))


def unknown(dtype=float):
    return di.RecursiveLeastSquares.of(jnp.zeros(P, dtype), jnp.full(P, jnp.inf, dtype))


def worked_through(known, columns, torques, deviations, size=4):
    parts = [x.reshape(-1, size, *x.shape[1:]) for x in (columns, torques, deviations)]
    return jax.lax.scan(lambda known, part: (known.updated(*part), None), known, parts)[0]


@pytest.mark.parametrize(("dtype", "tolerance"), [(jnp.float64, 1e-12), (jnp.float32, 2e-4)])
def test_as_all_rows_at_once(dtype, tolerance):
    """Numbers, their covariance and the squares of what is left."""
    columns, torques, deviations = rows(dtype=dtype)
    known = jax.jit(worked_through)(unknown(dtype), columns, torques, deviations)
    w, y = (np.asarray(x, float) for x in (columns, torques))
    s = np.asarray(deviations, float)
    expected, squares, *_ = np.linalg.lstsq(w / s[:, None], y / s, rcond=None)
    assert np.allclose(known.estimate(), expected, rtol=tolerance)
    assert np.isclose(known.squares, squares[0], rtol=10 * tolerance)
    inverse = np.linalg.inv((w / s[:, None]).T @ (w / s[:, None]))
    assert np.allclose(known.covariance(), inverse, rtol=10 * tolerance, atol=0)


def test_a_prior_counts_as_rows():
    columns, torques, deviations = rows()
    mean, own = jnp.arange(P) + 2.0, jnp.full(P, 0.3)
    known = worked_through(di.RecursiveLeastSquares.of(mean, own), columns, torques, deviations)
    w = np.concatenate((columns / deviations[:, None], np.diag(1 / own)))
    y = np.concatenate((torques / deviations, mean / own))
    assert np.allclose(known.estimate(), np.linalg.lstsq(w, y, rcond=None)[0], rtol=1e-12)


def test_gaps_count_for_nothing():
    columns, torques, deviations = rows()
    full = worked_through(unknown(), columns[:40], torques[:40], deviations[:40])
    torques = torques.at[40:50].set(jnp.nan)
    deviations = deviations.at[50:].set(jnp.inf)
    gaps = worked_through(unknown(), columns, torques, deviations)
    assert np.allclose(full.estimate(), gaps.estimate(), rtol=1e-12)
    assert np.isclose(full.squares, gaps.squares, rtol=1e-10)


def test_numbers_that_change_are_followed_by_forgetting():
    rng = np.random.default_rng(1)
    columns = jnp.asarray(rng.normal(size=(400, 2)))
    true = jnp.where(jnp.arange(400)[:, None] < 200, jnp.array((1.0, 2.0)), jnp.array((3.0, -1.0)))
    torques = jnp.sum(columns * true, axis=1)

    def last(forgetting):
        known = di.RecursiveLeastSquares.of(jnp.zeros(2), jnp.full(2, 1e3))
        parts = columns[:, None], torques[:, None], jnp.ones((400, 1))

        def step(known, part):
            return known.updated(*part, forgetting=forgetting), None

        return jax.lax.scan(step, known, parts)[0].estimate()

    assert np.allclose(last(0.9), (3.0, -1.0), atol=1e-6)
    assert not np.allclose(last(1.0), (3.0, -1.0), atol=0.1)


def test_a_thousand_at_once():
    """A batch of estimators is one with a leading axis."""
    rng = np.random.default_rng(2)
    true = rng.normal(size=(1000, 3))
    columns = rng.normal(size=(1000, 20, 3))
    torques = np.einsum("brp,bp->br", columns, true)

    @jax.jit
    @jax.vmap
    def fitted(columns, torques):
        known = di.RecursiveLeastSquares.of(jnp.zeros(3), jnp.full(3, jnp.inf))
        return known.updated(columns, torques, jnp.ones(20)).estimate()

    assert np.allclose(fitted(columns, torques), true, atol=1e-10)


@pytest.mark.slow
def test_derivatives():
    columns, torques, deviations = rows()

    def estimate(columns, torques):
        return worked_through(unknown(), columns, torques, deviations).estimate()

    size = 2.0 ** np.arange(P)
    check_grads(lambda w, y: estimate(w * size, y) * size, (columns / size, torques), 1, rtol=1e-5)


@pytest.mark.slow
def test_a_payload():
    """Mass, centre and inertia of what the last body carries, from torques along a motion."""
    arm = dl.load(Path(dl.__file__).parent / "data" / "arm7.urdf")
    rng = np.random.default_rng(3)
    body = arm.body_names.index("link7")
    bare = dl.inertial_parameters(arm)
    payload = jnp.array((0.7, 0.02, -0.03, 0.06, 4e-3, 1e-4, -2e-4, 5e-3, 3e-4, 3e-3))
    loaded = bare.at[body].add(payload).ravel()
    known = di.RecursiveLeastSquares.of(jnp.zeros(10), jnp.full(10, jnp.inf))
    for _ in range(12):
        q, v, a = jnp.asarray(rng.normal(size=(3, 7)))
        regressor = dl.inverse_dynamics_regressor(arm, q, v, a)
        rest = di.payload_rows(regressor, bare, body, regressor @ loaded)
        known = known.updated(*rest, jnp.ones(7))
    assert np.allclose(known.estimate(), payload, atol=1e-10)
