"""Newton's method with a Newton step from elsewhere, for the equations of one implicit step.

The root is differentiated by the implicit function theorem, in forward and reverse mode, whatever
way it was found.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

Residual = Callable[[jax.Array], jax.Array]


def quasi_newton(
    residual: Residual,
    correction: Callable[[jax.Array, jax.Array], jax.Array],
    offset: jax.Array,
    guess: jax.Array,
    *,
    iterations: int = 30,
) -> tuple[jax.Array, jax.Array]:
    """The root x (n,) of residual(x) (n,) near the guess (n,), and whether it was found ().

    correction(x, offset) (n,) is about -residual'(x)^-1 residual(x). A change d of the offset (n,)
    changes it by about residual'(x)^-1 d: with this the equations of the root's derivatives are
    solved. Both may close over traced values. Found as `corrected` says.
    """
    residual, given = jax.closure_convert(residual, guess)
    correction, given_too = jax.closure_convert(correction, guess, offset)

    @jax.custom_jvp
    def root(given, given_too, offset, guess):
        x, found = corrected(
            lambda x: correction(x, offset, *given_too), guess, iterations=iterations
        )
        return x, found.astype(guess.dtype)

    @root.defjvp
    def _(primals, tangents):
        given, given_too, offset, _ = primals
        x, found = root(*primals)
        _, change = jax.jvp(lambda given: residual(x, *given), (given,), (tangents[0],))

        def linear(dx: jax.Array) -> jax.Array:
            return jax.jvp(lambda x: residual(x, *given), (x,), (dx,))[1]

        def at_root(offset: jax.Array) -> jax.Array:
            return correction(x, offset, *given_too)

        def inverse(b: jax.Array) -> jax.Array:
            return jax.jvp(at_root, (offset,), (b,))[1]

        def inverse_transposed(b: jax.Array) -> jax.Array:
            return jax.vjp(at_root, offset)[1](b)[0]

        dx = jax.lax.custom_linear_solve(
            linear,
            -change,
            lambda matvec, b: refined(matvec, inverse, b),
            lambda vecmat, b: refined(vecmat, inverse_transposed, b),
        )
        return (x, found), (dx, jnp.zeros_like(found))

    x, found = root(given, given_too, offset, jax.lax.stop_gradient(guess))
    return x, found > 0


def refined(linear: Residual, inverse: Residual, b: jax.Array) -> jax.Array:
    """The x (n,) with linear(x) = b (n,), by an inverse that need not be exact; NaN if it fails.

    It is found when the next correction would be below rounding, shrinking once more as the last
    did, or when they have stopped shrinking far below the square root of rounding of max(1, |x|):
    where equations repeat each other and b is only rounding, corrections do not shrink below it.
    """
    eps = jnp.finfo(b.dtype).eps

    def improve(state: tuple) -> tuple:
        x, before, _, count = state
        change = inverse(b - linear(x))
        x = x + change
        size, scale = jnp.max(jnp.abs(change), initial=0), jnp.max(jnp.abs(x), initial=0)
        small = size * size <= eps * scale * before
        stalled = (count > 0) & (size >= before / 2)
        stalled &= size <= 1e6 * eps * jnp.maximum(1, scale)
        return x, size, small | stalled, count + 1

    def unfinished(state: tuple) -> jax.Array:
        _, size, done, count = state
        return ~done & (count < 50) & ~jnp.isnan(size)

    # The inverse is by far the longest part of the program, and stands in it once.
    start = 0 * b, jnp.zeros((), b.dtype), jnp.asarray(False), jnp.asarray(0)
    x, _, found, _ = jax.lax.while_loop(unfinished, improve, start)
    return jnp.where(found, x, jnp.nan)


def corrected(
    correction: Residual, guess: jax.Array, *, iterations: int
) -> tuple[jax.Array, jax.Array]:
    """The x (n,) that the correction(x) (n,) leaves where it is, and whether it was found ().

    It is found when the correction is below a few units of rounding of max(1, |x|), when the next
    would be, shrinking once more as it did last, or when it has stopped shrinking far below the
    square root of rounding: what a step leaves unsolved would be a random walk of its invariants.
    A correction that is not finite is not applied, and ends the search.
    """
    eps = jnp.finfo(guess.dtype).eps

    def improve(state: tuple) -> tuple:
        x, before, _, count = state
        change = correction(x)
        size = jnp.max(jnp.abs(change), initial=0)
        scale = jnp.maximum(1, jnp.max(jnp.abs(x), initial=0))
        small = (size <= 32 * eps * scale) | (size * size <= eps * scale * jnp.minimum(before, 1))
        stalled = (size >= before / 2) & (size <= 1e6 * eps * scale)
        x = jnp.where(jnp.isfinite(size), x + change, x)
        return x, size, small | stalled, count + 1

    def unfinished(state: tuple) -> jax.Array:
        _, size, done, count = state
        return ~done & (count < iterations) & ~jnp.isnan(size)

    start = guess, jnp.asarray(jnp.inf, guess.dtype), jnp.asarray(False), jnp.asarray(0)
    x, _, done, _ = jax.lax.while_loop(unfinished, improve, start)
    return x, done
