"""Receding horizons: the first control of a plan that is found anew from the state now.

This is model predictive control. A few iterations at each sample are enough, as the plan of the
sample before, moved on by a step, is near the next one (Diehl, Bock, Schlöder 2005).
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .fddp import FDDP
from .plan import Plan
from .problem import Problem
from .solve import solve
from .solver import IteratedSolver, Solver


class Receding(eqx.Module):
    """A controller that plans again at every sample, one step dt of its problem apart.

    problem: its start is replaced by the measured state. solver: of each sample, for example
    `FDDP(iterations=1)`; first: of the first plan. The memory is the last plan, whose `result` says
    how its search ended: out of iterations, in general.

        memory = mpc.start(q, v)
        u, memory = mpc.step(memory, q, v)

    Both can be compiled, batched and differentiated. It is a controller of `Sampled` as well, for
    use in `simulate`: Sampled(mpc, 1 / dt).
    """

    problem: Problem
    solver: IteratedSolver = FDDP(iterations=1)
    first: Solver = FDDP()

    def start(self, q: Any, v: Any, target: Any = None) -> Plan:
        """The plan from the state q (nq,), v (nv,), as the memory of the first sample."""
        plan = solve(self._from(q, v, target), self.first)
        # As many costs as a sample has, so that the memory keeps its shapes.
        n, costs = self.solver.iterations + 1, plan.result.costs
        costs = jnp.concatenate((costs, jnp.full(n, jnp.nan, costs.dtype)))[:n]
        return eqx.tree_at(lambda plan: plan.result.costs, plan, costs)

    def step(
        self, memory: Plan, q: Any, v: Any, target: Any = None
    ) -> tuple[Float[Array, " nu"], Plan]:
        """The control (nu,) for the state q (nq,), v (nv,), and the memory of the next sample.

        target: another goal, of the shape of the goal of a term of the problem
        (`Problem.with_goal`).
        """
        return _step(self._from(q, v, target), self.solver, memory)

    def init(self, t: Any, q: Any, v: Any) -> Plan:
        """The memory at the start, as `Sampled` asks for it."""
        return self.start(q, v)

    def __call__(self, memory: Plan, t: Any, q: Any, v: Any) -> tuple[Any, Plan]:
        """The control (nu,) and the memory after a sample, as `Sampled` asks for them."""
        return self.step(memory, q, v)

    def _from(self, q: Any, v: Any, target: Any) -> Problem:
        problem = self.problem.replace(q0=q, v0=v)
        return problem if target is None else problem.with_goal(target)


@eqx.filter_jit
def _step(problem: Problem, solver: Solver, memory: Plan) -> tuple[jax.Array, Plan]:
    plan = solve(problem, solver, _moved_on(problem, memory))
    return plan.u[0], plan


def _moved_on(problem: Problem, plan: Plan) -> Plan:
    """The plan as the guess of the next sample: a step later, its end held."""
    later = lambda a: jnp.concatenate((a[1:], a[-1:]))  # noqa: E731
    at = lambda p: (p.q, p.v, p.u, p.z, p.costates)  # noqa: E731
    moved = eqx.tree_at(at, plan, tuple(map(later, at(plan))))
    along, end = plan.multipliers
    return eqx.tree_at(lambda p: p.multipliers, moved, (later(along), end))
