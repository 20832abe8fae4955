"""Roots of the equations of one implicit step, and their derivatives.

A `Search` finds the root. It is differentiated by the implicit function theorem, in forward and
reverse mode, for every search: r(x, p) = 0 implies dx = -(dr/dx)^-1 (dr/dp) dp.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero

from ..native import without_closure

Function = Callable[[jax.Array], jax.Array]
LinearSolve = Callable[[Function, jax.Array], jax.Array]


class Search(abc.ABC):
    """A way to find a root, and to solve linear equations with the derivative at it."""

    def functions(self, guess: jax.Array) -> Sequence[tuple[Callable[..., Any], tuple]]:
        """The functions that it uses besides the residual, and arguments to trace them with.

        They may close over traced values. They are the last arguments of the other methods.
        """
        return ()

    @abc.abstractmethod
    def find(
        self, residual: Function, guess: jax.Array, *functions: Callable[..., Any]
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """The root x (n,), whether the search converged (), and a memory array for `linear`."""

    @abc.abstractmethod
    def linear(
        self, x: jax.Array, memory: jax.Array, *functions: Callable[..., Any]
    ) -> tuple[LinearSolve, LinearSolve]:
        """Solvers of (dr/dx) dx = b for dx (n,), and of the transposed equations.

        Each is a function of the linear map and b (n,), and returns NaN if it fails.
        """


def root(residual: Function, guess: jax.Array, search: Search) -> tuple[jax.Array, jax.Array]:
    """The root x (n,) of residual(x) (n,) near the guess (n,), and whether the search converged ().

    x is differentiated with respect to everything that the residual closes over, by the implicit
    function theorem. It does not vary with the guess, nor with what the functions of the search
    close over.
    """
    return found(residual, guess, search)[:2]


def found(
    residual: Function, guess: jax.Array, search: Search
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """As `root`, with the memory of the search."""
    if not guess.size:
        return guess, jnp.asarray(True), jnp.zeros((), guess.dtype)
    guess = jax.lax.stop_gradient(guess)
    explicit, closed_over = without_closure(residual, guess)
    pairs = [without_closure(f, *like) for f, like in search.functions(guess)]
    functions, held = [f for f, _ in pairs], [constants for _, constants in pairs]

    def bound(held: list) -> list[Callable[..., Any]]:
        return [lambda *args, f=f, c=c: f(c, *args) for f, c in zip(functions, held, strict=True)]

    @jax.custom_jvp
    def solved(closed_over: list, held: list, guess: jax.Array) -> tuple:
        x, converged, memory = search.find(lambda x: explicit(closed_over, x), guess, *bound(held))
        # As floats, so that their tangents are zeros.
        return x, converged.astype(guess.dtype), memory.astype(guess.dtype)

    def derivative(primals: tuple, tangents: tuple) -> tuple:
        closed_over, held, _ = primals
        x, converged, memory = solved(*primals)
        held = jax.lax.stop_gradient(held)
        moving = [i for i, d in enumerate(tangents[0]) if not isinstance(d, SymbolicZero)]

        def moved(*values: jax.Array) -> jax.Array:
            new = list(closed_over)
            for i, value in zip(moving, values, strict=True):
                new[i] = value
            return explicit(new, x)

        dx = jnp.zeros_like(x)
        if moving:
            directions = [tangents[0][i] for i in moving]
            _, change = jax.jvp(moved, [closed_over[i] for i in moving], directions)
            _, linear = jax.linearize(lambda x: explicit(closed_over, x), x)
            solves = search.linear(x, memory, *bound(held))
            dx = jax.lax.custom_linear_solve(linear, -change, *solves)
        return (x, converged, memory), (dx, jnp.zeros_like(converged), jnp.zeros_like(memory))

    solved.defjvp(derivative, symbolic_zeros=True)
    x, converged, memory = solved(closed_over, held, guess)
    return x, converged > 0, memory


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
