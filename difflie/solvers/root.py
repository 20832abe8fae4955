"""Roots of the equations of one implicit step, and their derivatives.

A `Search` finds the root. Whatever way it was found, it is differentiated by the implicit function
theorem, in forward and reverse mode: where r(x, p) = 0 holds, dx = -(dr/dx)^-1 (dr/dp) dp.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
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
        """The functions that it takes besides the residual, and arguments to trace them with.

        They may close over traced values, and come back as the last arguments of the others.
        """
        return ()

    @abc.abstractmethod
    def find(
        self, residual: Function, guess: jax.Array, *functions: Callable[..., Any]
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """The root x (n,), whether it was found (), and what `linear` needs to know: an array."""

    @abc.abstractmethod
    def linear(
        self, x: jax.Array, memory: jax.Array, *functions: Callable[..., Any]
    ) -> tuple[LinearSolve, LinearSolve]:
        """How (dr/dx) dx = b is solved for dx (n,), and the transposed equations.

        Each as a function of the linear map and b (n,); not numbers where it fails.
        """


def root(residual: Function, guess: jax.Array, search: Search) -> tuple[jax.Array, jax.Array]:
    """The root x (n,) of residual(x) (n,) near the guess (n,), and whether it was found ().

    The derivative of x is that of the root, by all that the residual closes over; x does not vary
    with the guess, nor with what the functions of the search close over.
    """
    if not guess.size:
        return guess, jnp.asarray(True)
    guess = jax.lax.stop_gradient(guess)
    explicit, given = without_closure(residual, guess)
    pairs = [without_closure(f, *like) for f, like in search.functions(guess)]
    functions = [f for f, _ in pairs]
    held = jax.lax.stop_gradient([constants for _, constants in pairs])

    def bound(held: list) -> list[Callable[..., Any]]:
        return [lambda *args, f=f, c=c: f(c, *args) for f, c in zip(functions, held, strict=True)]

    @jax.custom_jvp
    def solved(given: list, held: list, guess: jax.Array) -> tuple:
        x, found, memory = search.find(lambda x: explicit(given, x), guess, *bound(held))
        # As numbers, whose tangents are zero.
        return x, found.astype(guess.dtype), memory.astype(guess.dtype)

    def derivative(primals: tuple, tangents: tuple) -> tuple:
        given, held, _ = primals
        x, found, memory = solved(*primals)
        moving = [i for i, d in enumerate(tangents[0]) if not isinstance(d, SymbolicZero)]

        def moved(*values: jax.Array) -> jax.Array:
            new = list(given)
            for i, value in zip(moving, values, strict=True):
                new[i] = value
            return explicit(new, x)

        dx = jnp.zeros_like(x)
        if moving:
            directions = [tangents[0][i] for i in moving]
            _, change = jax.jvp(moved, [given[i] for i in moving], directions)
            _, linear = jax.linearize(lambda x: explicit(given, x), x)
            solves = search.linear(x, memory, *bound(held))
            dx = jax.lax.custom_linear_solve(linear, -change, *solves)
        return (x, found, memory), (dx, jnp.zeros_like(found), jnp.zeros_like(memory))

    solved.defjvp(derivative, symbolic_zeros=True)
    x, found, _ = solved(given, held, guess)
    return x, found > 0
