"""The function `solve`."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from ..system.validation import warn
from .checks import check_problem, not_finite
from .discretization import Discretization
from .fddp import FDDP
from .guess import first_motion
from .plan import Plan
from .problem import Problem
from .result import Status
from .sensitivity import Numbers, differentiable
from .solver import Progress, Solver


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
    Under jax.jit, jax.vmap and jax.grad the loop is compiled, with the same iterates, and progress
    and seconds do not count.

    The plan is differentiable in both modes by every number of the problem, whatever the guess: its
    cost by the envelope theorem, the plan itself by the implicit function theorem; both twice.
    Whether it is a solution says `plan.result`; if not, the derivatives are NaN. Raises ValueError
    for a problem that cannot be solved as it stands: bounds that contradict each other, a start
    outside of its bounds or off its constraints, a cost that is not finite, a guess of another
    shape, a goal farther away than the machine is long.
    """
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
    return plan
