"""The end of a motion that an event stops.

The loop detects that a function g(t, q, v) is no longer positive at the end of a step, and stays
where that step began. The step is then repeated from there, with the length h at which the smallest
of the functions is zero,

    min_i g_i(t_k + h, q(h), v(h)) = 0,    0 < h <= dt

by bisection to the last digit, with derivatives by the implicit function theorem.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..forces.actuators.acting import timed
from ..solvers.bisection import Bisection
from ..solvers.root import root
from .events import least
from .step_status import StepStatus
from .time_steps import LoopState, TimeSteps


class Stop(NamedTuple):
    """Where a motion stops.

    event (): the index of the event, -1 for none. t () in s. state: that of the trajectory, without
    meaning if there is no event. solved (): whether the last, shorter step was solved.
    """

    event: jax.Array
    t: jax.Array
    state: Any
    solved: jax.Array


def located(loop: TimeSteps, rows: Any, last: LoopState) -> Stop:
    """The stop of a loop with this last state; rows (m, k, ...) are its inputs."""
    steps, inner, watch, memories, command, held, _ = last
    formulation, events, dt = loop.formulation, loop.events, loop.dt
    commanded = (None, None) if command is None else command.latest
    stopped = watch.stopped
    assert stopped is not None
    k = jnp.where(watch.came, jnp.maximum(stopped - 1, 0), steps)
    row = jax.tree.map(lambda a: a.reshape((-1, *a.shape[2:]))[k], rows)
    t0, given, _ = loop.acting(k, row, inner, held)
    q, v = formulation.read(inner)
    given = given.begun(loop.tree.system, t0, q, v)

    def reached(h: jax.Array) -> tuple[Any, Any, Any]:
        kept = None if memories is None else timed(memories, h)
        acting = given.remembering(loop.tree.system, kept)
        acting = acting.held(t0, q, v) if formulation.reads_once else acting
        # The method's own memory belongs to steps of another length.
        state = formulation.init(t0, q, v, h, acting)
        return *formulation.step(t0, state, h, acting), loop.delivered(acting, q, v)

    def at(h: jax.Array) -> jax.Array:
        return least(events, t0 + h, *formulation.read(reached(h)[0]))[0]

    def shorter(_: None) -> Stop:
        # Methods that begin anew may need a little more than dt, which is looked at first.
        (h,), found = root(lambda h: at(h[0])[None], dt[None], Bisection())
        state, solved, torques = reached(h)
        # Actuators with a memory deliver the mean over the shorter step.
        torques = None if memories is None else torques
        y = formulation.read(state)
        which = least(events, t0 + h, *y)[1]
        saved = *y, formulation.record(state), (commanded[0], torques)
        return Stop(which, t0 + h, saved, found & solved)

    def whole(_: None) -> Stop:
        y = formulation.read(inner)
        which = jnp.where(stopped == 0, least(events, t0, *y)[1], -1)
        return Stop(which, t0, (*y, formulation.record(inner), commanded), jnp.asarray(True))

    return jax.lax.cond(watch.came & (stopped > 0), shorter, whole, None)


def stopped_at(end: Stop, watch: StepStatus, rows: Any, every: int) -> Any:
    """The saved rows (m + 1, ...) of t, q, v, records and commands, the end repeated after a stop.

    every: the steps between two rows.
    """
    assert watch.stopped is not None
    *moved, commanded = rows
    begun = every * jnp.arange(len(moved[0]))

    def filled(first: jax.Array) -> Callable[[jax.Array, jax.Array], jax.Array]:
        after = watch.came & (begun >= first)
        return lambda rows, last: jnp.where(after.reshape((-1,) + (1,) * last.ndim), last, rows)

    *states, last = end.state
    moved = jax.tree.map(filled(watch.stopped), moved, [end.t, *states])
    # Commands and torques belong to the step that begins at the time of a row.
    return *moved, jax.tree.map(filled(watch.stopped - 1), commanded, last)
