"""Bisection: the root of one equation in one unknown, to the last digit."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from .root import Function, LinearSolve, Search


@dataclass(frozen=True)
class Bisection(Search):
    """The root x (1,) between 0 and twice the guess, of a residual (1,) that is positive at 0.

    The first point evaluated is the guess. At the root the residual is zero or negative, by
    rounding. The search fails if the residual is positive at all points.
    """

    def find(self, residual: Function, guess: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        def halved(_: int, state: tuple) -> tuple:
            low, high, bracketed = state
            middle = (low + high) / 2
            value = residual(middle)
            before = value > 0
            low, high = jnp.where(before, middle, low), jnp.where(before, high, middle)
            return low, high, bracketed | (value[0] <= 0)

        halvings = int(jnp.finfo(guess.dtype).nmant) + 4
        start = jnp.zeros_like(guess), 2 * guess, jnp.asarray(False)
        _, x, bracketed = jax.lax.fori_loop(0, halvings, halved, start)
        return x, bracketed, bracketed

    def linear(self, x: jax.Array, memory: jax.Array) -> tuple[LinearSolve, LinearSolve]:
        def solve(linear: Function, b: jax.Array) -> jax.Array:
            # In a batch, elements without a root must not divide by zero.
            return b / jnp.where(memory > 0, linear(jnp.ones_like(b)), 1)

        return solve, solve
