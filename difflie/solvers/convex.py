"""The minimum of a convex function, by Newton's method with an exact line search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from .root import Function, LinearSolve, Search


@dataclass(frozen=True)
class ConvexNewton(Search):
    """The root of a residual r(x) (n,) that is the gradient of a strictly convex function.

    hessian(x) (n, n): its derivative, symmetric and positive definite, one of the one-sided ones
    where it jumps. size(x) (): what rounding errors of r are measured by. Every direction is
    followed to where r has no part along it, so that the search converges from anywhere. It has
    converged where r is small, or where steps are rounding errors. iterations: of Newton's method.
    """

    hessian: Callable[[jax.Array], jax.Array]
    size: Callable[[jax.Array], jax.Array]
    iterations: int | jax.Array = 60

    def functions(self, guess: jax.Array) -> list:
        return [(self.hessian, (guess,)), (self.size, (guess,))]

    def find(
        self, residual: Function, guess: jax.Array, hessian: Callable, size: Callable
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        eps = float(jnp.finfo(guess.dtype).eps)

        def improve(state: tuple) -> tuple:
            x, d, before, _, _, count = state
            share, r = _least(residual, x, d, -jnp.sum(d * before))
            step = share * d
            x, moved, largest = x + step, jnp.max(jnp.abs(step)), jnp.max(jnp.abs(r))
            scale = size(x)
            # Where the function is steep, rounding errors of r are large, but not those of x.
            small = largest <= 100 * eps * scale
            still = (count > 0) & (moved <= 32 * eps * scale)
            direction = -_solved(hessian(x), r)
            return x, direction, r, small | still, ~jnp.isfinite(largest), count + 1

        def unfinished(state: tuple) -> jax.Array:
            *_, done, lost, count = state
            return ~done & ~lost & (count <= self.iterations)

        # The first line has no length: it evaluates the residual where the search begins.
        none, no = jnp.zeros_like(guess), jnp.asarray(False)
        start = guess, none, none, no, no, jnp.asarray(0)
        x, _, _, done, _, _ = jax.lax.while_loop(unfinished, improve, start)
        return x, done, jnp.zeros(())

    def linear(
        self, x: jax.Array, memory: jax.Array, hessian: Callable, size: Callable
    ) -> tuple[LinearSolve, LinearSolve]:
        def solve(linear: Function, b: jax.Array) -> jax.Array:
            return _solved(hessian(x), b)

        return solve, solve


def _least(
    residual: Function, x: jax.Array, d: jax.Array, slope: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The length a () at which the residual has no part along d (n,), and the residual there (n,).

    slope (): minus that part at x. The part f(a) = d . r(x + a d) grows with a. After the whole
    step, or double ones, by false position, which halves the part at an end that stays (Illinois).
    """

    def follow(state: tuple) -> tuple:
        a, low, below, high, above, _, _, _, count = state
        r = residual(x + a * d)
        f = jnp.sum(d * r)
        short = f < 0
        above = jnp.where(short & (low > 0), above / 2, above)
        below = jnp.where(~short & (high < jnp.inf), below / 2, below)
        low, below = jnp.where(short, a, low), jnp.where(short, f, below)
        high, above = jnp.where(short, high, a), jnp.where(short, above, f)
        bounded = high < jnp.inf
        width = jnp.where(bounded, high - low, a)
        wide = jnp.where(above > below, above - below, 1)
        new = jnp.where(bounded, low - below * width / wide, 2 * a)
        # Not larger, so that what is not a number ends the search, too.
        done = ~(jnp.abs(f) > 1e-2 * slope)
        return new, low, below, high, above, a, r, done, count + 1

    def unfinished(state: tuple) -> jax.Array:
        *_, done, count = state
        return ~done & (count < 40)

    zero, one = jnp.zeros_like(slope), jnp.ones_like(slope)
    start = one, zero, -slope, one * jnp.inf, zero, zero, x, jnp.asarray(False), jnp.asarray(0)
    *_, a, r, _, _ = jax.lax.while_loop(unfinished, follow, start)
    return a, r


def _solved(a: jax.Array, b: jax.Array) -> jax.Array:
    """x (n,) with a x = b (n,), for a (n, n) that is positive definite."""
    factor = jax.lax.linalg.cholesky(a[::-1, ::-1], symmetrize_input=False)
    both = b[::-1, None]
    for across in (False, True):
        both = jax.lax.linalg.triangular_solve(
            factor, both, left_side=True, lower=True, transpose_a=across
        )
    return both[::-1, 0]
