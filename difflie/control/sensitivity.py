"""Derivatives of solutions, without those of the search that found them.

The optimal cost moves with the numbers of a problem as its Lagrangian does at fixed points,
controls and multipliers (envelope theorem). The solution itself moves as the conditions of the
optimum demand (implicit function theorem): with the exact Hessian of the Lagrangian in local
coordinates, bounds that are active as equations and the others left out, it is the solution of a
linear-quadratic problem, found by one Riccati sweep.

What hangs together, with F(numbers, solution) the conditions (`_first_order`, in the order of
`Unknowns`) and K the matrix of `kkt`:

    cost       d cost = dL / d numbers, solution held       no derivative of the solution enters
    solution   K d solution = -dF / d numbers               K = dF / d solution, symmetric

F and K are of one Lagrangian, with the same signs and the same active bounds (multipliers that are
not zero): a bound that is active in one and not in the other makes derivatives wrong, not NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from .. import native
from .discretization import Discretization, Motion, Point
from .kkt import Solution, Unknowns, matrices
from .linear_quadratic import costates, with_bounds
from .model import model_of
from .penalty import Bounds
from .plan import Plan
from .solver import made_plan


class Numbers(NamedTuple):
    """What a solution is differentiated by: the numbers of the problem, and its start."""

    knots: Discretization
    q0: jax.Array
    v0: jax.Array


def differentiable(numbers: Numbers, plan: Plan) -> Plan:
    """A plan with the derivatives of a solution by the numbers, of which it has none itself.

    Those of a plan that did not converge, which is no solution, are NaN.
    """
    factor = jnp.where(plan.result.converged, 1.0, jnp.nan).astype(plan.cost.dtype)
    numbers = _scaled(numbers, factor)
    solution = _solution(jax.lax.stop_gradient(numbers.knots), plan)
    cost = optimal_cost(numbers, solution, plan.cost)
    moved = optimum(numbers, solution)
    changed = made_plan(
        numbers.knots,
        moved.motion,
        cost,
        plan.gaps,
        plan.gains,
        moved.costates,
        moved.multipliers,
        plan.result,
    )
    return changed


@eqx.filter_jit
def _solution(knots: Discretization, plan: Plan) -> Solution:
    """The solution in a plan, with what the box of the controls holds."""
    u = plan.u[1:] if knots.linear else plan.u
    motion = Motion(Point(plan.q, plan.v, plan.z, plan.own), u)
    along, end = plan.multipliers
    lq = with_bounds(model_of(knots, motion), knots.nz, (along, 0 * along), (end, 0 * end))
    lam, slope = costates(lq)
    pull = lam[0, knots.nx - knots.nz :]
    slope = _held(slope, u, knots.u_lower, knots.u_upper)
    pull = _held(pull, plan.z[0], knots.z_lower, knots.z_upper)
    return Solution(motion, lam, plan.multipliers, slope, pull)


def _held(slope: Any, x: Any, lower: Any, upper: Any) -> jax.Array:
    """The slope where it pushes against a bound, and zero elsewhere."""
    held = ((x <= lower) & (slope > 0)) | ((x >= upper) & (slope < 0))
    return jnp.where(held, slope, 0.0)


@jax.custom_jvp
def _scaled(numbers: Numbers, factor: jax.Array) -> Numbers:
    """The numbers; the factor () multiplies whatever is derived by them."""
    return numbers


def _scaled_jvp(primals: tuple, tangents: tuple) -> tuple:
    numbers, factor = primals
    of_number = lambda t: t if t.dtype == jax.dtypes.float0 else t * factor.astype(t.dtype)  # noqa: E731
    return _scaled(numbers, factor), jax.tree.map(of_number, tangents[0])


_scaled.defjvp(_scaled_jvp)


@jax.custom_jvp
def optimal_cost(numbers: Numbers, solution: Solution, cost: jax.Array) -> jax.Array:
    """The cost () of a solution; its derivative is that of the Lagrangian."""
    return cost


def _cost_jvp(primals: tuple, tangents: tuple) -> tuple:
    numbers, solution, cost = primals
    values, changes, given = _varied(numbers, tangents[0])
    # Of the second derivative: the first one is taken at a solution that moves.
    cost, moving = optimal_cost(numbers, solution, cost), optimum(numbers, solution)
    if not values:
        return cost, jnp.zeros_like(cost)
    lagrangian = lambda *values: _lagrangian(given(values), moving)  # noqa: E731
    return cost, jax.jvp(lagrangian, values, changes)[1]


optimal_cost.defjvp(_cost_jvp, symbolic_zeros=True)


@jax.custom_jvp
def optimum(numbers: Numbers, solution: Solution) -> Solution:
    """The solution; its derivative is that of what solves the conditions of the optimum."""
    return solution


def _optimum_jvp(primals: tuple, tangents: tuple) -> tuple:
    numbers, solution = primals
    values, changes, given = _varied(numbers, tangents[0])
    moving = optimum(numbers, solution)
    if not values:
        return moving, jax.tree.map(jnp.zeros_like, solution)
    return moving, _moved(given, values, changes, moving)


optimum.defjvp(_optimum_jvp, symbolic_zeros=True)


def _varied(numbers: Numbers, tangents: Numbers) -> tuple[list, list, Callable]:
    """The leaves that vary, their changes, and the numbers with other values of those leaves."""
    leaves, structure = jax.tree.flatten(numbers)
    none = lambda x: isinstance(x, jax.custom_derivatives.SymbolicZero)  # noqa: E731
    changes = jax.tree.leaves(tangents, is_leaf=none)
    at = [i for i, change in enumerate(changes) if not none(change)]

    def given(values: Any) -> Numbers:
        filled = list(leaves)
        for i, value in zip(at, values, strict=True):
            filled[i] = value
        return jax.tree.unflatten(structure, filled)

    return [leaves[i] for i in at], [changes[i] for i in at], given


def _lagrangian(numbers: Numbers, s: Solution) -> jax.Array:
    """The Lagrangian () of the numbers, at fixed points, controls and multipliers."""
    knots, (x, u) = numbers.knots, s.motion
    bounds = Bounds.of(knots)

    def along(
        knots: Discretization, x: Point, u: Any, k: Any, end: Point, costate: Any, multiplier: Any
    ):
        r, w = knots.residuals(x, u, k)
        gap = knots.difference(end, knots.step(x, u, k))
        return jnp.sum(w * r * r) / 2 + costate @ gap + multiplier @ knots.bounded(x, u, k)

    def at_end(knots: Discretization, x: Point, multiplier: Any):
        r, w = knots.final_residuals(x)
        return jnp.sum(w * r * r) / 2 + multiplier @ knots.final_bounded(x)

    start, end = jax.tree.map(lambda a: a[:-1], x), jax.tree.map(lambda a: a[1:], x)
    first, last = jax.tree.map(lambda a: a[0], x), jax.tree.map(lambda a: a[-1], x)
    k = jnp.arange(knots.steps, dtype=u.dtype)
    compiled = native.kernel if knots.tree.topology.unrolled else lambda f: f
    rows = start, u, k, end, s.costates[1:], s.multipliers[0]
    total = jnp.sum(jax.vmap(compiled(along), (None, *6 * (0,)))(knots, *rows))
    total = total + compiled(at_end)(knots, last, s.multipliers[1])
    # Bounds pull where their multipliers are not zero.
    for y, lower, upper in (
        (s.multipliers[0], bounds.lower, bounds.upper),
        (s.multipliers[1], bounds.end_lower, bounds.end_upper),
        (-s.slope, knots.u_lower, knots.u_upper),
        (-s.z_slope, knots.z_lower, knots.z_upper),
    ):
        at = jnp.where(y > 0, upper, lower)
        total = total - jnp.sum(jnp.where(y == 0, 0.0, y * jnp.where(y == 0, 0.0, at)))
    given = Point(numbers.q0, numbers.v0, first.z, knots.own)
    return total + s.costates[0] @ knots.difference(first, given)


def _moved(given: Callable, values: list, changes: list, s: Solution) -> Solution:
    """The change of the solution with the changes of the numbers that vary."""
    knots = given(values).knots
    right = jax.jvp(lambda *v: _first_order(given(v), s), values, changes)[1]

    packed, unpacked = ravel_pytree(jax.tree.map(jnp.negative, right))

    # The matrices are made within the solution, so that nothing of it is computed where only the
    # cost is differentiated.
    def times(x: jax.Array) -> jax.Array:
        return ravel_pytree(_matrices(knots, s).times(unpacked(x)))[0]

    def solve(_: Any, b: jax.Array) -> jax.Array:
        matrix = _matrices(knots, s)
        inverse = lambda b: ravel_pytree(matrix.solve(unpacked(b)))[0]  # noqa: E731
        x = inverse(b)
        # Stiff bounds cost digits, which one more step brings back.
        return x + inverse(b - ravel_pytree(matrix.times(unpacked(x)))[0])

    x = unpacked(jax.lax.custom_linear_solve(times, packed, solve, symmetric=True))
    nx, nz = knots.nx, knots.nz
    dx = jnp.concatenate((x.d[:, :nx], x.end[None]))
    still = jnp.zeros_like(dx)
    retract = lambda dx: jax.vmap(knots.retract)(s.motion.x, dx)  # noqa: E731
    moved = Motion(jax.jvp(retract, (still,), (dx,))[1], x.d[:, nx:])
    lam_0 = x.lam_0.at[nx - nz :].set(-x.s_z)
    lam = jnp.concatenate((lam_0[None], x.lam))
    slopes = jnp.where(s.slope == 0, 0.0, -x.s), jnp.where(s.z_slope == 0, 0.0, -x.s_z)
    return Solution(moved, lam, (x.y, x.y_end), *slopes)


_matrices = eqx.filter_jit(matrices)


def _first_order(numbers: Numbers, s: Solution) -> Unknowns:
    """What vanishes at the optimum, or is given, as functions of the numbers.

    The gradients of the Lagrangian (N, n), and at the end; gaps; the start; active bounds less what
    bounds them; and, less, the box where it is active.
    """
    knots, (x, u) = numbers.knots, s.motion
    bounds = Bounds.of(knots)

    def along(
        knots: Discretization, x: Point, u: Any, k: Any, end: Point, costate: Any, multiplier: Any
    ):
        def lagrangian(d: jax.Array) -> tuple[jax.Array, tuple]:
            moved, du = knots.retract(x, d[: knots.nx]), u + d[knots.nx :]
            r, w = knots.residuals(moved, du, k)
            gap = knots.difference(end, knots.step(moved, du, k))
            bounded = knots.bounded(moved, du, k)
            value = jnp.sum(w * r * r) / 2 + costate @ gap + multiplier @ bounded
            return value, (gap, bounded)

        return jax.grad(lagrangian, has_aux=True)(jnp.zeros(knots.nx + knots.nu, u.dtype))

    def at_end(knots: Discretization, x: Point, multiplier: Any):
        def lagrangian(dx: jax.Array) -> tuple[jax.Array, jax.Array]:
            moved = knots.retract(x, dx)
            r, w = knots.final_residuals(moved)
            bounded = knots.final_bounded(moved)
            return jnp.sum(w * r * r) / 2 + multiplier @ bounded, bounded

        return jax.grad(lagrangian, has_aux=True)(jnp.zeros(knots.nx, x.q.dtype))

    start, end = jax.tree.map(lambda a: a[:-1], x), jax.tree.map(lambda a: a[1:], x)
    first, last = jax.tree.map(lambda a: a[0], x), jax.tree.map(lambda a: a[-1], x)
    k = jnp.arange(knots.steps, dtype=u.dtype)
    compiled = native.kernel if knots.tree.topology.unrolled else lambda f: f
    rows = start, u, k, end, s.costates[1:], s.multipliers[0]
    g, (gap, bounded) = jax.vmap(compiled(along), (None, *6 * (0,)))(knots, *rows)
    end_g, end_bounded = compiled(at_end)(knots, last, s.multipliers[1])
    y, y_end = s.multipliers
    off = _off(bounded, y, bounds.lower, bounds.upper)
    off_end = _off(end_bounded, y_end, bounds.end_lower, bounds.end_upper)
    begin = knots.difference(first, Point(numbers.q0, numbers.v0, first.z, knots.own))
    box = jnp.where(s.slope < 0, knots.u_upper, knots.u_lower)
    box = jnp.where(s.slope == 0, 0.0, box)
    z_box = jnp.where(s.z_slope < 0, knots.z_upper, knots.z_lower)
    z_box = jnp.where(s.z_slope == 0, 0.0, z_box)
    return Unknowns(g, end_g, gap, begin, off, off_end, -box, -z_box)


def _off(bounded: Any, y: Any, lower: Any, upper: Any) -> jax.Array:
    at = jnp.where(y > 0, upper, lower)
    return jnp.where(y == 0, 0.0, bounded - jnp.where(y == 0, 0.0, at))
