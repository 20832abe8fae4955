"""Friction driven by the reactions of joints, against closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq

import difflie as dl
from difflie.constraints import Friction, PrismaticConstraint, RevoluteConstraint

MASS, INERTIA, G = 2.0, 0.03, 9.81
BODY = dl.tree(
    [dl.Body(name="body", joint=dl.Free(), mass=MASS, inertia=INERTIA * np.eye(3))], name="body"
)
X, Y = (1.0, 0, 0), (0, 1.0, 0)


def hinged(point, coefficient=0.004, velocity=1e-6):
    ground, own = dl.Frame(None, point, axis=Y), dl.Frame("body", point, axis=Y)
    return dl.constrain(
        BODY, RevoluteConstraint(ground, own, friction=Friction(coefficient, velocity))
    )


def sliding(axis, coefficient=0.2):
    frames = dl.Frame(axis=axis), dl.Frame("body", axis=axis)
    return dl.constrain(BODY, PrismaticConstraint(*frames, friction=Friction(coefficient, 1e-6)))


def acceleration(system, v):
    return dl.constrained_dynamics(system, system.neutral(), v, jnp.zeros(6))


@pytest.mark.slow("3.0")
@pytest.mark.parametrize("turn", [3.0, -3.0])
def test_the_weight_brakes_a_wheel(turn):
    a, reaction = acceleration(hinged((0, 0, 0)), jnp.array([0, turn, 0, 0, 0, 0]))
    assert_allclose(a[1], -np.sign(turn) * 0.004 * MASS * G / INERTIA, rtol=1e-9)
    assert_allclose(np.linalg.norm(reaction[:3]), MASS * G, rtol=1e-12)


def test_the_reaction_contains_what_friction_does():
    """A rod that falls through the horizontal: friction takes some of the force in its hinge."""
    arm, w, c = 0.3, 2.0, 0.05
    a, reaction = acceleration(hinged((arm, 0, 0), c), jnp.array([0, w, 0, 0, 0, w * arm]))
    whole = INERTIA + MASS * arm**2

    def fall(rho):
        return -(MASS * G * arm + c * rho) / whole

    rho = brentq(lambda x: np.hypot(arm * w**2, G + arm * fall(x)) * MASS - x, 0, 1e3, xtol=1e-14)
    assert_allclose(np.linalg.norm(reaction[:3]), rho, rtol=1e-9)
    assert_allclose(a[1], fall(rho), rtol=1e-9)


@pytest.mark.slow("0.0--1.9620000000000002")
@pytest.mark.parametrize(("angle", "expected"), [(0.0, -0.2 * G), (0.5, None)])
def test_a_slider_is_braked_by_what_presses_it(angle, expected):
    axis = (np.cos(angle), 0, -np.sin(angle))
    a, _ = acceleration(sliding(axis), jnp.array([0, 0, 0, *axis]))
    if expected is None:
        expected = G * (np.sin(angle) - 0.2 * np.cos(angle))
    assert_allclose(a[3:] @ np.asarray(axis), expected, rtol=1e-9)


@pytest.mark.slow
def test_a_wheel_slows_down():
    system = hinged((0, 0, 0), 0.002, 1e-2)
    v = jnp.array([0, 1.0, 0, 0, 0, 0])
    run = dl.simulate(system, system.neutral(), v, dt=2e-3, steps=50)
    assert_allclose(run.v[-1, 1], 1 - 0.002 * MASS * G / INERTIA * 0.1, rtol=1e-3)


@pytest.mark.slow
def test_derivatives():
    v = jnp.array([0, 1.0, 0, 0, 0, 0.3])

    @jax.jit
    def fall(coefficient):
        system = hinged(jnp.array([0.3, 0, 0]), coefficient, 1e-2)
        return acceleration(system, v)[0][1]

    c, step = jnp.array(0.02), 1e-5
    difference = (fall(c + step) - fall(c - step)) / (2 * step)
    assert_allclose(jax.jit(jax.grad(fall))(c), difference, rtol=1e-6)
    assert_allclose(jax.jvp(fall, (c,), (jnp.array(1.0),))[1], difference, rtol=1e-6)


@pytest.mark.slow
def test_at_rest_and_without_load_nothing_is_singular():
    system = hinged((0, 0, 0)).replace(gravity=jnp.zeros(3))

    def push(v):
        return acceleration(system, v)[0][1]

    for v in (jnp.zeros(6), jnp.array([0, 1.0, 0, 0, 0, 0])):
        assert np.all(np.isfinite(jax.grad(push)(v)))
    assert push(jnp.array([0, 1.0, 0, 0, 0, 0])) == 0


def test_bad_input():
    with pytest.raises(ValueError, match="friction: coefficient is -1"):
        hinged((0, 0, 0), -1.0)
    system = hinged((0, 0, 0))
    with pytest.raises(ValueError, match="has no friction in joints"):
        dl.simulate(system, system.neutral(), jnp.zeros(6), method=dl.Moreau())
