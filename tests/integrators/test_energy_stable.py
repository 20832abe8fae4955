"""The energy-stable step: closed forms, its energy balance, its derivatives, and its failures."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from planar import ROUTES, problem, two_links

from difflie.dynamics import planar_centres
from difflie.integrators.energy_stable import ConstrainedProblem, EnergyStable
from difflie.integrators.mean_gradients import DiscreteGradient, GaussMean

MEANS = (GaussMean(1), GaussMean(2), GaussMean(3), DiscreteGradient())
PHI, RATE = jnp.array((0.4, -1.1)), jnp.array((0.7, -1.9))


def point_on_a_circle(weight=0.0):
    return ConstrainedProblem(
        2.0 * jnp.eye(2), lambda q: jnp.sum(q * q, keepdims=True) - 1, lambda q: weight * q[1]
    )


@partial(jax.jit, static_argnums=(0, 5))
def motion(mean, chain, phi, rate, h, steps, force=0.0):
    """q, v (steps + 1, 2n) and whether all steps were solved."""
    made, method = problem(chain), EnergyStable(mean)
    q, v = planar_centres.centres(chain, phi), planar_centres.centre_velocities(chain, phi, rate)

    def step(state, _):
        after, solved = method.step(made._replace(force=force), 0.0, state, h)
        return after, (after.q, after.v, solved)

    _, (qs, vs, solved) = jax.lax.scan(step, method.init(made, 0.0, (q, v), h), length=steps)
    return jnp.concatenate((q[None], qs)), jnp.concatenate((v[None], vs)), jnp.all(solved)


@jax.jit
def energies(chain, q, v):
    made = problem(chain)
    kinetic = jax.vmap(lambda v: v @ made.mass @ v / 2)(v)
    return kinetic, jax.vmap(made.potential)(q), jax.vmap(made.constraint)(q)


@pytest.mark.parametrize("points", [1, 2, 3])
def test_gauss_means_are_exact_to_their_degree(points):
    """The work of the mean along the step, for monomials of degree 2s and 2s + 1."""
    q0, q1 = jnp.array((0.3,)), jnp.array((1.2,))
    for degree, exact in ((2 * points, True), (2 * points + 1, False)):
        mean = GaussMean(points)(lambda q, p=degree: q[0] ** p, q0, q1)
        error = abs(float(jnp.sum(mean * (q1 - q0))) - (1.2**degree - 0.3**degree))
        assert (error < 1e-14) if exact else (error > 1e-6)


def test_the_discrete_gradient_does_the_work_of_any_potential():
    def potential(q):
        return jnp.exp(q[0]) * jnp.sin(q[1])

    mean = jax.jit(lambda q0, q1: DiscreteGradient()(potential, q0, q1))
    q0 = jnp.array((0.3, -0.2))
    for scale in (1.0, 1e-3, 1e-6, 1e-9):
        d = scale * jnp.array((0.6, 0.8))
        work = float(jnp.sum(mean(q0, q0 + d) * d))
        change = float(potential(q0 + d) - potential(q0))
        assert work == pytest.approx(change, abs=2e-16)
        np.testing.assert_allclose(mean(q0, q0 + d), jax.grad(potential)(q0 + d / 2), atol=scale**2)
    np.testing.assert_array_equal(mean(q0, q0), jax.grad(potential)(q0))
    # At rest it moves with q1 as the gradient at the middle does.
    np.testing.assert_allclose(
        jax.jacfwd(mean, 1)(q0, q0), jax.hessian(potential)(q0) / 2, rtol=1e-14
    )


def test_a_point_on_a_circle_turns_by_the_cayley_angle():
    """Without a force each step turns by 2 arctan(h omega / 2), whatever h."""
    made, method, h, omega = point_on_a_circle(), EnergyStable(), 0.7, 1.9
    state = method.init(made, 0.0, (jnp.array((1.0, 0.0)), jnp.array((0.0, omega))), h)
    step = jax.jit(lambda state: method.step(made, 0.0, state, h))
    for k in range(1, 4):
        state, solved = step(state)
        angle = 2 * k * np.arctan(h * omega / 2)
        assert solved
        np.testing.assert_allclose(state.q, (np.cos(angle), np.sin(angle)), atol=1e-14)
        np.testing.assert_allclose(state.v / omega, (-np.sin(angle), np.cos(angle)), atol=1e-14)


@pytest.mark.parametrize("mean", MEANS, ids=repr)
def test_energy_and_constraints(mean):
    chain, steps = two_links(ROUTES["multi"]), 200
    defects = []
    for h in (0.1, 0.05):
        q, v, solved = motion(mean, chain, PHI, RATE, h, steps)
        kinetic, potential, constraint = energies(chain, q, v)
        assert solved
        np.testing.assert_allclose(constraint, 0, atol=2e-15)
        total = (kinetic + potential)[: int(5 / h)]
        defects.append(np.mean(np.abs(total - total[0])))
    if isinstance(mean, DiscreteGradient):
        assert max(defects) < 1e-13
    else:
        assert np.log2(defects[0] / defects[1]) == pytest.approx(2 * mean.points, abs=0.3)


def test_the_work_of_forces():
    """T1 - T0 + V1 - V0 = force . (q1 - q0), and C(qm) (v0 + v1) = 0."""
    chain, force = two_links(), jnp.array((0.3, -0.8, 0.5, 1.1))
    q, v, solved = motion(DiscreteGradient(), chain, PHI, RATE, 0.05, 200, force)
    kinetic, potential, _ = energies(chain, q, v)
    assert solved
    work = np.diff(q, axis=0) @ force
    np.testing.assert_allclose(np.diff(kinetic + potential), work, atol=2e-14)
    middle = jax.vmap(jax.jacfwd(problem(chain).constraint))((q[1:] + q[:-1]) / 2)
    np.testing.assert_allclose(np.einsum("kij,kj->ki", middle, v[1:] + v[:-1]), 0, atol=1e-13)


# Both ends of the first spring are in one point when link 1 stands at this angle.
COINCIDENT = two_links(slack=0.0, fastening=(np.hypot(0.9, 0.5), 0.5, 0.3))
MEETING = np.pi / 2 - np.arctan2(0.5, 0.9)
STATES = {
    "moving": (PHI, RATE, two_links()),
    "at rest": (jnp.zeros(2), jnp.zeros(2), two_links()),
    "coincident": (jnp.array((MEETING, 0.4)), jnp.zeros(2), COINCIDENT),
    "slack": (PHI, RATE, two_links(slack=3.0)),
}
CASES = [(state, mean) for mean in MEANS[2:] for state in STATES]


@partial(jax.jit, static_argnums=0)
def reached(mean, chain, phi, rate):
    """A number of the state after some steps that depends on everything."""
    q, v, _ = motion(mean, chain, phi, rate, 0.1, 4)
    return jnp.sum(jnp.sin(q[-1] + 0.3)) + jnp.sum(jnp.cos(v[-1]))


@partial(jax.jit, static_argnums=0)
def slopes(mean, chain, phi, rate, direction):
    arguments, directions = (chain, phi, rate), (direction, jnp.ones_like(phi), jnp.ones_like(phi))
    _, forward = jax.jvp(partial(reached, mean), arguments, directions)
    gradient = jax.grad(partial(reached, mean), (0, 1, 2))(*arguments)
    products = jax.tree.map(jnp.vdot, gradient, directions)
    return forward, sum(jax.tree.leaves(products))


@pytest.mark.slow
@pytest.mark.parametrize(("state", "mean"), CASES, ids=str)
def test_derivatives(state, mean):
    """Forward and reverse mode against central differences, along all leaves at once."""
    phi, rate, chain = STATES[state]
    direction = jax.tree.map(lambda x: jnp.cos(3.0 * jnp.arange(x.size)).reshape(x.shape), chain)
    if state == "coincident":
        # Between a slack length above and one below zero the energy of a point has a kink.
        still = jnp.zeros_like(chain.springs.slack)
        direction = eqx.tree_at(lambda c: c.springs.slack, direction, still)

    def at(s):
        moved = jax.tree.map(lambda x, d: x + s * d, chain, direction)
        return float(reached(mean, moved, phi + s, rate + s))

    e = 2e-5
    difference = (8 * (at(e) - at(-e)) - (at(2 * e) - at(-2 * e))) / (12 * e)
    forward, reverse = slopes(mean, chain, phi, rate, direction)
    assert float(forward) == pytest.approx(difference, rel=1e-6, abs=1e-8)
    assert float(reverse) == pytest.approx(float(forward), rel=1e-10)


def test_single_precision():
    chain = jax.tree.map(lambda x: x.astype(jnp.float32), two_links())
    phi, rate = PHI.astype(jnp.float32), RATE.astype(jnp.float32)
    for mean in MEANS[2:]:
        q, v, solved = motion(mean, chain, phi, rate, 0.01, 200)
        kinetic, potential, constraint = energies(chain, q, v)
        assert solved and q.dtype == v.dtype == jnp.float32
        np.testing.assert_allclose(kinetic + potential, (kinetic + potential)[0], atol=2e-5)
        np.testing.assert_allclose(constraint, 0, atol=1e-6)


def test_a_step_without_solution_is_reported_and_not_made():
    """A point on the circle that shall be on a line beside it as well."""
    made = ConstrainedProblem(
        jnp.eye(2), lambda q: jnp.stack((q @ q - 1, q[0] - 2)), lambda q: jnp.zeros(())
    )
    method = EnergyStable()
    state = method.init(made, 0.0, (jnp.array((1.0, 0.0)), jnp.array((0.0, 1.0))), 0.1)
    after, solved = jax.jit(lambda state: method.step(made, 0.0, state, 0.1))(state)
    assert not solved
    np.testing.assert_array_equal(after.q, state.q)
    np.testing.assert_array_equal(after.v, state.v)


def test_bad_input():
    with pytest.raises(ValueError, match="one or more"):
        GaussMean(0)
