"""Newton's method with a user's Jacobian, for implicit steps outside native code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp

from .linear import product
from .newton import contraction
from .root import Function, LinearSolve, Search, refined


@dataclass(frozen=True)
class Chord(Search):
    """Newton's method with jacobian(x, exact) (n, n), about the derivative of the residual at x.

    It is kept while each update is less than half of the one before. Then it is evaluated anew,
    with `exact` true () from then on, also for the derivatives of such a root. The equations of the
    derivatives are solved with the same Jacobian, by refinement. Convergence is judged as in
    `Newton`.
    """

    jacobian: Callable[[jax.Array, jax.Array], jax.Array]
    attempts: int = 40
    far: float = 256.0

    def functions(self, guess: jax.Array) -> list:
        return [(self.jacobian, (guess, jnp.asarray(False)))]

    def find(self, residual: Function, guess: jax.Array, jacobian: Callable) -> tuple:
        rounding = float(jnp.finfo(guess.dtype).eps)

        def attempt(state: tuple) -> tuple:
            x, near, _, count = state
            floor = jnp.where(near, rounding**0.5, self.far * rounding)
            matrix = jnp.linalg.inv(jacobian(x, count > 0))
            x, size, converged = contraction(residual, matrix, x, floor, 1.0, no)
            near = size <= rounding**0.5 * jnp.maximum(1, jnp.max(jnp.abs(x)))
            return x, near, converged, count + 1

        def unfinished(state: tuple) -> jax.Array:
            _, _, converged, count = state
            return ~converged & (count < self.attempts)

        no = jnp.asarray(False)
        start = guess, no, no, jnp.asarray(0)
        x, _, converged, count = jax.lax.while_loop(unfinished, attempt, start)
        return jnp.where(converged, x, guess), converged, count > 1

    def linear(
        self, x: jax.Array, memory: jax.Array, jacobian: Callable
    ) -> tuple[LinearSolve, LinearSolve]:
        inverse = jnp.linalg.inv(jacobian(jax.lax.stop_gradient(x), memory > 0))

        def solve(linear: Function, b: jax.Array) -> jax.Array:
            return refined(linear, partial(product, inverse), b)

        def transposed(linear: Function, b: jax.Array) -> jax.Array:
            return refined(linear, partial(product, inverse.T), b)

        return solve, transposed
