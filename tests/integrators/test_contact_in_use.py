"""Convex and nonsmooth steps where motions are used: events, records, sweeps, fits and problems."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import difflie as dl
from difflie.constraints import PointOnPlane
from difflie.sweep import Grid, Motions

G = 9.81


def puck(friction=0.5, *, stiffness=1e12, hard=False):
    """A point that slides along x and may leave the ground along z."""
    rail = dl.Body(name="rail", joint=dl.Prismatic(axis=(1, 0, 0)), mass=0.5)
    body = dl.Body(name="puck", joint=dl.Prismatic(axis=(0, 0, 1)), mass=2.0)
    system = dl.chain([rail, body])
    if hard:
        return dl.constrain(system, PointOnPlane(dl.Frame("puck"), dl.Frame(), friction=friction))
    ends = [(None, (0, 0, 0)), ("puck", (0, 0, 0))]
    return dl.attach(system, dl.PlaneContact(ends, stiffness, (0, 0, 1), friction=friction))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ConvexContact", "Moreau"])
def test_the_last_step_before_an_event_is_like_the_others(method):
    """Guards a last step that forgets the impulses: it lifted what slides, and forces were off."""
    system, dt = puck(hard=method == "Moreau"), 5e-3

    def run(x):
        def gate(t, q, v):
            return 0.3 + x[1] - q[0]

        v0 = jnp.stack([x[0], 0.0])
        return dl.simulate(system, [0.0, 0.0], v0, dt=dt, steps=60, method=method, until=gate)

    def end(x):
        made = run(x)
        return jnp.concatenate((made.q[-1], made.v[-1], made.t[-1:]))

    made = run(jnp.array([2.0, 0.0]))
    braking = 0.5 * G * 2.0 / 2.5
    speed = np.sqrt(4 - 2 * braking * 0.3)
    assert_allclose(made.v[-1], (speed, 0), atol=1e-2)
    assert abs(made.v[-1, 1]) < 1e-6
    assert_allclose(made.t[-1], (2 - speed) / braking, atol=dt)
    impulses = made.states.points if method == "ConvexContact" else made.states.contacts
    assert_allclose(impulses[-1, 0, 0], 2.0 * G * dt, rtol=1e-6)
    start, d = jnp.array([2.0, 0.0]), 1e-6
    slopes = np.stack([(end(start + d * e) - end(start - d * e)) / (2 * d) for e in np.eye(2)], 1)
    for mode in (jax.jacfwd, jax.jacrev):
        assert_allclose(jax.jit(mode(end))(start), slopes, atol=1e-6)


def test_deep_overlaps_are_pushed_out_at_a_limited_speed():
    """Guards the start in an overlap, which threw bodies up; what is held is held as before."""
    system = puck()
    speeds = {}
    for recovery in (0.5, 1.0):
        method = dl.ConvexContact(recovery=recovery)
        run = dl.simulate(system, [0.0, -0.2], [0.0, 0.0], dt=1e-3, steps=600, method=method)
        speeds[recovery] = float(run.v[:, 1].max())
        assert_allclose(run.q[-1, 1], 0, atol=2e-6)
        assert run.q[:, 1].max() < 1.1 * recovery**2 / (2 * G)
    assert_allclose(list(speeds.values()), list(speeds), rtol=2e-2)


@pytest.mark.parametrize("stiffness", [1e4, 1e12])
def test_a_step_without_an_impact_is_the_same_with_located_impacts(stiffness):
    """Guards laws that are soft by themselves: they were taken as a hundred times softer."""
    system = puck(0.0, stiffness=stiffness)

    def end(x, located):
        method = dl.ConvexContact(located=located)
        made = dl.step(system, x[:2], x[2:4], 0.01, method=method, control=x[4:])
        return jnp.concatenate((made.q, made.v))

    at = jnp.array([0.0, -1e-3, 0.5, -0.1, 1.0, -40.0])
    assert_allclose(end(at, True), end(at, False), atol=1e-9)
    slopes, plain = (jax.jit(jax.jacfwd(lambda x, k=k: end(x, k)))(at) for k in (True, False))
    assert_allclose(slopes, plain, atol=1e-7 * np.abs(plain).max())
    assert np.abs(plain[3, 1]) > 1


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ConvexContact", "Moreau"])
def test_sweeps_over_friction_have_derivatives(method):
    """Guards sweeps: how far a puck slides, v^2 / 2 a, and its slope by the friction."""
    hard = method == "Moreau"
    name = "constraints/0/friction" if hard else "couplings/0/friction"
    motions = Motions(
        puck(hard=hard),
        q0=np.zeros(2),
        v0=np.array([1.0, 0.0]),
        dt=2e-3,
        steps=400,
        method=method,
        outputs=lambda system, run: {"way": run.q[-1, 0]},
    )
    friction = np.array([0.3, 0.5, 0.8])
    table = dl.sweep(motions, Grid({name: friction.tolist()}), gradient=True)
    assert (table["status"] == "done").all()
    way = 0.5 / (friction * G * 2.0 / 2.5)
    assert_allclose(table["way"], way, rtol=0.02)
    assert_allclose(table[f"d way / d {name}"], -way / friction, rtol=0.02)
