"""The variational midpoint rule for joint angles: closed forms, symplecticity, derivatives."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from planar import PHI, RATE, ROUTES, STATES, check_derivatives, direction_of, two_links

from difflie import native
from difflie.integrators import State
from difflie.reproduce.goetz import variational
from difflie.reproduce.goetz.variational import angle_rate, chord_rate

RULES = (angle_rate, chord_rate)


@partial(jax.jit, static_argnums=0)
def mapped(rule, chain, z, h):
    """(phi1, p1) of z = (phi0, p0), and whether the step was solved."""
    phi, p = jnp.split(z, 2)
    state = State((phi, p), chain.rate(phi, p))
    after, solved = variational.step(native.kernel(chain.lagrangian), rule, state, h)
    return jnp.concatenate(after.y), solved


@partial(jax.jit, static_argnums=0)
def tangent_map(rule, chain, z, h):
    return jax.jacfwd(lambda z: mapped(rule, chain, z, h)[0])(z)


@pytest.mark.parametrize("rule", RULES)
def test_a_free_rotor(rule):
    """With L = J omega^2 / 2: the turn of a step is h p / J, or asin(2 h p / J) / 2."""
    h, p = 0.2, 1.5

    @jax.jit
    def step(p):
        state = State((jnp.zeros(1), p), p / 2)
        return variational.step(lambda phi, rate: jnp.sum(rate**2), rule, state, h)

    after, solved = step(jnp.array([p]))
    expected = h * p / 2 if rule is angle_rate else np.arcsin(h * p) / 2
    assert solved
    np.testing.assert_allclose(np.ravel(after.y), (expected, p), rtol=1e-15)
    if rule is chord_rate:
        # No turn has this momentum.
        lost, solved = step(jnp.array([1.1 / h]))
        assert not solved
        np.testing.assert_array_equal(np.ravel(lost.y), (0, 1.1 / h))


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_momenta_are_those_of_the_thesis(rule):
    """(4.28), with M_d = diag(cos(phi1 - phi0)) M for the sine velocity and M for the angle."""
    chain, h = two_links(ROUTES["multi"]), 0.05
    p0 = chain.mass_matrix(PHI) @ RATE
    z, solved = mapped(rule, chain, jnp.concatenate((PHI, p0)), h)
    assert solved
    phi1, p1 = np.split(np.asarray(z), 2)
    middle, turn = (PHI + phi1) / 2, phi1 - PHI
    omega = rule(turn, h)
    inertia = chain.mass_matrix(middle)
    factor = np.cos(turn) if rule is chord_rate else np.ones(2)
    slope = jax.jacfwd(chain.mass_matrix)(middle)
    coriolis = np.einsum("i,ijk,j->k", omega, slope, omega)
    pull = jax.grad(chain.potential)(middle)
    momentum = factor * (inertia @ omega)
    np.testing.assert_allclose(momentum - h / 4 * coriolis + h / 2 * pull, p0, rtol=1e-13)
    np.testing.assert_allclose(momentum + h / 4 * coriolis - h / 2 * pull, p1, rtol=1e-13)


@pytest.mark.slow("angle_rate")
@pytest.mark.parametrize("rule", RULES)
def test_a_step_is_symplectic(rule):
    chain = two_links(ROUTES["multi"])
    z = jnp.concatenate((PHI, chain.mass_matrix(PHI) @ RATE))
    j = np.block([[np.zeros((2, 2)), np.eye(2)], [-np.eye(2), np.zeros((2, 2))]])
    for h in (0.01, 0.1):
        d = np.asarray(tangent_map(rule, chain, z, h))
        np.testing.assert_allclose(d.T @ j @ d, j, atol=1e-12)


@partial(jax.jit, static_argnums=0)
def reached(rule, chain, phi, rate):
    """A number of the state after some steps that depends on everything."""
    lagrangian = native.kernel(chain.lagrangian)

    def step(state, _):
        return variational.step(lagrangian, rule, state, 0.1)

    start = State((phi, chain.mass_matrix(phi) @ rate), rate)
    (phi, p), _ = jax.lax.scan(step, start, length=4)[0]
    return jnp.sum(jnp.sin(phi + 0.3)) + jnp.sum(jnp.cos(p))


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("state", STATES)
def test_derivatives(state, rule):
    phi, rate, chain = STATES[state]
    check_derivatives(partial(reached, rule), phi, rate, chain, direction_of(chain))


@pytest.mark.slow
def test_single_precision():
    chain = jax.tree.map(lambda x: x.astype(jnp.float32), two_links())
    z = jnp.concatenate((PHI, chain.mass_matrix(PHI) @ RATE)).astype(jnp.float32)
    start = float(jnp.sum(z))
    for _ in range(50):
        z, solved = mapped(angle_rate, chain, z, 0.01)
        assert solved
    assert z.dtype == jnp.float32 and np.all(np.isfinite(z)) and float(jnp.sum(z)) != start
