"""The function `solve`, and the motion from which its search starts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from numpy.typing import ArrayLike

from ..system.arguments import checked
from ..system.validation import check_shape, closest, format_value, real_numbers, warn
from .checks import check_problem, not_finite
from .discretization import Discretization, Motion, Point
from .fddp import FDDP
from .interior_point import InteriorPoint
from .ipopt import Ipopt
from .model import steps_to_first_order
from .plan import Origin, Plan
from .problem import Problem
from .result import Status
from .riccati import inverse_of
from .sensitivity import Numbers, differentiable
from .solver import Progress, Solver

# Those that are known by name, in Python and in files.
SOLVERS: dict[str, type[Solver]] = {cls.__name__: cls for cls in (FDDP, InteriorPoint, Ipopt)}


def solve(
    problem: Problem,
    solver: Solver | str = FDDP(),
    guess: Plan | tuple[ArrayLike, ArrayLike, ArrayLike] | ArrayLike | None = None,
    *,
    progress: Progress | None = None,
    seconds: float | None = None,
) -> Plan:
    """The plan of least cost near a guess, by a solver such as `FDDP()` or `InteriorPoint()`.

    solver: also by its name, such as "Ipopt", with its default settings. guess: a `Plan`, also of
    another problem of the same size, whose multipliers are used as well; controls (N, nu), whose
    motion is taken; a tuple (q (N + 1, nq), v (N + 1, nv), u (N, nu)), which need be no motion; or
    None: the start, at all knots, with controls that hold it there as well as they can.

    Called plainly it compiles one iteration and calls it in a loop: progress(iteration, cost) is
    called after each, the search ends after `seconds` s, and Ctrl-C ends it with what there is.
    Under jax.jit, jax.vmap and jax.grad the loop is compiled, with the same iterates, and progress
    and seconds do not count.

    The plan is differentiable in both modes by every number of the problem, whatever the guess: its
    cost by the envelope theorem, the plan itself by the implicit function theorem; both twice.
    Whether it is a solution says `plan.result`; if not, the derivatives are NaN. Raises ValueError
    for a problem that cannot be solved as it stands: bounds that contradict each other, a start
    outside of its bounds or off its constraints, a cost that is not finite, a guess of another
    shape, a goal farther away than the machine is long, an unknown solver (with the nearest name).

    >>> cart = dl.chain([dl.Body(name="cart", joint=dl.Prismatic(axis=(1, 0, 0)), mass=2.0)])
    >>> costs = dict(running=[dl.control.Effort()], final=[dl.control.State([1.0], weight=1e3)])
    >>> plan = dl.control.solve(dl.control.Problem(cart, [0.0], [0.0], dt=0.1, steps=10, **costs))
    >>> print(plan.result.converged, plan.u.shape, plan.q[-1].round(2))
    True (10, 1) [0.95]
    """
    solver = chosen_solver(solver)
    check_problem(problem)
    knots = Discretization.of(problem)
    motion, multipliers = first_motion(problem, knots, guess)
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((problem, motion, multipliers))):
        fixed = jax.lax.stop_gradient((knots, motion, multipliers))
        plan = jax.lax.stop_gradient(solver.solve(*fixed, progress, seconds))
        found = plan.result.converged
        if not isinstance(found, Tracer) and not np.all(found):
            warn(f"solve: {plan.result}; the derivatives of such a plan are NaN")
        return differentiable(Numbers(knots, problem.q0, problem.v0), plan)
    plan = solver.solve(knots, motion, multipliers, progress, seconds)
    if int(plan.result.status) == Status.NOT_FINITE and not int(plan.result.iterations):
        raise not_finite(problem)
    return replace(plan, origin=Origin(problem))


def chosen_solver(solver: Any) -> Solver:
    """The solver itself or by its name.

    Raises ValueError for an unknown name, with the nearest one, and TypeError for anything else.
    """
    if isinstance(solver, Solver):
        return solver
    if not isinstance(solver, str):
        raise TypeError(
            f"solver is {format_value(solver)}; give a solver such as FDDP(), or its name"
        )
    if solver in SOLVERS:
        return SOLVERS[solver]()
    lower = {name.lower(): name for name in SOLVERS}
    near = closest(solver.lower(), lower)
    hint = "" if near is None else f"did you mean {lower[near]}? "
    raise ValueError(f"unknown solver {format_value(solver)}; {hint}known: {', '.join(SOLVERS)}")


def first_motion(problem: Problem, knots: Discretization, guess: Any) -> tuple[Motion, Any]:
    """The motion of a guess, see `solve`, and multipliers, None without any."""
    p, n, nu = problem, knots.steps, knots.nu
    if isinstance(guess, Plan):
        for name, value, size in (("q", guess.q, p.system.nq), ("v", guess.v, p.system.nv)):
            check_shape("solve", f"guess.{name}", value.shape, (n + 1, size))
        check_shape("solve", "guess.z", guess.z.shape, (n + 1, knots.nz))
        u = guess.u[1:] if knots.linear else guess.u
        own = tuple(a.at[0].set(b) for a, b in zip(guess.own, knots.own, strict=True))
        x = Point(*_from_start(p, guess.q, guess.v), guess.z, own)
        return Motion(x, u), guess.multipliers
    if guess is None:
        return _resting(knots, p.q0, p.v0), None
    if callable(guess) or (isinstance(guess, tuple) and len(guess) != 3):
        given = "a function" if callable(guess) else f"a tuple of {len(guess)}"
        raise TypeError(
            f"solve: guess is {given}; give a plan, controls of shape {(n, nu)}, or a tuple (q, v, "
            f"u) of the shapes {(n + 1, p.system.nq)}, {(n + 1, p.system.nv)} and {(n, nu)}"
        )
    if isinstance(guess, tuple):
        q, v, u = guess
        q, v, u = checked(
            p.system,
            q=(q, (n + 1, p.system.nq)),
            v=(v, (n + 1, p.system.nv)),
            u=(u, (n, nu)),
        )
        return Motion(
            Point(*_from_start(p, q, v), _held(knots, u[0]), _resting_own(knots)), u
        ), None
    u = real_numbers("solve", "guess", guess).astype(p.system.dtype)
    check_shape("solve", "guess", u.shape, (n, nu))
    return Motion(_rolled(knots, p.q0, p.v0, u), u), None


def _from_start(p: Problem, q: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The states with the problem's own start in the place of the first."""
    return q.at[0].set(p.q0), v.at[0].set(p.v0)


