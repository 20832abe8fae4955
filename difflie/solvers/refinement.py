"""Linear equations solved with an inverse that is not exact, by iterative refinement."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .root import Function


def refined(linear: Function, inverse: Function, b: jax.Array) -> jax.Array:
    """The x (n,) with linear(x) = b (n,), by an approximate inverse; NaN if it fails.

    It has converged when the next correction would be below rounding, at the same rate of
    contraction, or when corrections no longer shrink, far below the square root of rounding of
    max(1, |x|): with redundant equations and a b of rounding errors they do not shrink further.
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

    # The inverse is by far the longest part of the program, and occurs in it once.
    start = 0 * b, jnp.zeros((), b.dtype), jnp.asarray(False), jnp.asarray(0)
    x, _, converged, _ = jax.lax.while_loop(unfinished, improve, start)
    return jnp.where(converged, x, jnp.nan)
