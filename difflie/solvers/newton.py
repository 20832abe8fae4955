"""Newton's method with differences for the Jacobian, and fixed-point iteration.

The linear equations of the root's derivative are solved as those of the step are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from .elimination import inverse, product
from .root import Function, LinearSolve, Search


@dataclass(frozen=True)
class Newton(Search):
    """Newton's method, with a Jacobian kept while each update is less than half of the last.

    The root is found when an update is below rounding, or when updates near rounding, of x or of 1,
    shrink no more: what a step leaves unsolved would be a random walk of its invariants. Near is
    the square root of rounding for a Jacobian from as near, and `far` units of rounding for others,
    which may themselves be why the updates shrink no more. Where none is found x is the guess.
    attempts: how many Jacobians are tried.
    """

    attempts: int = 12
    far: float = 256.0

    # Whether to begin with the identity for the inverse Jacobian, and for how many units of
    # rounding that may stop to contract.
    iterates_first: ClassVar[bool] = False
    stalled: ClassVar[float] = 64.0

    def find(self, residual: Function, guess: jax.Array) -> tuple:
        x, found = self._search(residual, guess, 1.0)
        return x, found, jnp.zeros(())

    def linear(self, x: jax.Array, memory: jax.Array) -> tuple[LinearSolve, LinearSolve]:
        def solve(linear: Function, b: jax.Array) -> jax.Array:
            dx, found = self._search(lambda dx: linear(dx) - b, jnp.zeros_like(b), 0.0)
            return jnp.where(found, dx, jnp.nan)

        return solve, solve

    def _search(
        self, residual: Function, guess: jax.Array, unit: float
    ) -> tuple[jax.Array, jax.Array]:
        """The root and whether it was found.

        The residual, long to compile, stands where it contracts and in the Jacobian, and nowhere
        else.
        """
        rounding = float(jnp.finfo(guess.dtype).eps)

        def attempt(state: tuple) -> tuple:
            x, matrix, near, _, count = state
            iterates = self.iterates_first & (count == 0)
            if self.iterates_first:
                matrix = _inverse_jacobian(residual, x, unit, matrix, needed=~iterates)
            else:
                matrix = _batched_inverse_jacobian(residual, x, unit)
            floor = jnp.where(near, rounding**0.5, self.far * rounding)
            floor = jnp.where(iterates, self.stalled * rounding, floor)
            new, size, found = contraction(residual, matrix, x, floor, unit, iterates)
            # What an iteration that does not contract has reached is no place to start from.
            new = jnp.where(iterates & ~found, guess, new)
            near = size <= rounding**0.5 * jnp.maximum(unit, jnp.max(jnp.abs(new)))
            return new, matrix, near & ~iterates, found, count + 1

        def unfinished(state: tuple) -> jax.Array:
            *_, found, count = state
            return ~found & (count < self.attempts)

        no = jnp.asarray(False)
        start = guess, jnp.eye(guess.size, dtype=guess.dtype), no, no, jnp.asarray(0)
        x, _, _, found, _ = jax.lax.while_loop(unfinished, attempt, start)
        return jnp.where(found, x, guess), found


@dataclass(frozen=True)
class FixedPoint(Newton):
    """The iteration x <- x - residual(x), and Newton's method where that does not contract.

    For a residual x - f(x).
    """

    iterates_first: ClassVar[bool] = True


def _inverse_jacobian(
    residual: Function, x: jax.Array, unit: float, old: jax.Array, needed: jax.Array
) -> jax.Array:
    """The inverse of the derivative of the residual at x (n, n), by differences, where needed.

    They are good to half of the digits, which is enough to contract by as much in each update; to
    compile the exact derivative of a vector field takes longer than all the rest of a step.
    """
    n = x.size
    places = jnp.arange(n)
    scale = jnp.maximum(unit, jnp.max(jnp.abs(x)))
    step = float(jnp.finfo(x.dtype).eps) ** 0.5

    def column(k: jax.Array, state: tuple) -> tuple:
        here, step_here, columns = state
        moved = residual(x + jnp.where(places == k, step_here, 0))
        # The first evaluation, of k = -1, is at x.
        first = k < 0
        here = jnp.where(first, moved, here)
        largest = jnp.max(jnp.abs(here))
        step_here = jnp.where(first, step * jnp.maximum(scale, largest), step_here)
        difference = (moved - here) / step_here
        columns = jax.lax.dynamic_update_slice(columns, difference[None], (k, 0))
        return here, step_here, columns

    # Loops of no turns, where it is not needed, cost nothing, also in batches.
    turns = jnp.where(needed, n, -1)
    start = jnp.zeros_like(x), jnp.zeros_like(scale), old.T
    _, _, columns = jax.lax.fori_loop(-1, turns, column, start)
    return jnp.where(needed, inverse(columns.T, jnp.maximum(turns, 0)), old)


def _batched_inverse_jacobian(residual: Function, x: jax.Array, unit: float) -> jax.Array:
    """The same, from all differences at once: twice as fast for some tens of unknowns.

    Where it is seldom needed it would only make the program larger, and slower.
    """
    here = residual(x)
    sizes = (jnp.max(jnp.abs(a), initial=unit) for a in (x, here))
    length = float(jnp.finfo(x.dtype).eps) ** 0.5 * jnp.maximum(*sizes)
    moved = jax.vmap(residual)(x + length * jnp.eye(x.size, dtype=x.dtype))
    return inverse(((moved - here) / length).T, x.size)


def contraction(
    residual: Function,
    matrix: jax.Array,
    x: jax.Array,
    floor: jax.Array,
    unit: float,
    patient: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """x <- x - matrix residual(x), the size of the last update, and whether it has settled ().

    It goes on while each update is less than half of the one before, or of the one before that if
    `patient`: in an iteration an error of the velocities returns through the accelerations. It has
    settled when an update is below rounding of x, or when it stops below `floor` of x or of `unit`;
    otherwise the update that ends it is not made.
    """
    rounding = float(jnp.finfo(x.dtype).eps)

    def improve(state: tuple) -> tuple:
        x, last, before, _, _ = state
        update = product(matrix, residual(x))
        new = x - update
        size = jnp.max(jnp.abs(update))
        scale = jnp.max(jnp.abs(new))
        stopped = ~(size < jnp.where(patient, before, last) / 2)
        near = size <= floor.astype(x.dtype) * jnp.maximum(unit, scale)
        settled = (size <= rounding * scale) | (stopped & near)
        return jnp.where(stopped & ~settled, x, new), size, last, stopped | settled, settled

    infinite, no = jnp.asarray(jnp.inf, x.dtype), jnp.asarray(False)
    start = x, infinite, infinite, no, no
    x, size, _, _, settled = jax.lax.while_loop(lambda s: ~s[3], improve, start)
    return x, size, settled
