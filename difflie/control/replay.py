"""Plans carried out: by a finer simulation, or found anew from the state at each sample.

Receding horizons are model predictive control. A few iterations at each sample are enough, as the
plan of the sample before, moved on by a step, is near the next one (Diehl, Bock, Schlöder 2005).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from ..integrators import RKMK4, Method
from ..simulate import Trajectory, simulate
from ..simulate.result import NEVER, Result
from ..system.arguments import checked
from ..system.internal_states import with_states
from ..system.system import System
from ..system.user_functions import watched
from .discretization import Discretization, Point
from .fddp import FDDP
from .plan import Plan
from .problem import Problem
from .solve import solve
from .solver import IteratedSolver, Solver


def replay(
    problem: Problem,
    plan: Plan,
    *,
    system: System | None = None,
    start: tuple[Any, Any] | None = None,
    method: Method = RKMK4(),
    finer: int = 4,
    feedback: bool = True,
    wrench: Callable[[Any, jax.Array, jax.Array], Any] | ArrayLike | None = None,
) -> Trajectory:
    """The motion of a machine under the controls of a plan, u_k + K_k dx_k, in finer steps.

    dx_k is the tangent from the plan to the motion at knot k, where the feedback is sampled, and
    the controls stay within the limits of the problem. feedback: False for u_k alone. system: the
    machine, such as one with other parameters, by default that of the problem; start: its state
    (q (nq,), v (nv,)), by default that of the problem. method: that of the simulation, which makes
    so many finer steps for each of the plan. wrench: pushes (nb, 6) in N m and N on the bodies, in
    body frames, as numbers or as a function of (t, q, v), t in s from the start of the plan.

    Returns the motion at its knots, N + 1 times; differentiable, and checked, as by `simulate`.
    """
    knots = Discretization.of(problem)
    machine = problem.system if system is None else system
    q0, v0 = (problem.q0, problem.v0) if start is None else start
    if wrench is not None and not callable(wrench):
        (wrench,) = checked(machine, wrench=(wrench, (len(machine.body_names), 6)))
    how = method, finer, feedback
    return _replayed(knots, machine, plan, (q0, v0), watched(wrench), how)


@eqx.filter_jit
def _replayed(
    knots: Discretization, system: System, plan: Plan, start: Any, wrench: Any, how: tuple
) -> Trajectory:
    method, finer, feedback = how
    rows = jax.tree.map(lambda a: a[:-1], Point(plan.q, plan.v, plan.z, plan.own))

    def interval(x: Point, row: Any) -> tuple[Point, Any]:
        k, planned, u, K = row
        h = knots.length(x)
        if feedback:
            u = jnp.clip(u + K @ knots.difference(planned, x), knots.u_lower, knots.u_upper)
        begin = knots.control(x, u)

        def command(t: Any, q: jax.Array, v: jax.Array) -> jax.Array:
            at = begin + (u - begin) * (t / h)
            return knots.inputs.command(system, q, v, at, k * h + t)

        def push(t: Any, q: jax.Array, v: jax.Array) -> jax.Array:
            return wrench(k * h + t, q, v)

        held = with_states(system, *x.own) if x.own else system
        run = simulate(
            held,
            x.q,
            x.v,
            dt=h / finer,
            steps=finer,
            method=method,
            control=command,
            wrench=push if callable(wrench) else wrench,
            save_every=finer,
            stabilisation=knots.stabilisation,
        )
        own = () if run.z is None else (run.z[-1],)
        after = Point(run.q[-1], run.v[-1], knots.held(x, u), own)
        return after, (x.q, x.v, run.u, run.result, x.own)

    u = plan.u[1:] if knots.linear else plan.u
    k = jnp.arange(knots.steps, dtype=plan.u.dtype)
    q0, v0 = start
    x0 = Point(q0, v0, plan.z[0], knots.own)
    end, (q, v, commands, results, own) = jax.lax.scan(interval, x0, (k, rows, u, plan.gains))
    q, v = jnp.concatenate((q, end.q[None])), jnp.concatenate((v, end.v[None]))
    commands = jnp.concatenate((commands[:, 0], commands[-1, -1:]))
    z = jnp.concatenate((*own, end.own[0][None])) if own else None
    return Trajectory(plan.t, q, v, _whole(results, finer), u=commands, z=z)


def _whole(results: Result, finer: int) -> Result:
    """The result of a run from those of its parts (N,), of so many steps each."""
    before = finer * jnp.arange(results.dt.shape[0])

    def first(step: jax.Array) -> jax.Array:
        counted = step + before.reshape((-1, *(1,) * (step.ndim - 1)))
        return jnp.min(jnp.where(step == NEVER, NEVER, counted), axis=0)

    names = [f.name for f in fields(results) if f.name.endswith("_step")]
    return replace(
        results,
        **{name: first(getattr(results, name)) for name in names},
        start_error=results.start_error[0],
        # Of the start, as that of a run is; flights are judged as a whole only.
        resolution=jax.tree.map(lambda a: a[0], results.resolution),
        flight=None,
        dt=results.dt[0],
        steps=finer * results.dt.shape[0],
    )


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

    def start(self, q: ArrayLike, v: ArrayLike, target: ArrayLike | None = None) -> Plan:
        """The plan from the state q (nq,), v (nv,), as the memory of the first sample."""
        plan = solve(self._from(q, v, target), self.first)
        # As many costs as a sample has, so that the memory keeps its shapes.
        n, costs = self.solver.iterations + 1, plan.result.costs
        costs = jnp.concatenate((costs, jnp.full(n, jnp.nan, costs.dtype)))[:n]
        return eqx.tree_at(lambda plan: plan.result.costs, plan, costs)

    def step(
        self,
        memory: Plan,
        q: ArrayLike,
        v: ArrayLike,
        target: ArrayLike | None = None,
        z: ArrayLike | None = None,
    ) -> tuple[Float[Array, " nu"], Plan]:
        """The control (nu,) for the state q (nq,), v (nv,), and the memory of the next sample.

        target: another goal, of the shape of the goal of a term of the problem
        (`Problem.with_goal`). z (nz,): the internal states; None for those that the last plan
        predicts.
        """
        return _step(self._from(q, v, target), self.solver, memory, z)

    def init(self, t: ArrayLike, q: ArrayLike, v: ArrayLike) -> Plan:
        """The memory at the start, at t () in s, q (nq,), v (nv,), as `Sampled` asks for it."""
        return self.start(q, v)

    def __call__(self, memory: Plan, t: Any, q: Any, v: Any) -> tuple[Any, Plan]:
        """The control (nu,) and the memory after a sample, as `Sampled` asks for them."""
        return self.step(memory, q, v)

    def _from(self, q: Any, v: Any, target: Any) -> Problem:
        problem = self.problem.replace(q0=q, v0=v)
        return problem if target is None else problem.with_goal(target)


@eqx.filter_jit
def _step(problem: Problem, solver: Solver, memory: Plan, z: Any) -> tuple[jax.Array, Plan]:
    guess = _moved_on(problem, memory)
    for own in guess.own:
        problem = problem.replace(system=with_states(problem.system, own[0] if z is None else z))
    plan = solve(problem, solver, guess)
    return plan.u[0], plan


def _moved_on(problem: Problem, plan: Plan) -> Plan:
    """The plan as the guess of the next sample: a step later, its end held."""
    later = lambda a: jnp.concatenate((a[1:], a[-1:]))  # noqa: E731
    at = lambda p: (p.q, p.v, p.u, p.z, p.own, p.costates)  # noqa: E731
    moved = eqx.tree_at(at, plan, jax.tree.map(later, at(plan)))
    along, end = plan.multipliers
    return eqx.tree_at(lambda p: p.multipliers, moved, (later(along), end))
