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

_ATTEMPTS = 12


def newton(residual: Function, guess: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The root x (n,) of residual(x) (n,) near the guess (n,), and whether it was found ().

    Newton's method, with differences for the Jacobian, which is kept for as long as each update is
    less than half of the one before. The root is found when an update is below rounding, or when
    updates near rounding, of x or of 1, shrink no more: what a step leaves unsolved would be a
    random walk of its invariants. Near is the square root of rounding for a Jacobian from as near,
    and a few hundred units of rounding for others, which may themselves be why the updates shrink
    no more. Where none is found x is the guess. The residual may close over traced values.
    """
    return _differentiable(functools.partial(_search, iterate_first=False), residual, guess)


def fixed_point(function: Function, guess: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The x (n,) near the guess (n,) with function(x) = x, and whether it was found ().

    Found by iteration, and by `newton` where that does not contract.
    """
    solve = functools.partial(_search, iterate_first=True)
    return _differentiable(solve, lambda x: x - function(x), guess)


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


def _search(
    residual: Function, guess: jax.Array, unit: float, *, iterate_first: bool
) -> tuple[jax.Array, jax.Array]:
    """The root and whether it was found; to iterate is to take one for the first Jacobian.

    The residual, long to compile, stands where it contracts and in the Jacobian, and nowhere else.
    """

    def attempt(state: tuple) -> tuple:
        x, matrix, near, _, count = state
        iterates = iterate_first & (count == 0)
        if iterate_first:
            matrix = _inverse_jacobian(residual, x, unit, matrix, needed=~iterates)
        else:
            matrix = _batched_inverse_jacobian(residual, x, unit)
        floor = jnp.where(iterates, 64 * rounding, jnp.where(near, rounding**0.5, 256 * rounding))
        new, size, found = contraction(residual, matrix, x, floor, unit, iterates)
        # What an iteration that does not contract has reached is no place to start from.
        new = jnp.where(iterates & ~found, guess, new)
        near = size <= rounding**0.5 * jnp.maximum(unit, jnp.max(jnp.abs(new), initial=0))
        return new, matrix, near & ~iterates, found, count + 1

    def unfinished(state: tuple) -> jax.Array:
        *_, found, count = state
        return ~found & (count < _ATTEMPTS)

    if not guess.size:
        return guess, jnp.asarray(True)
    rounding = float(jnp.finfo(guess.dtype).eps)
    no = jnp.asarray(False)
    start = guess, jnp.eye(guess.size, dtype=guess.dtype), no, no, jnp.asarray(0)
    x, _, _, found, _ = jax.lax.while_loop(unfinished, attempt, start)
    return jnp.where(found, x, guess), found


def _inverse_jacobian(
    residual: Function, x: jax.Array, unit: float, old: jax.Array, needed: jax.Array
) -> jax.Array:
    """The inverse of the derivative of the residual at x (n, n), by differences, where needed.

    They are good to half of the digits, which is enough to contract by as much in each update; to
    compile the exact derivative of a vector field takes longer than all the rest of a step.
    """
    n = x.size
    places = jnp.arange(n)
    scale = jnp.maximum(unit, jnp.max(jnp.abs(x), initial=0))
    step = float(jnp.finfo(x.dtype).eps) ** 0.5

    def column(k: jax.Array, state: tuple) -> tuple:
        here, step_here, columns = state
        moved = residual(x + jnp.where(places == k, step_here, 0))
        # The first evaluation, of k = -1, is at x.
        first = k < 0
        here = jnp.where(first, moved, here)
        largest = jnp.max(jnp.abs(here), initial=0)
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
        size = jnp.max(jnp.abs(update), initial=0)
        scale = jnp.max(jnp.abs(new), initial=0)
        stopped = ~(size < jnp.where(patient, before, last) / 2)
        near = size <= floor.astype(x.dtype) * jnp.maximum(unit, scale)
        settled = (size <= rounding * scale) | (stopped & near)
        return jnp.where(stopped & ~settled, x, new), size, last, stopped | settled, settled

    infinite, no = jnp.asarray(jnp.inf, x.dtype), jnp.asarray(False)
    start = x, infinite, infinite, no, no
    x, size, _, _, settled = jax.lax.while_loop(lambda s: ~s[3], improve, start)
    return x, size, settled
