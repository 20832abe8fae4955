"""Plans carried out by simulations."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie import control as dc
from difflie.control.report import curves_of


@pytest.fixture(scope="module")
def pendulum():
    """A rod of 1 kg and 1 m about y, which hangs at zero, and a plan that stands it up."""
    rod = dl.Body(
        name="rod",
        joint=dl.Revolute(axis=(0.0, 1.0, 0.0)),
        mass=1.0,
        com=(0.0, 0.0, -0.5),
        inertia=np.diag([1.0, 1.0, 0.01]) / 12,
    )
    problem = dc.Problem(
        dl.chain([rod], name="pendulum"),
        jnp.zeros(1),
        jnp.zeros(1),
        dt=0.02,
        steps=50,
        running=[dc.Effort(1e-2)],
        final=[dc.State(jnp.array([jnp.pi]), 100.0)],
        method="RKMK4",
    )
    return problem, dc.solve(problem)


@pytest.mark.slow
def test_the_same_steps_give_the_plan(pendulum):
    """Guards the times and controls of the replay: without finer steps it is the plan itself."""
    problem, plan = pendulum
    run = dc.replay(problem, plan, method=dl.RKMK4(), finer=1)
    np.testing.assert_allclose(run.q, plan.q, atol=1e-7)
    np.testing.assert_allclose(run.v, plan.v, atol=1e-6)
    np.testing.assert_allclose(run.u[:-1], plan.u, atol=1e-6)
    assert run.result.messages() == ["completed: 50 steps, 1 s"]


def test_controls_alone_are_those_of_simulate(pendulum):
    problem, plan = pendulum
    run = dc.replay(problem, plan, method=dl.RKMK8(), finer=2, feedback=False)
    held = dl.simulate(
        problem.system,
        problem.q0,
        problem.v0,
        dt=0.01,
        steps=100,
        method=dl.RKMK8(),
        control=dl.ZeroOrderHold(plan.u, 2),
        save_every=2,
    )
    np.testing.assert_allclose(run.q, held.q, atol=1e-12)
    np.testing.assert_allclose(run.u, held.u, atol=1e-12)


@pytest.mark.slow
def test_pushes_have_the_time_of_the_plan(pendulum):
    """A push in the last tenth is that of `simulate`, and feedback resists it; numbers stay."""
    problem, plan = pendulum

    def late(t, q, v):
        return jnp.zeros((1, 6)).at[0, 1].set(jnp.where(t > 0.9, 3.0, 0.0))

    run = dc.replay(problem, plan, finer=2, feedback=False, wrench=late)
    start = problem.q0, problem.v0
    how = {"dt": 0.01, "steps": 100, "save_every": 2, "control": dl.ZeroOrderHold(plan.u, 2)}
    pushed = dl.simulate(problem.system, *start, **how, wrench=late)
    np.testing.assert_allclose(run.q, pushed.q, atol=1e-12)
    missed = [abs(run.q[-1, 0] - jnp.pi), abs(dc.replay(problem, plan, wrench=late).q[-1] - jnp.pi)]
    assert missed[0] > 0.01 and missed[1] < missed[0]
    constant = dc.replay(problem, plan, finer=2, feedback=False, wrench=late(1.0, None, None))
    always = dl.simulate(problem.system, *start, **how, wrench=late(1.0, None, None))
    np.testing.assert_allclose(constant.q, always.q, atol=1e-12)
    with pytest.raises(ValueError, match=r"wrench has shape \(50, 1, 6\), needed is \(1, 6\)"):
        dc.replay(problem, plan, wrench=jnp.zeros((50, 1, 6)))


def test_feedback_brings_a_wrong_machine_nearer_to_the_goal(pendulum):
    problem, plan = pendulum
    heavy = problem.system.replace(mass=1.05 * problem.system.bodies.mass)
    miss = [
        float(jnp.abs(dc.replay(problem, plan, system=heavy, feedback=f).q[-1, 0] - jnp.pi))
        for f in (True, False)
    ]
    assert miss[0] < 0.2 * miss[1]


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"interpolation": "linear"}, {"duration": (0.5, 2.0)}])
def test_linear_controls_and_free_durations(pendulum, options):
    """Guards what is held from knot to knot: the replay ends where the plan does."""
    problem = pendulum[0].replace(**options)
    if "duration" in options:
        problem = problem.replace(final=[*problem.final, dc.Duration(0.1)])
    plan = dc.solve(problem)
    run = dc.replay(problem, plan, finer=3)
    np.testing.assert_allclose(run.t, plan.t)
    np.testing.assert_allclose(run.q[-1], plan.q[-1], atol=1e-4)


def test_controls_stay_within_their_limits(pendulum):
    problem, plan = pendulum
    limits = dc.Limits(u_lower=jnp.array([-2.0]), u_upper=jnp.array([2.0]))
    run = dc.replay(replace(problem, limits=limits), plan)
    assert np.abs(run.u).max() == 2.0


@pytest.mark.slow
def test_a_replay_is_differentiable(pendulum):
    """By the numbers of the machine, in both modes, as differences have it."""
    problem, plan = pendulum

    def end(mass):
        return dc.replay(problem, plan, system=problem.system.replace(mass=mass)).q[-1, 0]

    mass, h = problem.system.bodies.mass, 1e-5
    slope = (end(mass + h) - end(mass - h)) / (2 * h)
    np.testing.assert_allclose(jax.grad(end)(mass)[0], slope, rtol=1e-6)
    np.testing.assert_allclose(jax.jacfwd(end)(mass)[0], slope, rtol=1e-6)


def test_curves_have_the_limits_of_their_entries(pendulum):
    problem, plan = pendulum
    limits = dc.Limits(q_lower=jnp.array([-1.0]), v=jnp.array([7.0]), u_upper=jnp.array([9.0]))
    q, v, u = curves_of(problem.replace(limits=limits), plan)
    assert (q.lower, q.upper, v.lower, v.upper) == (-1, np.inf, -7, 7)
    assert (u.lower, u.upper, u.held) == (-np.inf, 9, True)
    assert u.curve.values.shape == v.curve.values.shape == (51, 1)
