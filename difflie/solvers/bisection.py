"""Bisection: the root of one equation in one unknown, to the last digit."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from .root import Function, LinearSolve, Search


@dataclass(frozen=True)
class Bisection(Search):
    """The x (1,) between 0 and twice the guess where a residual, positive at 0, is so no more.

    The first point that is looked at is the guess. The residual at x is zero or negative, by
    rounding; none is found where it never turns out so.
    """

    def find(self, residual: Function, guess: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        def halved(_: int, state: tuple) -> tuple:
            low, high, found = state
            middle = (low + high) / 2
            value = residual(middle)
            before = value > 0
            low, high = jnp.where(before, middle, low), jnp.where(before, high, middle)
            return low, high, found | (value[0] <= 0)

        halvings = int(jnp.finfo(guess.dtype).nmant) + 4
        start = jnp.zeros_like(guess), 2 * guess, jnp.asarray(False)
        _, x, found = jax.lax.fori_loop(0, halvings, halved, start)
        return x, found, found

    def linear(self, x: jax.Array, memory: jax.Array) -> tuple[LinearSolve, LinearSolve]:
        def solve(linear: Function, b: jax.Array) -> jax.Array:
            # In a batch, rows without a root must not divide by zero.
            return b / jnp.where(memory > 0, linear(jnp.ones_like(b)), 1)

        return solve, solve
