"""Receding horizons in closed loop, alone and within `simulate`."""

import jax.numpy as jnp
import numpy as np
import pytest
from machines import swing

import difflie as dl
from difflie import control as dc


def mpc(iterations=2):
    problem = swing(
        steps=25, running=[dc.State([0.3], jnp.array([10.0, 0.1])), dc.Effort(1e-5)], final=[]
    )
    return dc.Receding(problem, dc.FDDP(iterations=iterations))


def test_a_closed_loop_reaches_its_goal():
    """Against an unknown torque, and to a goal that is given at the sample."""
    controller = mpc()
    system, q, v = controller.problem.system, jnp.zeros(1), jnp.zeros(1)
    memory = controller.start(q, v)
    assert memory.result.converged
    for _ in range(60):
        u, memory = controller.step(memory, q, v)
        q, v, _ = dl.step(system, q, v, 0.05, control=u + 0.05, method="SemiImplicitEuler")
    np.testing.assert_allclose(q, 0.3, atol=0.05)
    np.testing.assert_allclose(v, 0.0, atol=0.01)


@pytest.mark.slow
def test_another_goal_is_given_at_a_sample():
    goal = dl.se3.exp(jnp.array([0.0, 0.4, 0.0, 0.0, 0.0, 0.0]))
    problem = swing(running=[dc.Pose("rod", jnp.eye(4)), dc.Effort(1e-3)], final=[])
    controller = dc.Receding(problem, dc.FDDP(iterations=20))
    memory = controller.start(problem.q0, problem.v0)
    still, _ = controller.step(memory, problem.q0, problem.v0)
    moved, _ = controller.step(memory, problem.q0, problem.v0, target=goal)
    np.testing.assert_allclose(still, 0.0, atol=1e-6)
    assert moved[0] > 0.1


@pytest.mark.slow
def test_within_a_simulation():
    """As a sampled controller with memory, at a tenth of the rate of the time steps."""
    controller = mpc()
    run = dl.simulate(
        controller.problem.system,
        [0.0],
        [0.0],
        dt=5e-3,
        steps=300,
        control=dl.Sampled(controller, 20.0),
    )
    np.testing.assert_allclose(run.q[-1], 0.3, atol=0.02)
    held = np.asarray(run.u[:300]).reshape(30, 10)
    np.testing.assert_allclose(np.ptp(held, axis=1), 0, atol=1e-12)
