"""The function `solve`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import Tracer

from .checks import check_first, check_problem
from .fddp import FDDP
from .guess import first_motion
from .knots import Knots
from .problem import Problem
from .result import Plan, Status
from .sensitivity import Numbers, differentiable
from .solver import Solver

Progress = Callable[[int, float], None]


def solve(
    problem: Problem,
    solver: Solver = FDDP(),
    guess: Any = None,
    *,
    progress: Progress | None = None,
    seconds: float | None = None,
) -> Plan:
    """The plan of least cost near a guess, by a solver such as `FDDP` or `InteriorPoint`.

    guess: a `Plan`, also of another problem of the same size, whose multipliers are used as well;
    controls (N, nu), whose motion is taken; a tuple (q (N + 1, nq), v (N + 1, nv), u (N, nu)),
    which need be no motion; or None: the start, at all knots, with controls that hold it there as
    well as they can.

    Called plainly it compiles one iteration and calls it in a loop: progress(iteration, cost) is
    called after each, the search ends after so many seconds, and Ctrl-C ends it with what there is.
    Under jax.jit, jax.vmap and jax.grad the loop is compiled, with the same iterates.

    The plan is differentiable in both modes by every number of the problem, whatever the guess: its
    cost by the envelope theorem, the plan itself by the implicit function theorem. Whether it is a
    solution says `plan.result`. Raises ValueError for a problem that cannot be solved as it stands:
    bounds that contradict each other, a start outside of its bounds or off its constraints, a cost
    that is not finite, a guess of another shape, a goal farther away than the machine is long.
    """
    check_problem(problem)
    knots = Knots.of(problem)
    motion, multipliers = first_motion(problem, knots, guess)
    leaves = jax.tree.leaves((problem, motion, multipliers))
    if any(isinstance(leaf, Tracer) for leaf in leaves):
        fixed = jax.lax.stop_gradient((knots, motion, multipliers))
        plan = jax.lax.stop_gradient(_compiled(solver, *fixed))
        return differentiable(Numbers(knots, problem.q0, problem.v0), plan)
    state = _started(solver, knots, motion, multipliers)
    check_first(problem, bool(jnp.isfinite(state.model.cost + jnp.sum(state.model.gap))))
    began, status = time.monotonic(), Status.RUNNING
    try:
        while True:
            state = _iterated(solver, knots, state)
            status = Status(int(state.result.status))
            if progress is not None:
                progress(int(state.result.iterations), float(state.model.cost))
            if status != Status.RUNNING:
                break
            if seconds is not None and time.monotonic() - began > seconds:
                status = Status.OUT_OF_TIME
                break
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    plan = _finished(solver, knots, state)
    code = jnp.asarray(int(status), jnp.int32)
    return eqx.tree_at(lambda p: p.result.status, plan, code)


@eqx.filter_jit
def _compiled(solver: Solver, knots: Knots, motion: Any, multipliers: Any) -> Plan:
    state = solver.init(knots, motion, multipliers)
    state = jax.lax.while_loop(
        lambda state: state.result.status == Status.RUNNING,
        lambda state: solver.iterate(knots, state),
        state,
    )
    return solver.plan(knots, state)


@eqx.filter_jit
def _started(solver: Solver, knots: Knots, motion: Any, multipliers: Any) -> Any:
    return solver.init(knots, motion, multipliers)


@eqx.filter_jit
def _iterated(solver: Solver, knots: Knots, state: Any) -> Any:
    return solver.iterate(knots, state)


@eqx.filter_jit
def _finished(solver: Solver, knots: Knots, state: Any) -> Plan:
    return solver.plan(knots, state)
