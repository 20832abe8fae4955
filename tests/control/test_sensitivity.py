"""Derivatives of optima and of solutions against problems solved again."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from machines import move, pendulum, slider, swing

from difflie import control as dc

SLOW = pytest.mark.slow
TIGHT = dc.FDDP(tolerance=1e-11, exact=True)


def check(problem, step=1e-4, at=1.0, solver=TIGHT):
    """The cost to 1e-7, controls and states to 1e-6, forward and reverse, of a number near 1."""
    base = dc.solve(problem(at), solver)
    assert base.result.converged
    above, below = (dc.solve(problem(at + s * step), solver, base) for s in (1, -1))

    def made(number):
        plan = dc.solve(problem(number), solver, base)
        return plan.cost, plan.u, plan.q, plan.t[-1]

    difference = [(getattr(above, n) - getattr(below, n)) / (2 * step) for n in ("cost", "u", "q")]
    forward = jax.jit(jax.jacfwd(made))(at)
    for value, reference, rtol in zip(forward, difference, (1e-7, 1e-6, 1e-6), strict=False):
        scale = np.linalg.norm(reference)
        np.testing.assert_allclose(value, reference, atol=rtol * scale)
    time = (above.t[-1] - below.t[-1]) / (2 * step)
    np.testing.assert_allclose(forward[3], time, rtol=1e-5, atol=1e-7)
    weights = np.random.default_rng(0).standard_normal(forward[1].shape)

    # Of the cost alone and of the controls alone, in one program.
    def sums(number, share):
        cost, u, *_ = made(number)
        return share * cost + (1 - share) * jnp.sum(weights * u)

    reverse = jax.jit(jax.vmap(jax.grad(sums), (None, 0)))(at, jnp.array([1.0, 0.0]))
    np.testing.assert_allclose(reverse[0], forward[0], rtol=1e-9)
    np.testing.assert_allclose(reverse[1], jnp.sum(weights * forward[1]), rtol=1e-9)


@pytest.mark.thorough
def test_the_mass_of_a_swinging_rod():
    """With a box that is active at some knots, and that moves."""
    box = lambda most: dc.Limits(u_lower=-4.0 * most, u_upper=4.0 * most)  # noqa: E731
    check(lambda x: swing(pendulum(x), limits=box(x**2)))


@SLOW
def test_a_limit_of_the_velocity():
    """A bound of a state is active at some knots; it moves as well."""
    limits = lambda v: dc.Limits(u_lower=-6.0, u_upper=6.0, v=5.0 * jnp.ones(1) * v)  # noqa: E731
    check(lambda most: swing(limits=limits(most)))


@SLOW
def test_an_equality_at_the_end():
    check(
        lambda mass: swing(pendulum(mass), running=[dc.Effort(0.1)], final=[dc.ReachState([3.0])])
    )


@SLOW
def test_a_free_duration():
    check(
        lambda mass: swing(
            pendulum(mass),
            running=[dc.Effort(0.1)],
            final=[dc.ReachState([jnp.pi]), dc.Duration(0.1)],
            duration=(0.5, 4.0),
            limits=dc.Limits(),
        )
    )


@SLOW
def test_the_start_the_goal_and_weights():
    """Numbers of the problem besides those of the machine."""
    end = lambda x: [dc.State(jnp.array([3.0]) * x, 100.0 * x)]  # noqa: E731
    start = lambda x: jnp.array([0.3]) * (x - 0.5)  # noqa: E731
    check(lambda x: swing(limits=dc.Limits(), final=end(x)).replace(q0=start(x)))


@pytest.mark.slow
def test_a_block_in_closed_form():
    """The effort of a move grows with the square of the mass, the controls with the mass."""

    def solved(mass):
        plan = dc.solve(move(20).replace(system=slider(mass)))
        return plan.cost, plan.u

    batch = jax.jit(jax.vmap(jax.value_and_grad(lambda m: solved(m)[0])))
    costs, slopes = batch(jnp.array([1.0, 2.0]))
    np.testing.assert_allclose(slopes, 2 * costs / jnp.array([1.0, 2.0]), rtol=1e-6)
    np.testing.assert_allclose(slopes[1], 2 * slopes[0], rtol=1e-6)
    # Outside of a compiled program, too.
    (_, u), (slope, change) = jax.jvp(solved, (1.0,), (1.0,))
    np.testing.assert_allclose(slope, slopes[0], rtol=1e-6)
    np.testing.assert_allclose(change, u, atol=1e-5)


def push(x, solver):
    """The least squared force that brings a block of the mass x_1 from x_0 to 1, as a cost."""
    problem = dc.Problem(
        *(slider(x[1]), x[:1], [0.0]),
        dt=0.1,
        steps=6,
        running=[dc.Effort(1.0)],
        final=[dc.ReachState(jnp.ones(1))],
    )
    return dc.solve(problem, solver).cost


@pytest.mark.slow
def test_the_second_derivative_of_a_cost():
    """It grows with (1 - q0)^2, in closed form; a solution that does not move would give 0."""
    cost = lambda q: push(jnp.array([q, 1.5]), dc.InteriorPoint())  # noqa: E731
    second = jax.jit(jax.jacfwd(jax.grad(cost)))(0.2)
    np.testing.assert_allclose(second, 2 * cost(0.2) / 0.8**2, rtol=1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "solver", [pytest.param(dc.FDDP(), marks=pytest.mark.thorough), dc.InteriorPoint()], ids=str
)
def test_second_derivatives_of_the_cost_in_all_nestings(solver):
    """By start and mass: the cost is c m^2 (1 - q0)^2."""
    cost = lambda x: push(x, solver)  # noqa: E731
    x = jnp.array([0.2, 1.5])
    value = cost(x)
    # Of c m^2 (1 - q)^2, c = value / (m (1 - q))^2.
    right = 2 * value * np.array([[1 / 0.8**2, -2 / (0.8 * 1.5)], [-2 / (0.8 * 1.5), 1 / 1.5**2]])
    for outer, inner in [
        (jax.jacrev, jax.jacrev),
        (jax.jacfwd, jax.jacfwd),
        (jax.jacrev, jax.jacfwd),
    ]:
        np.testing.assert_allclose(outer(inner(cost))(x), right, rtol=1e-6)
    # The fourth, of the square: the cost itself moves as well where it is multiplied.
    slope = value * np.array([-2 / 0.8, 2 / 1.5])
    square = jax.jacfwd(jax.jacrev(lambda x: cost(x) ** 2))(x)
    np.testing.assert_allclose(square, 2 * value * right + 2 * np.outer(slope, slope), rtol=1e-6)


@SLOW
def test_second_derivatives_of_a_plan_with_bounds():
    """Costs and controls of a swing with an active box, against differences of first ones."""
    box = dc.Limits(u_lower=-4.0, u_upper=4.0)

    def made(x):
        plan = dc.solve(swing(pendulum(x), limits=box, steps=12), TIGHT)
        return jnp.concatenate((plan.cost[None], plan.u[:, 0]))

    step = 1e-4
    first = jax.jit(jax.jacfwd(made))
    difference = (first(1.0 + step) - first(1.0 - step)) / (2 * step)
    second = jax.jacfwd(jax.jacfwd(made))(1.0)
    np.testing.assert_allclose(second, difference, rtol=0, atol=1e-5 * np.abs(difference).max())


def test_the_cost_of_linear_controls_is_that_of_the_segments():
    """A quarter turn in T by the least squared torque costs 6 J^2 a^2 / T^3 at any step."""
    problem = dc.Problem(
        *(slider(0.7), [0.0], [0.0]),
        dt=0.5,
        steps=8,
        running=[dc.Effort(1.0)],
        final=[dc.ReachState(jnp.array([np.pi / 2]))],
        interpolation="linear",
        method="RKMK4",
    )
    plan = dc.solve(problem, dc.InteriorPoint())
    assert plan.result.converged
    np.testing.assert_allclose(plan.cost, 6 * (0.7 * np.pi / 2) ** 2 / 4.0**3, rtol=1e-8)
    # Nothing is gained by a last control that costs nothing.
    np.testing.assert_allclose(plan.u[-1] - plan.u[-2], plan.u[1] - plan.u[0], rtol=1e-5)


@pytest.mark.slow
def test_a_plan_that_did_not_converge_has_no_derivatives():
    """NaN, with one warning, where the search was cut off; the cost is still a number."""
    cost = lambda x: dc.solve(swing(pendulum(x), steps=12), dc.FDDP(iterations=2)).cost  # noqa: E731
    with pytest.warns(UserWarning, match="derivatives of such a plan are NaN") as caught:
        value, slope = jax.value_and_grad(cost)(1.0)
    assert np.isfinite(value) and np.isnan(slope)
    assert len([w for w in caught if "NaN" in str(w.message)]) == 1
