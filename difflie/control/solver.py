"""The solver protocol, and what solvers share."""

from __future__ import annotations

import abc
import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import Tracer

from .discretization import Discretization, Motion
from .linear_quadratic import LinearQuadratic
from .plan import Plan
from .result import Result, Status
from .riccati import Box

Progress = Callable[[int, float], None]


class Solver(eqx.Module):
    """What finds a plan."""

    @abc.abstractmethod
    def solve(
        self,
        knots: Discretization,
        motion: Motion,
        multipliers: tuple[jax.Array, jax.Array] | None,
        progress: Progress | None,
        seconds: float | None,
    ) -> Plan:
        """The plan found from a guess.

        multipliers of bounds (N, m), (m,), None where there are none; progress, seconds: see the
        function `solve`.
        """


class IteratedSolver(Solver):
    """A search in iterations. A state is a pytree of arrays with a `result` and a `cost`.

    Called plainly, an iteration is compiled; under a transformation, the loop of them is.
    """

    iterations: eqx.AbstractVar[int]

    @abc.abstractmethod
    def init(
        self, knots: Discretization, motion: Motion, multipliers: tuple[jax.Array, jax.Array] | None
    ) -> Any:
        """The state at a guess; multipliers of bounds (N, m), (m,), None where there are none."""

    @abc.abstractmethod
    def iterate(self, knots: Discretization, state: Any) -> Any:
        """The state after an iteration. The search goes on while its status is RUNNING."""

    @abc.abstractmethod
    def plan(self, knots: Discretization, state: Any) -> Plan:
        """What was found."""

    def solve(
        self,
        knots: Discretization,
        motion: Motion,
        multipliers: tuple[jax.Array, jax.Array] | None,
        progress: Progress | None,
        seconds: float | None,
    ) -> Plan:
        leaves = jax.tree.leaves((self, knots, motion, multipliers))
        if any(isinstance(leaf, Tracer) for leaf in leaves):
            return _compiled(self, knots, motion, multipliers)
        state = _started(self, knots, motion, multipliers)
        began, status = time.monotonic(), Status.RUNNING
        try:
            while True:
                state = _iterated(self, knots, state)
                status = Status(int(state.result.status))
                if progress is not None:
                    progress(int(state.result.iterations), float(state.cost))
                if status != Status.RUNNING:
                    break
                if seconds is not None and time.monotonic() - began > seconds:
                    status = Status.OUT_OF_TIME
                    break
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        plan = _finished(self, knots, state)
        code = jnp.asarray(int(status), jnp.int32)
        return eqx.tree_at(lambda p: p.result.status, plan, code)


@eqx.filter_jit
def _compiled(solver: IteratedSolver, knots: Discretization, motion: Any, multipliers: Any) -> Plan:
    state = solver.init(knots, motion, multipliers)
    state = jax.lax.while_loop(
        lambda state: state.result.status == Status.RUNNING,
        lambda state: solver.iterate(knots, state),
        state,
    )
    return solver.plan(knots, state)


@eqx.filter_jit
def _started(solver: IteratedSolver, knots: Discretization, motion: Any, multipliers: Any) -> Any:
    return solver.init(knots, motion, multipliers)


@eqx.filter_jit
def _iterated(solver: IteratedSolver, knots: Discretization, state: Any) -> Any:
    return solver.iterate(knots, state)


@eqx.filter_jit
def _finished(solver: IteratedSolver, knots: Discretization, state: Any) -> Plan:
    return solver.plan(knots, state)


def tolerance_of(tolerance: float | None, dtype: Any) -> float:
    """The tolerance itself, or the root of the rounding."""
    return float(jnp.finfo(dtype).eps ** 0.5) if tolerance is None else tolerance


def bound_box(knots: Discretization, motion: Motion) -> Box | None:
    """The box of changes of the controls; None if they are known to be unbounded."""
    if not knots.boxed:
        return None
    z = motion.x.z[0]
    return Box(
        knots.u_lower[None] - motion.u,
        knots.u_upper[None] - motion.u,
        knots.z_lower - z,
        knots.z_upper - z,
    )


def rounding_shift(lq: LinearQuadratic) -> jax.Array:
    """What is added () to the diagonal of the controls, so that none of them is undetermined."""
    largest = jnp.max(jnp.abs(lq.H[:, lq.nx :, lq.nx :]))
    return jnp.finfo(largest.dtype).eps ** 0.75 * (1 + largest)


def made_plan(
    knots: Discretization,
    motion: Motion,
    cost: jax.Array,
    gaps: jax.Array,
    gains: jax.Array,
    costates: jax.Array,
    multipliers: Any,
    result: Result,
) -> Plan:
    """The plan of a motion."""
    x, u = motion
    ratio = x.z[0, -1] if knots.free_time else 1.0
    t = jnp.arange(knots.steps + 1, dtype=u.dtype) * (knots.dt * ratio)
    u = x.z[:, : knots.nu] if knots.linear else u
    return Plan(t, x.q, x.v, u, gains, cost, gaps, costates, multipliers, x.z, result, x.own)
