"""A hop whose times are not prescribed, through a contact that is soft at first."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import difflie as dl
from difflie import control as dc
from difflie.control.discretization import Discretization, Point

STAND = 0.42


def problem(stiffness, margin):
    """A leg that stands on the ground, to be 0.9 m high at rest after 0.8 s."""
    up = dl.Prismatic(axis=(0, 0, 1))
    trunk = dl.Body(name="trunk", joint=up, mass=2.0)
    foot = dl.Body(name="foot", joint=up, mass=0.2)
    sole = dl.Sphere(dl.Frame("foot", (0, 0, -0.4)), 0.02)
    leg = dl.attach(dl.chain([trunk, foot]), dl.Drive("foot"))
    leg = leg.with_shapes({"sole": sole, "ground": dl.Plane()})
    law = {"stiffness": stiffness, "margin": margin, "dissipation": 0.5}
    return dc.Problem(
        dl.touching(leg, "ground", "sole", **law),
        *([STAND, 0.0], [0.0, 0.0]),
        dt=0.02,
        steps=40,
        running=[dc.Effort(1e-4)],
        final=[dc.State([0.9, 0.0], weight=1e3)],
        limits=dc.Limits(u_lower=-300.0, u_upper=300.0),
        method="ConvexContact",
    )


@pytest.mark.slow
def test_a_leg_hops_without_a_schedule():
    """Guards problems of control with contacts: the plan, and its motion with a stiff one."""
    plan = None
    for stiffness, margin in ((1e3, 0.05), (1e4, 0.01), (1e6, 0.0)):
        plan = dc.solve(problem(stiffness, margin), guess=plan)
        assert plan.result.converged
    assert_allclose(plan.q[-1], (0.9, 0), atol=1e-3)
    height = np.asarray(plan.q).sum(axis=1) - STAND
    assert height[:10].max() < 1e-3
    assert height[-3:].min() > 0.2
    assert height.min() > -2e-3


@pytest.mark.slow
def test_derivatives_of_a_step_of_the_problem():
    """Against differences, in both modes: standing, landing and flying."""
    knots = Discretization.of(problem(1e4, 0.02))

    def step(x):
        end = knots.step(Point(x[:2], x[2:4], jnp.zeros(0)), x[4:], jnp.zeros(()))
        return jnp.concatenate((end.q, end.v))

    at = jnp.array(
        [
            [STAND - 1e-3, 0, -0.1, 0.2, -40],
            [STAND + 0.01, 0, -0.8, 0, -10],
            [STAND + 0.2, 0.1, -0.8, 0, -10],
        ]
    )
    forward, reverse = (jax.jit(jax.vmap(mode(step)))(at) for mode in (jax.jacfwd, jax.jacrev))
    both = [jax.vmap(lambda d, s=s: jax.vmap(step)(at + s * d))(1e-6 * jnp.eye(5)) for s in (1, -1)]
    slopes = np.moveaxis(np.asarray(both[0] - both[1]) / 2e-6, 0, -1)
    assert_allclose(forward, slopes, atol=1e-6)
    assert_allclose(reverse, forward, atol=1e-10)
