"""Newton's method with a given Jacobian, for implicit steps that are no native code.

The root is differentiated by the implicit function theorem, in forward and reverse mode; the same
Jacobian solves the equations of its derivatives, by refinement.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp

from .linear import product
from .newton import Function, contraction
from .quasi_newton import refined

_ATTEMPTS = 12


def chord(
    residual: Function,
    jacobian: Callable[[jax.Array, jax.Array], jax.Array],
    guess: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """The root x (n,) of residual(x) (n,) near the guess (n,), and whether it was found ().

    jacobian(x, exact) (n, n) is about the derivative at x; it is kept as long as each update is
    less than half of the one before, and then taken anew, from then on with `exact` true (), as are
    the derivatives of a root that needed this. What is found, and when, is as in `newton`. Both
    functions may close over traced values.
    """
    residual, given = jax.closure_convert(residual, guess)
    jacobian, given_too = jax.closure_convert(jacobian, guess, jnp.asarray(False))

    @jax.custom_jvp
    def root(given, given_too, guess):
        def inverse(x: jax.Array, exact: jax.Array) -> jax.Array:
            return jnp.linalg.inv(jacobian(x, exact, *given_too))

        x, found, exact = _search(lambda x: residual(x, *given), inverse, guess)
        # As numbers, whose tangents are zero.
        return x, found.astype(guess.dtype), exact.astype(guess.dtype)

    @root.defjvp
    def derivative(primals, tangents):
        given, given_too, _ = primals
        x, found, exact = root(*primals)
        _, change = jax.jvp(lambda given: residual(x, *given), (given,), (tangents[0],))
        inverse = jnp.linalg.inv(jacobian(jax.lax.stop_gradient(x), exact > 0, *given_too))

        def linear(dx: jax.Array) -> jax.Array:
            return jax.jvp(lambda x: residual(x, *given), (x,), (dx,))[1]

        def solve(matvec: Function, b: jax.Array) -> jax.Array:
            return refined(matvec, partial(product, inverse), b)

        def transposed(vecmat: Function, b: jax.Array) -> jax.Array:
            return refined(vecmat, partial(product, inverse.T), b)

        dx = jax.lax.custom_linear_solve(linear, -change, solve, transposed)
        nothing = jnp.zeros_like(found)
        return (x, found, exact), (dx, nothing, nothing)

    x, found, _ = root(given, jax.lax.stop_gradient(given_too), jax.lax.stop_gradient(guess))
    return x, found > 0


def _search(
    residual: Function, inverse: Callable[[jax.Array, jax.Array], jax.Array], guess: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The root, whether it was found (), and whether the Jacobian had to be exact ()."""
    rounding = float(jnp.finfo(guess.dtype).eps)
    no = jnp.asarray(False)

    def attempt(state: tuple) -> tuple:
        x, near, _, count = state
        floor = jnp.where(near, rounding**0.5, 256 * rounding)
        x, size, found = contraction(residual, inverse(x, count > 0), x, floor, 1.0, no)
        near = size <= rounding**0.5 * jnp.maximum(1, jnp.max(jnp.abs(x)))
        return x, near, found, count + 1

    def unfinished(state: tuple) -> jax.Array:
        _, _, found, count = state
        return ~found & (count < _ATTEMPTS)

    x, _, found, count = jax.lax.while_loop(unfinished, attempt, (guess, no, no, jnp.asarray(0)))
    return jnp.where(found, x, guess), found, count > 1
