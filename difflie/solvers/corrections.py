"""Newton's method with a user's Newton step, an O(n) recursion or a projection, or Jacobian."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp

from .line_search import chosen_line, whole
from .linear import inverted, product
from .newton import contraction
from .root import Function, LinearSolve, Search, refined


@dataclass(frozen=True)
class Corrections(Search):
    """Newton's method with correction(x, b) (n,), about -residual'(x)^-1 (residual(x) - b).

    The search uses b = 0. The derivative of the correction by b (n,) solves the equations of the
    root's derivatives.

    The search has converged when the correction is below a few units of rounding of max(1, |x|),
    when the next one would be at the same rate of contraction, or when it no longer shrinks, far
    below the square root of rounding. Looser criteria would make the invariants of a motion drift
    as a random walk. A step that went too far is shortened (`line.py`). A correction that is not
    finite is not applied, and ends the search. exact: whether a correction solves linear equations
    to rounding; others are refined where derivatives need them.
    """

    correction: Callable[[jax.Array, jax.Array], jax.Array]
    iterations: int = 400
    exact: bool = False

    def functions(self, guess: jax.Array) -> list:
        return [(self.correction, (guess, jnp.zeros_like(guess)))]

    def find(self, residual: Function, guess: jax.Array, correction: Callable) -> tuple:
        eps = jnp.finfo(guess.dtype).eps

        def improve(state: tuple) -> tuple:
            line, before, _, _, count = state
            x = line.point
            change = correction(x, jnp.zeros_like(x))
            size = jnp.max(jnp.abs(change))
            scale = jnp.maximum(1, jnp.max(jnp.abs(x)))
            small = (size <= 32 * eps * scale) | (
                size * size <= eps * scale * jnp.minimum(before, 1)
            )
            stalled = (size >= before / 2) & (size <= 1e6 * eps * scale)
            converged = small | stalled
            line, shorter, _ = line.next(x, change, ~(size < before / 2) & ~converged)
            ended = converged | (~jnp.isfinite(size) & ~shorter)
            line = chosen_line(ended, whole(x, jnp.where(converged, change, 0)), line)
            return line, jnp.where(shorter, before, size), converged, ended, count + 1

        def unfinished(state: tuple) -> jax.Array:
            *_, ended, count = state
            return ~ended & (count < self.iterations)

        no, infinite = jnp.asarray(False), jnp.asarray(jnp.inf, guess.dtype)
        start = whole(guess, jnp.zeros_like(guess)), infinite, no, no, jnp.asarray(0)
        line, _, converged, _, _ = jax.lax.while_loop(unfinished, improve, start)
        return line.point, converged, jnp.zeros(())

    def linear(
        self, x: jax.Array, memory: jax.Array, correction: Callable
    ) -> tuple[LinearSolve, LinearSolve]:
        def at_root(b: jax.Array) -> jax.Array:
            return correction(x, b)

        def inverse(b: jax.Array) -> jax.Array:
            return jax.jvp(at_root, (0 * b,), (b,))[1]

        def inverse_transposed(b: jax.Array) -> jax.Array:
            return jax.vjp(at_root, 0 * b)[1](b)[0]

        def solve(linear: Function, b: jax.Array) -> jax.Array:
            return inverse(b) if self.exact else refined(linear, inverse, b)

        def transposed(linear: Function, b: jax.Array) -> jax.Array:
            return inverse_transposed(b) if self.exact else refined(linear, inverse_transposed, b)

        return solve, transposed


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
            matrix = inverted(jacobian(x, count > 0))
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
        inverse = inverted(jacobian(jax.lax.stop_gradient(x), memory > 0))

        def solve(linear: Function, b: jax.Array) -> jax.Array:
            return refined(linear, partial(product, inverse), b)

        def transposed(linear: Function, b: jax.Array) -> jax.Array:
            return refined(linear, partial(product, inverse.T), b)

        return solve, transposed
