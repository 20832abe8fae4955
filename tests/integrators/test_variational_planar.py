"""The variational midpoint rule for joint angles: closed forms, symplecticity, derivatives."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from planar import ROUTES, two_links

from difflie import native
from difflie.integrators.variational_planar import (
    LagrangianMechanics,
    PhaseState,
    PlanarVariational,
    angle_rate,
    chord_rate,
)

RULES = (angle_rate, chord_rate)
PHI, RATE = jnp.array((0.4, -1.1)), jnp.array((0.7, -1.9))


def lagrangian(chain):
    return LagrangianMechanics(native.kernel(chain.lagrangian))


@partial(jax.jit, static_argnums=0)
def mapped(rule, chain, z, h):
    """(phi1, p1) of z = (phi0, p0), and whether the step was solved."""
    phi, p = jnp.split(z, 2)
    state = PhaseState(phi, p, chain.rate(phi, p))
    after, solved = PlanarVariational(rule).step(lagrangian(chain), 0.0, state, h)
    return jnp.concatenate((after.phi, after.p)), solved


@partial(jax.jit, static_argnums=0)
def tangent_map(rule, chain, z, h):
    return jax.jacfwd(lambda z: mapped(rule, chain, z, h)[0])(z)


@pytest.mark.parametrize("rule", RULES)
def test_a_free_rotor(rule):
    """With L = J omega^2 / 2: the turn of a step is h p / J, or asin(2 h p / J) / 2."""
    method, h, p = PlanarVariational(rule), 0.2, 1.5

    @jax.jit
    def step(p):
        state = PhaseState(jnp.zeros(1), p, p / 2)
        problem = LagrangianMechanics(lambda phi, rate: jnp.sum(rate**2))
        return method.step(problem, 0.0, state, h)

    after, solved = step(jnp.array([p]))
    expected = h * p / 2 if rule is angle_rate else np.arcsin(h * p) / 2
    assert solved
    np.testing.assert_allclose(after.phi, expected, rtol=1e-15)
    np.testing.assert_allclose(after.p, p, rtol=1e-15)
    if rule is chord_rate:
        # No turn has this momentum.
        lost, solved = step(jnp.array([1.1 / h]))
        assert not solved
        np.testing.assert_array_equal(lost.phi, 0)
        np.testing.assert_array_equal(lost.p, 1.1 / h)


@pytest.mark.parametrize("rule", RULES)
def test_momenta_are_those_of_the_thesis(rule):
    """(4.28), with M_d = diag(cos(phi1 - phi0)) M for the sine velocity and M for the angle."""
    chain, h = two_links(ROUTES["multi"]), 0.05
    p0 = chain.momentum(PHI, RATE)
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


@pytest.mark.parametrize("rule", RULES)
def test_a_step_is_symplectic(rule):
    chain = two_links(ROUTES["multi"])
    z = jnp.concatenate((PHI, chain.momentum(PHI, RATE)))
    j = np.block([[np.zeros((2, 2)), np.eye(2)], [-np.eye(2), np.zeros((2, 2))]])
    for h in (0.01, 0.1):
        d = np.asarray(tangent_map(rule, chain, z, h))
        np.testing.assert_allclose(d.T @ j @ d, j, atol=1e-12)


@partial(jax.jit, static_argnums=0)
def reached(rule, chain, phi, rate):
    """A number of the state after some steps that depends on everything."""
    method, problem = PlanarVariational(rule), lagrangian(chain)

    def step(state, _):
        return method.step(problem, 0.0, state, 0.1)

    start = method.init(LagrangianMechanics(chain.lagrangian), 0.0, (phi, rate), 0.1)
    last, _ = jax.lax.scan(step, start, length=4)
    return jnp.sum(jnp.sin(last.phi + 0.3)) + jnp.sum(jnp.cos(last.p))


@partial(jax.jit, static_argnums=0)
def slopes(rule, chain, phi, rate, direction):
    arguments, directions = (chain, phi, rate), (direction, jnp.ones_like(phi), jnp.ones_like(phi))
    _, forward = jax.jvp(partial(reached, rule), arguments, directions)
    gradient = jax.grad(partial(reached, rule), (0, 1, 2))(*arguments)
    products = jax.tree.map(jnp.vdot, gradient, directions)
    return forward, sum(jax.tree.leaves(products))


STATES = {
    "moving": (PHI, RATE, two_links()),
    "at rest": (jnp.zeros(2), jnp.zeros(2), two_links()),
    "slack": (PHI, RATE, two_links(slack=3.0)),
    "coincident": (
        jnp.array((np.pi / 2 - np.arctan2(0.5, 0.9), 0.4)),
        jnp.zeros(2),
        two_links(slack=0.0, fastening=(np.hypot(0.9, 0.5), 0.5, 0.3)),
    ),
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("state", STATES)
def test_derivatives(state, rule):
    """Forward and reverse mode against central differences, along all leaves at once."""
    phi, rate, chain = STATES[state]
    direction = jax.tree.map(lambda x: jnp.cos(3.0 * jnp.arange(x.size)).reshape(x.shape), chain)

    def at(s):
        moved = jax.tree.map(lambda x, d: x + s * d, chain, direction)
        return float(reached(rule, moved, phi + s, rate + s))

    e = 2e-5
    difference = (8 * (at(e) - at(-e)) - (at(2 * e) - at(-2 * e))) / (12 * e)
    forward, reverse = slopes(rule, chain, phi, rate, direction)
    assert float(forward) == pytest.approx(difference, rel=1e-6, abs=1e-8)
    assert float(reverse) == pytest.approx(float(forward), rel=1e-10)


def test_single_precision():
    chain = jax.tree.map(lambda x: x.astype(jnp.float32), two_links())
    z = jnp.concatenate((PHI, chain.momentum(PHI, RATE))).astype(jnp.float32)
    start = float(jnp.sum(z))
    for _ in range(50):
        z, solved = mapped(angle_rate, chain, z, 0.01)
        assert solved
    assert z.dtype == jnp.float32 and np.all(np.isfinite(z)) and float(jnp.sum(z)) != start
