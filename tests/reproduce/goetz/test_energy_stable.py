"""The energy-stable step: closed forms, its energy balance, its derivatives, and its failures."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from planar import PHI, RATE, ROUTES, STATES, check_derivatives, direction_of, two_links

from difflie import native
from difflie.reproduce.goetz import energy_stable
from difflie.reproduce.goetz.chain import mechanics
from difflie.reproduce.goetz.energy_stable import ConstrainedProblem, discrete_gradient, gauss_mean

MEANS = {"Gauss 1": partial(gauss_mean, 1), "Gauss 2": partial(gauss_mean, 2)}
MEANS |= {"Gauss 3": partial(gauss_mean, 3), "Gonzalez": discrete_gradient}


def point_on_a_circle():
    """Of 2 kg, without a force."""
    return ConstrainedProblem(
        lambda v: jnp.sum(v * v), lambda q: jnp.sum(q * q, keepdims=True) - 1, lambda q: 0 * q[1]
    )


@partial(jax.jit, static_argnums=(0, 5))
def motion(mean, chain, phi, rate, h, steps, force=0.0):
    """q, v (steps + 1, 2n) and whether all steps were solved, under a constant force (2n,)."""
    problem = mechanics(chain)
    q, v = jax.jvp(lambda phi: chain.centres(phi).ravel(), (phi,), (rate,))

    def potential(q):
        return problem.potential(q) - jnp.sum(force * q)

    def step(state, _):
        after, solved = energy_stable.step(problem._replace(potential=potential), mean, state, h)
        return after, (*after.y, solved)

    _, (qs, vs, solved) = native.scan(step, energy_stable.start(problem, q, v), None, steps)
    return jnp.concatenate((q[None], qs)), jnp.concatenate((v[None], vs)), jnp.all(solved)


@jax.jit
def energies(chain, q, v):
    return [jax.vmap(f)(x) for f, x in zip(mechanics(chain), (v, q, q), strict=True)]


@pytest.mark.parametrize("points", [1, 2, 3])
def test_gauss_means_are_exact_to_their_degree(points):
    """The work of the mean along the step, for monomials of degree 2s and 2s + 1."""
    q0, q1 = jnp.array((0.3,)), jnp.array((1.2,))
    for degree, exact in ((2 * points, True), (2 * points + 1, False)):
        mean = gauss_mean(points, lambda q, p=degree: q[0] ** p, q0, q1)
        error = abs(float(jnp.sum(mean * (q1 - q0))) - (1.2**degree - 0.3**degree))
        assert (error < 1e-14) if exact else (error > 1e-6)


@pytest.mark.slow
def test_the_discrete_gradient_does_the_work_of_any_potential():
    def potential(q):
        return jnp.exp(q[0]) * jnp.sin(q[1])

    mean = jax.jit(partial(discrete_gradient, potential))
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
    problem, h, omega = point_on_a_circle(), 0.7, 1.9
    state = energy_stable.start(problem, jnp.array((1.0, 0.0)), jnp.array((0.0, omega)))
    step = jax.jit(lambda state: energy_stable.step(problem, MEANS["Gauss 3"], state, h))
    for k in range(1, 4):
        state, solved = step(state)
        angle = 2 * k * np.arctan(h * omega / 2)
        assert solved
        q, v = state.y
        np.testing.assert_allclose(q, (np.cos(angle), np.sin(angle)), atol=1e-14)
        np.testing.assert_allclose(v / omega, (-np.sin(angle), np.cos(angle)), atol=1e-14)


@pytest.mark.parametrize(("mean", "order"), [*zip(MEANS, (2, 4, 6, None), strict=True)])
def test_energy_and_constraints(mean, order):
    """The constraints hold to rounding, the energy to the order of the mean or to rounding."""
    chain, steps = two_links(ROUTES["multi"]), 200
    defects = []
    for h in (0.1, 0.05):
        q, v, solved = motion(MEANS[mean], chain, PHI, RATE, h, steps)
        kinetic, constraint, potential = energies(chain, q, v)
        assert solved
        np.testing.assert_allclose(constraint, 0, atol=2e-15)
        total = (kinetic + potential)[: int(5 / h)]
        defects.append(np.mean(np.abs(total - total[0])))
    if order is None:
        assert max(defects) < 1e-13
    else:
        assert np.log2(defects[0] / defects[1]) == pytest.approx(order, abs=0.3)


@pytest.mark.slow
def test_the_work_of_forces():
    """T1 - T0 + V1 - V0 = force . (q1 - q0), and C(qm) (v0 + v1) = 0."""
    chain, force = two_links(), jnp.array((0.3, -0.8, 0.5, 1.1))
    q, v, solved = motion(discrete_gradient, chain, PHI, RATE, 0.05, 200, force)
    kinetic, _, potential = energies(chain, q, v)
    assert solved
    work = np.diff(q, axis=0) @ force
    np.testing.assert_allclose(np.diff(kinetic + potential), work, atol=2e-14)
    middle = jax.vmap(jax.jacfwd(mechanics(chain).constraint))((q[1:] + q[:-1]) / 2)
    np.testing.assert_allclose(np.einsum("kij,kj->ki", middle, v[1:] + v[:-1]), 0, atol=1e-13)


CASES = [(state, mean) for mean in ("Gauss 3", "Gonzalez") for state in STATES]


@partial(jax.jit, static_argnums=0)
def reached(mean, chain, phi, rate):
    """A number of the state after some steps that depends on everything."""
    q, v, _ = motion(MEANS[mean], chain, phi, rate, 0.1, 4)
    return jnp.sum(jnp.sin(q[-1] + 0.3)) + jnp.sum(jnp.cos(v[-1]))


@pytest.mark.slow
@pytest.mark.parametrize(("state", "mean"), CASES, ids=str)
def test_derivatives(state, mean):
    phi, rate, chain = STATES[state]
    direction = direction_of(chain)
    if state == "coincident":
        # Between a slack length above and one below zero the energy of a point has a kink.
        still = jnp.zeros_like(chain.springs.slack)
        direction = eqx.tree_at(lambda c: c.springs.slack, direction, still)
    check_derivatives(partial(reached, mean), phi, rate, chain, direction)


@pytest.mark.slow
def test_single_precision():
    chain = jax.tree.map(lambda x: x.astype(jnp.float32), two_links())
    phi, rate = PHI.astype(jnp.float32), RATE.astype(jnp.float32)
    for mean in ("Gauss 3", "Gonzalez"):
        q, v, solved = motion(MEANS[mean], chain, phi, rate, 0.01, 200)
        kinetic, constraint, potential = energies(chain, q, v)
        assert solved and q.dtype == v.dtype == jnp.float32
        np.testing.assert_allclose(kinetic + potential, (kinetic + potential)[0], atol=2e-5)
        np.testing.assert_allclose(constraint, 0, atol=1e-6)


def test_a_step_without_solution_is_reported_and_not_made():
    """A point on the circle that shall be on a line beside it as well."""
    problem = point_on_a_circle()._replace(constraint=lambda q: jnp.stack((q @ q - 1, q[0] - 2)))
    state = energy_stable.start(problem, jnp.array((1.0, 0.0)), jnp.array((0.0, 1.0)))
    mean = MEANS["Gauss 3"]
    after, solved = jax.jit(lambda state: energy_stable.step(problem, mean, state, 0.1))(state)
    assert not solved
    np.testing.assert_array_equal(after.y, state.y)


def test_bad_input():
    with pytest.raises(ValueError, match="positive"):
        gauss_mean(0, jnp.sum, jnp.zeros(2), jnp.ones(2))
