"""Events: functions of the state at whose first zero a motion stops.

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
from jax.core import Tracer

from ..forces.actuators.acting import Memories, timed
from ..formulations import Formulation, Inputs
from ..solvers.bisection import Bisection
from ..solvers.root import root
from ..system.system import System
from ..system.validation import check_shape, real_numbers
from .command import Command
from .watch import Watch

Event = Callable[[jax.Array, jax.Array, jax.Array], Any]
Until = Event | list[Event] | tuple[Event, ...] | None


class End(NamedTuple):
    """Where a motion stops.

    event (): the number of the event, -1 for none. t () in s. state: what the trajectory has of it,
    without meaning where there is no event. solved (): whether the last, shorter step was.
    """

    event: jax.Array
    t: jax.Array
    state: Any
    solved: jax.Array


def events_of(system: System, until: Any, at: tuple[Any, Any, Any]) -> tuple[Event, ...]:
    """The functions of the argument `until`, checked at a start (t, q, v).

    Raises TypeError for what is no function, or returns no real number, ValueError for a function
    that returns an array, or is concrete and not positive at the start.
    """
    if until is None:
        return ()
    functions = tuple(until) if isinstance(until, list | tuple) else (until,)
    for i, event in enumerate(functions):
        name = named(functions)[i]
        if not callable(event):
            raise TypeError(
                f"simulate: until is {event!r}; give a function of (t, q, v), or several of them"
            )
        value = real_numbers(system.name, f"what the {name} returns", event(*at))
        check_shape(system.name, f"what the {name} returns", value.shape, ())
        if not isinstance(value, Tracer) and not value > 0:
            raise ValueError(
                f"simulate: the {name} has come at the start already, where it is {value}; an "
                "event is positive before it comes, so start elsewhere or turn its sign"
            )
    return functions


def named(functions: tuple[Any, ...]) -> tuple[str, ...]:
    """How messages call the events."""
    names = [getattr(f, "__name__", type(f).__name__) for f in functions]
    plain = [f"event {i}" if "<" in name else f"event {name!r}" for i, name in enumerate(names)]
    return tuple(plain)


def least(
    events: tuple[Event, ...], t: jax.Array, q: jax.Array, v: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The smallest of the functions (), and its number (); what is not a number is smallest."""
    smallest, number = jnp.asarray(jnp.inf, q.dtype), jnp.asarray(-1, jnp.int32)
    for i, event in enumerate(events):
        value = jnp.asarray(event(t, q, v)).astype(q.dtype)
        # Not jnp.min: in its derivative rounding can make all of them differ from the smallest.
        below = (value < smallest) | jnp.isnan(value)
        smallest, number = jnp.where(below, value, smallest), jnp.where(below, i, number)
    return smallest, number


def come(events: tuple[Event, ...], t: jax.Array, q: jax.Array, v: jax.Array) -> jax.Array:
    """Whether one of the events has come, (): whether it is no longer positive."""
    return ~(jax.lax.stop_gradient(least(events, t, q, v)[0]) > 0)


def located(
    formulation: Formulation,
    events: tuple[Event, ...],
    inputs: Callable[[jax.Array], Inputs],
    end: tuple[jax.Array, Any, Watch, Memories | None, Command | None],
    dt: jax.Array,
) -> End:
    """Where a loop of steps dt (s) with the state `end` has stopped.

    inputs(k): what acts in step k.
    """
    steps, inner, watch, memories, command = end
    commanded = (None, None) if command is None else command.latest
    stopped = watch.stopped
    assert stopped is not None
    k = jnp.where(watch.came, jnp.maximum(stopped - 1, 0), steps)
    t0 = k.astype(dt.dtype) * dt

    def reached(h: jax.Array) -> tuple[Any, Any, Any]:
        q, v = formulation.read(inner)
        kept = None if memories is None else timed(memories, h)
        acting = inputs(k).remembering(formulation.tree.system, kept, t0, q, v)
        acting = acting.held(t0, q, v) if formulation.reads_once else acting
        # What a method remembers belongs to steps of another length.
        state = formulation.init(t0, q, v, h, acting)
        given = acting._replace(wrench=None).held(t0, q, v).torques(formulation.tree, t0, q, v)
        return *formulation.step(t0, state, h, acting), given

    def at(h: jax.Array) -> jax.Array:
        return least(events, t0 + h, *formulation.read(reached(h)[0]))[0]

    def shorter(_: None) -> End:
        # Methods that begin anew may need a little more than dt, which is looked at first.
        (h,), found = root(lambda h: at(h[0])[None], dt[None], Bisection())
        state, solved, given = reached(h)
        # What has a memory gives the mean of the shorter step.
        torques = None if memories is None else given
        y = formulation.read(state)
        which = least(events, t0 + h, *y)[1]
        last = *y, formulation.record(state), (commanded[0], torques)
        return End(which, t0 + h, last, found & solved)

    def whole(_: None) -> End:
        y = formulation.read(inner)
        which = jnp.where(stopped == 0, least(events, t0, *y)[1], -1)
        return End(which, t0, (*y, formulation.record(inner), commanded), jnp.asarray(True))

    return jax.lax.cond(watch.came & (stopped > 0), shorter, whole, None)


def stopped_at(end: End, watch: Watch, rows: Any, every: int) -> Any:
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
