"""The interior point method, against quadratic programs of scipy, closed forms and FDDP."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize
from small_problems import around_a_pillar, block, lift, pendulum, straight_way

from difflie import control as dc

POINT = dc.InteriorPoint()


@pytest.mark.slow("40")
@pytest.mark.parametrize("steps", [20, 40])
def test_a_block_that_moves_by_itself_needs_no_search(steps):
    """The end is an equality: u = 6 - 12 t and cost 12, but for the step."""
    plan = dc.solve(block(steps), POINT)
    assert plan.result.converged and int(plan.result.iterations) <= 3
    t = np.arange(steps) / steps
    np.testing.assert_allclose(plan.u[:, 0], 6 - 12 * t, atol=6.5 / steps)
    np.testing.assert_allclose(plan.cost, 12, rtol=1.1 / steps**2 + 1e-9)
    np.testing.assert_allclose([plan.q[-1, 0], plan.v[-1, 0]], [1, 0], atol=1e-8)


@pytest.mark.slow
def test_limits_of_controls_and_states_against_a_quadratic_program():
    """Primal and dual: the multipliers are those of scipy's, positive at upper bounds."""
    n, most, fastest = 20, 5.5, 1.4
    limits = dc.Limits(u_lower=-most, u_upper=most, v=jnp.array([fastest]))
    plan = dc.solve(block(n, limits=limits), POINT)
    v = np.tril(np.ones((n, n))) / n
    ends = np.stack([v.sum(0) / n, v[-1]])
    found = minimize(
        lambda u: u @ u / n,
        np.zeros(n),
        jac=lambda u: 2 * u / n,
        bounds=[(-most, most)] * n,
        constraints=[
            {"type": "eq", "fun": lambda u: ends @ u - [1, 0], "jac": lambda u: ends},
            {"type": "ineq", "fun": lambda u: fastest - v @ u, "jac": lambda u: -v},
        ],
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 300},
    )
    u = np.asarray(plan.u[:, 0])
    np.testing.assert_allclose(u, found.x, atol=1e-6)
    along = np.concatenate([plan.multipliers[0][1:, 0], plan.multipliers[1][:1]])
    left = 2 * u / n + ends.T @ plan.multipliers[1][1:] + v.T @ along
    assert np.sum(np.abs(u) == most) > 1
    np.testing.assert_allclose(left[np.abs(u) < most], 0, atol=1e-7)
    assert np.all(left * u <= 1e-7) and along.min() >= 0 and along.max() > 0.1
    # What is not active has no multiplier.
    assert np.all((along == 0) | (np.abs(np.asarray(plan.v[1:, 0]) - fastest) < 1e-7))


