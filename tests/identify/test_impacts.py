"""Contacts from tosses: numbers of a simulated cube, and of a measured one."""

import importlib
from pathlib import Path

import jax
import numpy as np
import pytest

import difflie as dl
from difflie import identify as di
from difflie.constraints import PointOnPlane

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"
SPREAD = np.repeat([1e-3, 1e-4], 3)
FREE = [
    dl.Parameter([f"box/half_sizes_{axis}" for axis in "xyz"], tied=True),
    "contacts/friction",
    "contacts/dissipation",
]


def cube(half_edge, friction, dissipation):
    """A cube of 370 g that falls on the ground."""
    body = dl.Body(name="cube", joint=dl.Free(), mass=0.37, inertia=np.eye(3) * 8e-4)
    shapes = {"box": dl.Box("cube", (half_edge,) * 3), "ground": dl.Plane()}
    law = {"stiffness": 2e4, "dissipation": dissipation, "slip_velocity": 0.03}
    system = dl.chain([body]).with_shapes(shapes)
    return dl.touching(system, "ground", "box", friction=friction, **law)


@pytest.mark.slow
def test_numbers_of_simulated_tosses_are_found():
    """Of four tosses in rows of 6 ms with tracking noise: all within three standard errors."""
    truth, rng = np.array([0.05, 0.2, 2.0]), np.random.default_rng(0)
    real, rough = cube(*truth), cube(0.051, 0.15, 1.5)
    logs = []
    for _ in range(4):
        q0 = np.append(rng.normal(size=4), (0.0, 0.0, 0.13))
        q0[:4] /= np.linalg.norm(q0[:4])
        v0 = np.append(3 * rng.normal(size=3), 0.5 * rng.normal(size=3))
        run = dl.simulate(real, q0, v0, dt=6e-4, steps=400, save_every=10)
        noise = SPREAD * rng.normal(size=run.v.shape)
        q = jax.vmap(lambda *x: dl.integrate(real, *x))(run.q, noise)
        logs.append(di.Recording("toss", *(np.asarray(x) for x in (run.t, q, run.v))))
    more = {"velocity": np.repeat([0.3, 0.03], 3), "free": True, "substeps": 10}
    problem = di.Shooting.of(rough, logs, window=10, position=SPREAD, **more)
    tolerant = di.LevenbergMarquardt(tolerance=1e-4)
    parameters = dl.Parameters(rough, FREE)
    found = di.fit(parameters, problem, loss=di.Cauchy(3.0), minimiser=tolerant)
    assert found.converged
    assert (np.abs(found.values - truth) < 3 * found.standard_errors).all()
    assert (found.standard_errors < 0.05 * truth).all()


def puck(friction, restitution):
    """A point that slides along x and bounces along z."""
    rail = dl.Body(name="rail", joint=dl.Prismatic(axis=(1, 0, 0)), mass=0.5)
    body = dl.Body(name="puck", joint=dl.Prismatic(axis=(0, 0, 1)), mass=2.0)
    ends = dl.Frame("puck"), dl.Frame()
    foot = PointOnPlane(*ends, friction=friction, restitution=restitution)
    return dl.constrain(dl.chain([rail, body]), foot)


@pytest.mark.slow
@pytest.mark.parametrize("method", [dl.Moreau(located=True), dl.ConvexContact(located=True)])
def test_hard_contacts_are_found_from_tosses(method):
    """Friction and restitution, from rows of 10 ms with noise by which starts overlap, too."""
    truth, rng = np.array([0.2, 0.6]), np.random.default_rng(0)
    real, rough, logs = puck(*truth), puck(0.1, 0.75), []
    for _ in range(3):
        q0, v0 = [0.0, rng.uniform(0.05, 0.15)], rng.uniform((1, -1), (2, 0.5))
        run = dl.simulate(real, q0, v0, dt=2e-3, steps=300, save_every=5, method=method)
        q = run.q + 1e-4 * rng.normal(size=run.q.shape)
        logs.append(di.Recording("toss", *(np.asarray(x) for x in (run.t, q, run.v))))
    problem = di.Shooting.of(
        *(rough, logs),
        **{"window": 12, "position": 1e-4, "velocity": 0.05, "free": True, "substeps": 5},
        method=method,
    )
    parameters = dl.Parameters(rough, ["constraints/0/friction", "constraints/0/restitution"])
    found = di.fit(parameters, problem, loss=di.Cauchy(3.0))
    assert found.converged
    assert (np.abs(found.values - truth) < 3 * found.standard_errors).all()
    assert (found.standard_errors < 0.01 * truth).all()


@pytest.mark.thorough
@pytest.mark.skipif(not (DATA / "tossed_cube").is_dir(), reason=f"no measured data in {DATA}")
def test_tosses_of_a_real_cube_predict_others_better_than_published_values(monkeypatch):
    """Of half the tosses of the experiment; friction and half edge as those of all of them."""
    monkeypatch.syspath_prepend(ROOT / "experiments")
    study = importlib.import_module("tossed_cube_impacts")
    seen, unseen = (study.tosses(DATA, use) for use in ("fit", "validate"))
    start = study.cube(study.HALF_EDGE, 3e-3, study.FRICTION, 5e4, 2.0)
    found = study.fitted(start, seen[::2], study.WINDOW, 40)
    half_edge, friction = found.values[0] + found.values[1], found.values[2]
    assert abs(half_edge - 0.0518) < 4e-4
    assert abs(friction - 0.181) < 0.02
    scores = [study.predicted(s, unseen) for s in (study.published(5e4), found.system)]
    for unit in ("deg", "mm"):
        published, ours = (score[unit] for score in scores)
        assert ours.mean() < published.mean()
        assert np.median(ours) < np.median(published)
