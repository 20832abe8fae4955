"""Newton's method for the equations of one implicit step.

The root is differentiated by the implicit function theorem, in forward and reverse mode, whatever
way it was found.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

Residual = Callable[[jax.Array], jax.Array]


def newton(
    residual: Residual, guess: jax.Array, *, iterations: int = 25
) -> tuple[jax.Array, jax.Array]:
    """The root x (n,) of residual(x) (n,) near the guess (n,), and whether it was found ().

    It is found when the update is below a few units of rounding of max(1, |x|), or has stopped
    shrinking far below the square root of rounding: what a step leaves unsolved would be a random
    walk of its invariants. The residual may close over traced values.
    """
    eps = jnp.finfo(guess.dtype).eps

    def solve(residual: Residual, guess: jax.Array) -> tuple[jax.Array, jax.Array]:
        def improve(state: tuple) -> tuple:
            x, before, _, count = state
            update = -jnp.linalg.solve(jax.jacfwd(residual)(x), residual(x))
            size = jnp.max(jnp.abs(update), initial=0)
            scale = jnp.maximum(1, jnp.max(jnp.abs(x), initial=0))
            small = size <= 32 * eps * scale
            stalled = (size >= before / 2) & (size <= 1e6 * eps * scale)
            return x + update, size, small | stalled, count + 1

        def unfinished(state: tuple) -> jax.Array:
            _, size, done, count = state
            return ~done & (count < iterations) & ~jnp.isnan(size)

        start = guess, jnp.asarray(jnp.inf, guess.dtype), jnp.asarray(False), jnp.asarray(0)
        x, _, done, _ = jax.lax.while_loop(unfinished, improve, start)
        # A flag has no tangent, which custom_root cannot say of a boolean.
        return x, done.astype(guess.dtype)

    def tangent_solve(linear: Residual, rhs: jax.Array) -> jax.Array:
        return jnp.linalg.solve(jax.jacfwd(linear)(jnp.zeros_like(rhs)), rhs)

    root, done = jax.lax.custom_root(residual, guess, solve, tangent_solve, has_aux=True)
    return root, done > 0