@pytest.mark.slow
def test_least_time_is_bang_bang():
    """With |u| <= a the block is there after 2 sqrt(1 / a), for an even number of steps exactly."""
    problem = block(
        20,
        running=[],
        final=[dc.Duration(), dc.ReachState([1.0])],
        limits=dc.Limits(u_lower=-2.0, u_upper=2.0),
        duration=(0.3, 5.0),
    )
    plan = dc.solve(problem, POINT)
    np.testing.assert_allclose(plan.duration, 2 * np.sqrt(1 / 2), rtol=1e-9)
    np.testing.assert_allclose(plan.u[:, 0], np.repeat([2.0, -2.0], 10), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("exact", [False, True])
def test_a_path_around_an_obstacle_is_that_of_fddp(exact):
    """A bound that is no convex one."""
    problem = around_a_pillar()
    plan = dc.solve(problem, dc.InteriorPoint(exact=exact), straight_way(problem))
    other = dc.solve(problem, dc.FDDP(), straight_way(problem))
    assert plan.result.converged, str(plan.result)
    distance = np.hypot(plan.q[:, 0], plan.q[:, 1] - 0.1)
    np.testing.assert_allclose(distance.min(), 0.5, atol=1e-7)
    np.testing.assert_allclose(plan.cost, other.cost, rtol=1e-6)


@pytest.mark.slow
def test_a_batch_is_a_loop():
    """Eight starts at once, limits active: the same plans after as many iterations."""
    q0 = jnp.linspace(0.1, 0.8, 8)
    found = lambda q: dc.solve(pendulum(q), POINT)  # noqa: E731
    batch = jax.jit(jax.vmap(found))(q0)
    assert np.all(np.asarray(batch.result.status) == dc.Status.CONVERGED)
    one = jax.jit(found)
    for i in range(8):
        alone = one(q0[i])
        np.testing.assert_allclose(batch.u[i], alone.u, rtol=1e-7, atol=1e-7)
        assert batch.result.iterations[i] == alone.result.iterations


@pytest.mark.slow
def test_a_guess_that_is_a_plan_shortens_the_search():
    """Multipliers are used again, those of the controls too."""
    cold = dc.solve(pendulum(), POINT)
    warm = dc.solve(pendulum(0.101), POINT, cold)
    again = dc.solve(pendulum(0.101), POINT)
    np.testing.assert_allclose(warm.cost, again.cost, rtol=1e-8)
    assert 2 * warm.result.iterations < again.result.iterations


def test_what_cannot_be_says_where():
    """1 N does not bring the block there: it is off by 0.55 at least, in position or velocity."""
    plan = dc.solve(block(limits=dc.Limits(u_lower=-1.0, u_upper=1.0)), POINT)
    assert not plan.result.converged
    assert 0.55 < plan.result.kkt.violation < 0.8
    assert "the violation of a bound is 0." in str(plan.result)
    assert "at knot 40" in str(plan.result)


@pytest.mark.slow
def test_points_stay_on_motions_where_steps_are_strongly_curved():
    """From a guess far away, without bounds: gaps must not pay for cost."""
    plan = dc.solve(lift(), dc.InteriorPoint(exact=True))
    assert plan.result.converged, str(plan.result)
    other = dc.solve(lift(), dc.FDDP(), plan)
    np.testing.assert_allclose(plan.cost, other.cost, rtol=1e-8)
    assert np.max(np.abs(plan.gaps)) < 1e-8


@pytest.mark.slow
def test_in_single_precision():
    """Distances of active bounds are below the rounding of what is bounded."""
    limits = dc.Limits(u_lower=-4.5, u_upper=4.5)
    plan = dc.solve(block(dtype=jnp.float32, limits=limits), POINT)
    assert plan.u.dtype == jnp.float32 and plan.result.converged
    other = dc.solve(block(limits=limits), POINT)
    np.testing.assert_allclose(plan.cost, other.cost, rtol=1e-3)
    np.testing.assert_allclose(plan.u, other.u, atol=0.05)


@pytest.mark.slow
def test_the_cost_has_the_derivative_of_the_envelope_theorem():
    """Bounds active, against solutions of problems beside it."""
    problem = block(20, limits=dc.Limits(u_lower=-4.5, u_upper=4.5))
    cost = lambda q: dc.solve(problem.replace(q0=q), POINT).cost  # noqa: E731
    slope = jax.grad(cost)(jnp.zeros(1))
    h = jnp.array([1e-3])
    np.testing.assert_allclose(slope[0], (cost(h) - cost(-h)) / 2e-3, rtol=1e-7)


@pytest.mark.slow
def test_the_boxed_arm():
    """The optimum of Crocoddyl 3.2.1."""
    plan = dc.solve(boxed_arm(), POINT)
    np.testing.assert_allclose(plan.cost, 0.814251129455, rtol=1e-9)


@pytest.mark.slow
def test_an_arm_within_its_speeds():
    """Gauss-Newton and exact Hessian meet at limits of velocities and positions."""
    problem = boxed_arm()
    slow = jnp.array([0.65, 1.0, 0.94, 0.97, 0.33, 0.65, 1.97])
    of_file = dc.Limits.of(problem.system)
    limits = dc.Limits(of_file.q_lower, of_file.q_upper, slow, None, None)
    problem = problem.replace(limits=limits)
    first, second = (dc.solve(problem, dc.InteriorPoint(exact=exact)) for exact in (False, True))
    assert first.result.converged and second.result.converged
    np.testing.assert_allclose(first.cost, second.cost, rtol=1e-8)
    assert np.all(np.abs(first.v) <= slow + 1e-7) and np.sum(np.abs(first.v) > slow - 1e-6) > 20


def boxed_arm():
    from arm_reach import arm_reach

    return arm_reach(0.35)


def test_bounds_that_are_one_are_an_equality():
    """Also where they are so by their values alone."""
    end = dc.Bounded(lambda system, q, v, u, t: jnp.concatenate((q, v)), [1.0, 0.0], [1.0, 0.0])
    plan = dc.solve(block(final=[end]), POINT)
    np.testing.assert_allclose(plan.cost, dc.solve(block(), POINT).cost, rtol=1e-10)
