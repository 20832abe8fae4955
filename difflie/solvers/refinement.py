"""Linear equations solved with an inverse that is not exact, by iterative refinement."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .root import Function


def refined(linear: Function, inverse: Function, b: jax.Array) -> jax.Array:
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
        size, scale = jnp.max(jnp.abs(change)), jnp.max(jnp.abs(x))
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
