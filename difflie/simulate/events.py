"""Events: functions of the state at whose first zero a motion stops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer

from ..system.system import System
from ..system.user_functions import called
from ..system.validation import check_shape, real_numbers

Event = Callable[[jax.Array, jax.Array, jax.Array], Any]
Until = Event | list[Event] | tuple[Event, ...] | None


def events_of(system: System, until: Any, at: tuple[Any, Any, Any]) -> tuple[Event, ...]:
    """The event functions of the argument `until`, checked at a start (t (), q (nq,), v (nv,)).

    Raises TypeError for an object that is no function or returns no real number, ValueError for a
    function that returns an array, or is concrete and not positive at the start.
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
        value = called(event, *at, names="until(t, q, v)")
        value = real_numbers(system.name, f"what the {name} returns", value)
        check_shape(system.name, f"what the {name} returns", value.shape, ())
        if not isinstance(value, Tracer) and not value > 0:
            raise ValueError(
                f"simulate: the {name} has come at the start already, where it is {value}; an "
                "event is positive before it comes, so start elsewhere or turn its sign"
            )
    return functions


def named(functions: tuple[Any, ...]) -> tuple[str, ...]:
    """The names of the events (n,) in messages."""
    names = [getattr(f, "__name__", type(f).__name__) for f in functions]
    plain = [f"event {i}" if "<" in name else f"event {name!r}" for i, name in enumerate(names)]
    return tuple(plain)


def least(
    events: tuple[Event, ...], t: jax.Array, q: jax.Array, v: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The smallest of the functions () and its index (); NaN counts as smallest."""
    smallest, number = jnp.asarray(jnp.inf, q.dtype), jnp.asarray(-1, jnp.int32)
    for i, event in enumerate(events):
        value = jnp.asarray(called(event, t, q, v)).astype(q.dtype)
        # Not jnp.min: in its derivative rounding can make all of them differ from the smallest.
        below = (value < smallest) | jnp.isnan(value)
        smallest, number = jnp.where(below, value, smallest), jnp.where(below, i, number)
    return smallest, number


def come(events: tuple[Event, ...], t: jax.Array, q: jax.Array, v: jax.Array) -> jax.Array:
    """Whether an event has come, a boolean (): whether one of the functions is not positive."""
    return ~(jax.lax.stop_gradient(least(events, t, q, v)[0]) > 0)
