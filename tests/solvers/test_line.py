"""Roots across dry friction, where whole steps of Newton's method swing to and fro."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from difflie.solvers.corrections import Chord, Corrections
from difflie.solvers.newton import FixedPoint, Newton
from difflie.solvers.root import root

INVERSE = np.linalg.inv(np.diag((1e-3, 1e-2, 1.0)) + 1e-3 * np.ones((3, 3)))


def searches(residual):
    def correction(x, b):
        return -jnp.linalg.solve(jax.jacfwd(residual)(x), residual(x) - b)

    exact = Chord(lambda x, exact: jax.jacfwd(residual)(x))
    return Newton(), FixedPoint(), exact, Corrections(correction)


def residual(load):
    """x = v, with the friction of three joints that share their inertia, in a step."""
    friction = jnp.asarray([0.5, 2.0, 0.05])
    return lambda x: x - 0.01 * jnp.asarray(INVERSE) @ (load - friction * jnp.tanh(x / 0.01))


@pytest.mark.slow("0", "1")
@pytest.mark.parametrize("kind", range(4))
def test_roots_across_friction(kind):
    """Joints that stick, and that turn, from any start; the derivative is that of the equations."""
    random = np.random.default_rng(kind)
    loads = jnp.asarray(random.normal(size=(30, 3)) * (1.0, 2.0, 0.2))
    guesses = jnp.asarray(random.normal(size=(30, 3)))

    def solved(load, guess):
        r = residual(load)
        return root(r, guess, searches(r)[kind])

    x, found = jax.jit(jax.vmap(solved))(loads, guesses)
    assert found.all()
    off = jax.vmap(lambda load, x: residual(load)(x))(loads, x)
    assert float(jnp.abs(off).max()) < 1e-8
    slope = jax.jit(jax.vmap(jax.jacfwd(lambda a, g: solved(a, g)[0])))(loads, guesses)
    for s, load, at in zip(slope, loads, x, strict=True):
        by_x = jax.jacfwd(residual(load))(at)
        np.testing.assert_allclose(s, np.linalg.solve(by_x, 0.01 * INVERSE), rtol=1e-6, atol=1e-9)


@pytest.mark.slow("1", "0", "3")
@pytest.mark.parametrize("kind", range(4))
def test_derivatives_along_nothing_are_zero(kind):
    """Also in batches in which some directions are zero, and masked, in both modes."""

    def solved(p):
        def equations(x):
            return x - jnp.sin(x) / 4 - p

        return root(equations, jnp.zeros(2), searches(equations)[kind])[0]

    p = jnp.asarray([0.3, -1.0])
    slopes = 1 / (1 - np.cos(solved(p)) / 4)
    along = jnp.asarray([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]])
    forward = jax.jit(jax.vmap(lambda d: jax.jvp(solved, (p,), (d,))[1]))(along)
    np.testing.assert_allclose(forward, np.asarray(along) * slopes, rtol=1e-12)
    back = jax.jit(jax.vmap(lambda d: jax.vjp(solved, p)[1](d)[0]))(along)
    np.testing.assert_allclose(back, np.asarray(along) * slopes, rtol=1e-12)
    np.testing.assert_array_equal(jax.grad(lambda p: jnp.sum(0 * solved(p)))(p), 0)
