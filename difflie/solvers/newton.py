"""Newton's method with an exact Jacobian, and fixed-point iteration before it.

The linear equations of the root's derivative are solved in the same way as those of the step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from .line_search import chosen_line, whole
from .linear import inverse, plain_product
from .root import Function, LinearSolve, Search


@dataclass(frozen=True)
class Newton(Search):
    """Newton's method, with a Jacobian kept while each update is less than half of the last.

    The search has converged when an update is below rounding, or when updates near rounding, of x
    or of 1, no longer shrink. Looser criteria would make the invariants of a motion drift as a
    random walk. "Near" means the square root of rounding if the Jacobian was taken as near,
    otherwise `far` units of rounding, because a distant Jacobian may itself stop the contraction.
    Without convergence x is the guess. attempts: the maximal number of Jacobians.
    """

    attempts: int = 40
    far: float = 256.0

    # Whether to start with the identity for the inverse Jacobian, and at how many units of
    # rounding that iteration may stop contracting.
    iterates_first: ClassVar[bool] = False
    stalled: ClassVar[float] = 64.0

    def find(self, residual: Function, guess: jax.Array) -> tuple:
        x, converged = self._search(residual, guess, 1.0)
        return x, converged, jnp.zeros(())

    def linear(self, x: jax.Array, memory: jax.Array) -> tuple[LinearSolve, LinearSolve]:
        def solve(linear: Function, b: jax.Array) -> jax.Array:
            dx, converged = self._search(lambda dx: linear(dx) - b, jnp.zeros_like(b), 0.0)
            return jnp.where(converged, dx, jnp.nan)

        return solve, solve

    def _search(
        self, residual: Function, guess: jax.Array, unit: float
    ) -> tuple[jax.Array, jax.Array]:
        """The root, and whether the search converged.

        The residual takes long to compile. It occurs only twice: in `contraction` and in the
        Jacobian.
        """
        rounding = float(jnp.finfo(guess.dtype).eps)

        def attempt(state: tuple) -> tuple:
            x, matrix, near, _, count = state
            iterates = self.iterates_first & (count == 0)
            if self.iterates_first:
                matrix = _inverse_jacobian(residual, x, unit, matrix, needed=~iterates)
            else:
                matrix = _exact_inverse_jacobian(residual, x)
            floor = jnp.where(near, rounding**0.5, self.far * rounding)
            floor = jnp.where(iterates, self.stalled * rounding, floor)
            new, size, converged = contraction(residual, matrix, x, floor, unit, iterates)
            # The result of an iteration that does not contract is no starting point.
            new = jnp.where(iterates & ~converged, guess, new)
            near = size <= rounding**0.5 * jnp.maximum(unit, jnp.max(jnp.abs(new)))
            return new, matrix, near & ~iterates, converged, count + 1

        def unfinished(state: tuple) -> jax.Array:
            *_, converged, count = state
            return ~converged & (count < self.attempts)

        no = jnp.asarray(False)
        start = guess, jnp.eye(guess.size, dtype=guess.dtype), no, no, jnp.asarray(0)
        x, _, _, converged, _ = jax.lax.while_loop(unfinished, attempt, start)
        return jnp.where(converged, x, guess), converged


@dataclass(frozen=True)
class FixedPoint(Newton):
    """The iteration x <- x - residual(x), and Newton's method if that does not contract.

    For residuals of the form x - f(x).
    """

    iterates_first: ClassVar[bool] = True


def _inverse_jacobian(
    residual: Function, x: jax.Array, unit: float, old: jax.Array, needed: jax.Array
) -> jax.Array:
    """The inverse (n, n) of the derivative of the residual at x, by differences, where needed.

    Differences are accurate to half of the digits, and each update contracts by as much. The exact
    derivative of a vector field takes longer to compile than the rest of a step.
    """
    n = x.size
    places = jnp.arange(n)
    scale = jnp.maximum(unit, jnp.max(jnp.abs(x)))
    step = float(jnp.finfo(x.dtype).eps) ** 0.5

    def column(k: jax.Array, state: tuple) -> tuple:
        value, length, columns = state
        moved = residual(x + jnp.where(places == k, length, 0))
        # The first evaluation, k = -1, is at x.
        first = k < 0
        value = jnp.where(first, moved, value)
        largest = jnp.max(jnp.abs(value))
        length = jnp.where(first, step * jnp.maximum(scale, largest), length)
        difference = (moved - value) / length
        columns = jax.lax.dynamic_update_slice(columns, difference[None], (k, 0))
        return value, length, columns

    # Where it is not needed the loop does nothing, also in batches.
    turns = jnp.where(needed, n, -1)
    start = jnp.zeros_like(x), jnp.zeros_like(scale), old.T
    _, _, columns = jax.lax.fori_loop(-1, turns, column, start)
    return jnp.where(needed, inverse(columns.T, jnp.maximum(turns, 0)), old)


def _exact_inverse_jacobian(residual: Function, x: jax.Array) -> jax.Array:
    """The inverse (n, n) of the derivative of the residual at x, from all directions at once."""
    _, along = jax.linearize(residual, x)
    return inverse(jax.vmap(along)(jnp.eye(x.size, dtype=x.dtype)).T, x.size)


def contraction(
    residual: Function,
    matrix: jax.Array,
    x: jax.Array,
    floor: jax.Array,
    unit: float,
    patient: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """x <- x - matrix residual(x), the size of the last update, and whether it converged ().

    It goes on while each update is less than half of the one before, or of the one before that if
    `patient`: in a fixed-point iteration an error of the velocities returns through the
    accelerations. It has converged when an update is below rounding of x, or when it stops below
    `floor` of x or of `unit`. Otherwise the last update is not made, and of the one before only a
    part if that went too far (`line.py`).
    """
    rounding = float(jnp.finfo(x.dtype).eps)

    def improve(state: tuple) -> tuple:
        line, last, before, _, _ = state
        x = line.point
        change = -plain_product(matrix, residual(x))
        size = jnp.max(jnp.abs(change))
        scale = jnp.max(jnp.abs(x + change))
        stopped = ~(size < jnp.where(patient, before, last) / 2)
        near = size <= floor.astype(x.dtype) * jnp.maximum(unit, scale)
        settled = (size <= rounding * scale) | (stopped & near)
        line, shorter, ended = line.next(x, change, stopped & ~settled & ~patient)
        done = settled | ((stopped | ended) & ~shorter)
        end = whole(x, jnp.where(settled, change, 0))
        line = chosen_line(done, end, line)
        last, before = (jnp.where(shorter, a, b) for a, b in ((last, size), (before, last)))
        return line, last, before, done, settled

    infinite, no = jnp.asarray(jnp.inf, x.dtype), jnp.asarray(False)
    start = whole(x, jnp.zeros_like(x)), infinite, infinite, no, no
    line, size, _, _, settled = jax.lax.while_loop(lambda s: ~s[3], improve, start)
    return line.point, size, settled
