"""A plan carried out: by a finer simulation, with its gains as feedback."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ..integrators import RKMK4, Method
from ..simulate import Trajectory, simulate
from ..simulate.result import NEVER, Result
from ..system.system import System
from .discretization import Discretization, Point
from .plan import Plan
from .problem import Problem


def replay(
    problem: Problem,
    plan: Plan,
    *,
    system: System | None = None,
    start: tuple[Any, Any] | None = None,
    method: Method = RKMK4(),
    finer: int = 4,
    feedback: bool = True,
) -> Trajectory:
    """The motion of a machine under the controls of a plan, u_k + K_k dx_k, in finer steps.

    dx_k is the tangent from the plan to the motion at knot k, where the feedback is sampled, and
    the controls stay within the limits of the problem. feedback: False for u_k alone. system: the
    machine, such as one with other parameters, by default that of the problem; start: its state
    (q (nq,), v (nv,)), by default that of the problem. method: that of the simulation, which makes
    so many finer steps for each of the plan.

    Returns the motion at its knots, N + 1 times; differentiable, and checked, as by `simulate`.
    """
    knots = Discretization.of(problem)
    machine = problem.system if system is None else system
    q0, v0 = (problem.q0, problem.v0) if start is None else start
    return _replayed(knots, machine, plan, (q0, v0), (method, finer, feedback))


@eqx.filter_jit
def _replayed(
    knots: Discretization, system: System, plan: Plan, start: Any, how: tuple
) -> Trajectory:
    method, finer, feedback = how
    rows = Point(plan.q[:-1], plan.v[:-1], plan.z[:-1])

    def interval(x: Point, row: Any) -> tuple[Point, Any]:
        k, planned, u, K = row
        h = knots.length(x)
        if feedback:
            u = jnp.clip(u + K @ knots.difference(planned, x), knots.u_lower, knots.u_upper)
        begin = knots.control(x, u)

        def command(t: Any, q: jax.Array, v: jax.Array) -> jax.Array:
            at = begin + (u - begin) * (t / h)
            return knots.inputs.command(system, q, v, at, k * h + t)

        run = simulate(
            system,
            x.q,
            x.v,
            dt=h / finer,
            steps=finer,
            method=method,
            control=command,
            save_every=finer,
            stabilisation=knots.stabilisation,
        )
        z = jnp.concatenate((u, x.z[knots.nu :])) if knots.linear else x.z
        return Point(run.q[-1], run.v[-1], z), (x.q, x.v, run.u, run.result)

    u = plan.u[1:] if knots.linear else plan.u
    k = jnp.arange(knots.steps, dtype=plan.u.dtype)
    q0, v0 = start
    x0 = Point(q0, v0, plan.z[0])
    end, (q, v, commands, results) = jax.lax.scan(interval, x0, (k, rows, u, plan.gains))
    q, v = jnp.concatenate((q, end.q[None])), jnp.concatenate((v, end.v[None]))
    commands = jnp.concatenate((commands[:, 0], commands[-1, -1:]))
    return Trajectory(plan.t, q, v, _whole(results, finer), u=commands)


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
