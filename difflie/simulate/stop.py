"""Where a motion stops at which an event comes.

The loop notices that a function g(t, q, v) is no longer positive at the end of a step, and stays
where that step began. The step is then taken again from there, with the length h at which the
smallest of the functions is zero,

    min_i g_i(t_k + h, q(h), v(h)) = 0,    0 < h <= dt

found by bisection to the last digit, and differentiated by the implicit function theorem.
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
from .time_steps import LoopState, TimeSteps
from .watch import Watch


class Stop(NamedTuple):
    """Where a motion stops.

    event (): the number of the event, -1 for none. t () in s. state: what the trajectory has of it,
    without meaning where there is no event. solved (): whether the last, shorter step was.
    """

    event: jax.Array
    t: jax.Array
    state: Any
    solved: jax.Array


def located(loop: TimeSteps, rows: Any, last: LoopState) -> Stop:
    """Where a loop has stopped whose last state this is; rows (m, k, ...) of its inputs."""
    steps, inner, watch, memories, command = last
    formulation, events, dt = loop.formulation, loop.events, loop.dt
    commanded = (None, None) if command is None else command.latest
    stopped = watch.stopped
    assert stopped is not None
    k = jnp.where(watch.came, jnp.maximum(stopped - 1, 0), steps)
    row = jax.tree.map(lambda a: a.reshape((-1, *a.shape[2:]))[k], rows)
    t0, given = loop.acting(k, row)

    def reached(h: jax.Array) -> tuple[Any, Any, Any]:
        q, v = formulation.read(inner)
        kept = None if memories is None else timed(memories, h)
        acting = given.remembering(loop.tree.system, kept, t0, q, v)
        acting = acting.held(t0, q, v) if formulation.reads_once else acting
        # What a method remembers belongs to steps of another length.
        state = formulation.init(t0, q, v, h, acting)
        torques = acting._replace(wrench=None).held(t0, q, v).torques(loop.tree, t0, q, v)
        return *formulation.step(t0, state, h, acting), torques

    def at(h: jax.Array) -> jax.Array:
        return least(events, t0 + h, *formulation.read(reached(h)[0]))[0]

    def shorter(_: None) -> Stop:
        # Methods that begin anew may need a little more than dt, which is looked at first.
        (h,), found = root(lambda h: at(h[0])[None], dt[None], Bisection())
        state, solved, torques = reached(h)
        # What has a memory gives the mean of the shorter step.
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


def stopped_at(end: Stop, watch: Watch, rows: Any, every: int) -> Any:
    """The saved rows (m + 1, ...) of t, q, v, records and commands, from the end on all the end.

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
    # What is commanded, and given, belongs to the step that begins at the time of a row.
    return *moved, jax.tree.map(filled(watch.stopped - 1), commanded, last)
