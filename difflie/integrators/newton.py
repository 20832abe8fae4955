"""Newton's method and fixed-point iteration, for the equations of one implicit step.

A root is differentiated by the implicit function theorem, in forward and reverse mode, whatever way
it was found; the linear equations of its derivative are solved as those of the step are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import eval_jaxpr
from jax.custom_derivatives import SymbolicZero

from .elimination import inverse, product

Function = Callable[[jax.Array], jax.Array]
Solver = Callable[[Function, jax.Array, float], tuple[jax.Array, jax.Array]]

_JACOBIANS = 12


def newton(residual: Function, guess: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The root x (n,) of residual(x) (n,) near the guess (n,), and whether it was found ().

    Newton's method; a Jacobian is kept for as long as each update is less than half of the one
    before. The root is found when an update is below rounding, or when updates below the square
    root of rounding, of x or of 1, shrink no more: what a step leaves unsolved would be a random
    walk of its invariants. Where none is found x is the guess. The residual may close over traced
    values.
    """
    return _differentiable(_newton, residual, guess)


def fixed_point(function: Function, guess: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The x (n,) near the guess (n,) with function(x) = x, and whether it was found ().

    Found by iteration, and by `newton` where that does not contract.
    """
    return _differentiable(_iteration, lambda x: x - function(x), guess)


def _differentiable(solve: Solver, residual: Function, guess: jax.Array) -> tuple:
    closed = jax.make_jaxpr(residual)(guess)
    x, found = _root(solve, closed.jaxpr, closed.consts, guess)
    return x, found > 0


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _root(solve: Solver, jaxpr: Any, constants: Any, guess: jax.Array) -> tuple:
    x, found = solve(lambda x: eval_jaxpr(jaxpr, constants, x)[0], guess, 1.0)
    # As a number, whose tangent is zero.
    return x, found.astype(guess.dtype)


def _root_jvp(solve: Solver, jaxpr: Any, primals: Any, tangents: Any) -> tuple:
    constants, guess = primals
    x, found = _root(solve, jaxpr, constants, guess)
    varied = [i for i, d in enumerate(tangents[0]) if not isinstance(d, SymbolicZero)]

    def moved(*values: Any) -> jax.Array:
        given = list(constants)
        for i, value in zip(varied, values, strict=True):
            given[i] = value
        return eval_jaxpr(jaxpr, given, x)[0]

    def linear_root(linear: Function, rhs: jax.Array) -> jax.Array:
        dx, found = solve(lambda dx: linear(dx) - rhs, jnp.zeros_like(rhs), 0.0)
        return jnp.where(found, dx, jnp.nan)

    dx = jnp.zeros_like(x)
    if varied:
        given = [constants[i] for i in varied]
        _, change = jax.jvp(moved, given, [tangents[0][i] for i in varied])
        _, linear = jax.linearize(lambda x: eval_jaxpr(jaxpr, constants, x)[0], x)
        dx = jax.lax.custom_linear_solve(linear, -change, linear_root, linear_root)
    return (x, found), (dx, jnp.zeros_like(found))


_root.defjvp(_root_jvp, symbolic_zeros=True)


def _newton(residual: Function, guess: jax.Array, unit: float) -> tuple[jax.Array, jax.Array]:
    rounding = float(jnp.finfo(guess.dtype).eps)

    def with_new_jacobian(state: tuple) -> tuple:
        x, _, count = state
        approximate = inverse(jax.jacfwd(residual)(x))
        x, found = _contraction(
            residual, lambda r: product(approximate, r), x, 1, rounding**0.5, unit
        )
        return x, found, count + 1

    def unfinished(state: tuple) -> jax.Array:
        _, found, count = state
        return ~found & (count < _JACOBIANS)

    start = guess, jnp.asarray(False), jnp.asarray(0)
    x, found, _ = jax.lax.while_loop(unfinished, with_new_jacobian, start)
    return jnp.where(found, x, guess), found


def _iteration(residual: Function, guess: jax.Array, unit: float) -> tuple[jax.Array, jax.Array]:
    rounding = float(jnp.finfo(guess.dtype).eps)
    # Two of a kind: an error of the velocities returns through the accelerations.
    x, found = _contraction(residual, lambda r: r, guess, 2, 64 * rounding, unit)

    def by_newton(_: Any) -> tuple[jax.Array, jax.Array, jax.Array]:
        x, found = _newton(residual, guess, unit)
        return x, found, jnp.asarray(True)

    # A loop that runs once, and not at all where it need not, also in batches.
    state = x, found, found
    x, found, _ = jax.lax.while_loop(lambda s: ~s[2], by_newton, state)
    return x, found


def _contraction(
    residual: Function, correct: Function, x: jax.Array, patience: int, floor: float, unit: float
) -> tuple[jax.Array, jax.Array]:
    """x <- x - correct(residual(x)), and whether it has settled ().

    It goes on while each update is less than half of the one `patience` before. It has settled when
    an update is below rounding of x, or when it stops below `floor` of x or of `unit`; otherwise
    the update that ends it is not made.
    """
    rounding = jnp.finfo(x.dtype).eps

    def improve(state: tuple) -> tuple:
        x, before, _, _ = state
        update = correct(residual(x))
        new = x - update
        size = jnp.max(jnp.abs(update), initial=0)
        scale = jnp.max(jnp.abs(new), initial=0)
        exact = size <= rounding * scale
        stopped = ~(size < before[0] / 2)
        settled = exact | (stopped & (size <= floor * jnp.maximum(unit, scale)))
        before = jnp.append(before[1:], size)
        return jnp.where(stopped & ~settled, x, new), before, stopped | settled, settled

    before = jnp.full(patience, jnp.inf, x.dtype)
    start = x, before, jnp.asarray(False), jnp.asarray(False)
    x, _, _, settled = jax.lax.while_loop(lambda s: ~s[2], improve, start)
    return x, settled