def _held(knots: Discretization, u: jax.Array) -> jax.Array:
    """z (N + 1, nz): the control and the ratio one."""
    parts = ([u] if knots.linear else []) + ([jnp.ones(1, u.dtype)] if knots.free_time else [])
    z = jnp.clip(jnp.concatenate([u[:0], *parts]), knots.z_lower, knots.z_upper)
    return jnp.tile(z, (knots.steps + 1, 1))


def _resting_own(knots: Discretization) -> tuple[jax.Array, ...]:
    """The internal states of the start at all knots (N + 1, ...)."""
    return tuple(jnp.tile(a, (knots.steps + 1, 1)) for a in knots.own)


@eqx.filter_jit
def _resting(knots: Discretization, q: jax.Array, v: jax.Array) -> Motion:
    """The start at all knots, under the controls that hold it."""
    u, n = _holding(knots, q, v), knots.steps
    rows = jnp.tile(q, (n + 1, 1)), jnp.tile(v, (n + 1, 1))
    x = Point(*rows, _held(knots, u), _resting_own(knots))
    return Motion(x, jnp.tile(u, (n, 1)))


def _holding(knots: Discretization, q: jax.Array, v: jax.Array) -> jax.Array:
    """The controls (nu,) in their box that come nearest to keeping the velocity in a step."""
    nothing = jnp.clip(jnp.zeros(knots.nu, q.dtype), knots.u_lower, knots.u_upper)
    own = tuple(jnp.stack((a, a)) for a in knots.own)
    x = Point(jnp.stack((q, q)), jnp.stack((v, v)), _held(knots, nothing)[:2], own)
    gap, D = steps_to_first_order(knots, Motion(x, nothing[None]))
    rates = slice(knots.nv, 2 * knots.nv)
    B, off = D[0, rates, knots.nx :], gap[0, rates]
    # A little of the size of u is counted, for controls that do the same, or nothing.
    little = jnp.finfo(B.dtype).eps ** 0.5 * (1e-30 + jnp.sum(B * B))
    u = nothing - inverse_of(B.T @ B + little * jnp.eye(knots.nu, dtype=B.dtype)) @ (B.T @ off)
    return jnp.clip(jnp.where(jnp.isfinite(u), u, 0.0), knots.u_lower, knots.u_upper)


@eqx.filter_jit
def _rolled(knots: Discretization, q: jax.Array, v: jax.Array, u: jax.Array) -> Point:
    """The motion under controls (N, nu)."""

    def turn(x: Point, row: Any) -> tuple[Point, Point]:
        k, u = row
        return knots.step(x, u, k), x

    start = Point(q, v, _held(knots, u[0])[0], knots.own)
    k = jnp.arange(knots.steps, dtype=u.dtype)
    end, x = jax.lax.scan(turn, start, (k, u))
    return jax.tree.map(lambda a, b: jnp.concatenate((a, b[None])), x, end)
