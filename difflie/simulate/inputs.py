"""The inputs of a time loop: controls and wrenches, as functions or as samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..forces.inputs import SampledInput, ZeroOrderHold
from ..formulations import Inputs, Known
from ..system.arguments import checked_arrays
from ..system.system import System
from ..system.user_functions import called
from ..system.validation import check_shape, real_numbers
from .feedback import Sampled

Function = Callable[[jax.Array, jax.Array, jax.Array], Any]
Input = Function | Sampled | SampledInput | jax.Array | None


def inputs_at(functions, rows, t0, dt) -> Inputs:
    """The control and the wrench in the step of length dt () that begins at t0 (), both in s.

    Each is a function of (t, q, v), or the row of its samples: its value at t0 and its rise in dt.
    """
    pairs = zip(functions, rows, strict=True)
    control, wrench = (_at(f, row, t0, dt) for f, row in pairs)
    return Inputs(control, wrench)


def _at(function, row, t0, dt):
    """An input during the step that begins at t0, as a function of (t, q, v)."""
    if function is not None:
        return lambda t, q, v: jnp.asarray(called(function, t, q, v)).astype(q.dtype)
    if row is None:
        return None
    value, slope = row
    return Known(lambda t: value + slope * ((t - t0) / dt))


def samples(given, steps: int, saved: int, save_every: int):
    """The rows of a sampled input, (saved, save_every, ...); None for other inputs."""
    if not isinstance(given, SampledInput):
        return None
    used = saved * save_every
    return jax.tree.map(
        lambda a: a[:used].reshape((saved, save_every, *a.shape[1:])), given.rows(steps)
    )


def sampled_input(system: System, name: str, given: Input, shape: tuple[int, ...], steps: int):
    """Samples as a `SampledInput` of arrays (n, *shape) for all steps; other inputs as they are.

    An array (*shape) is constant.

    Raises ValueError or TypeError for another shape, too few samples, or values that are no
    numbers.
    """
    if given is None or isinstance(given, Sampled):
        return given
    if callable(given) and not isinstance(given, SampledInput):
        return given
    if isinstance(given, SampledInput):
        sampled = given
    elif np.ndim(given) == len(shape):
        # One value for the whole motion.
        sampled = ZeroOrderHold(jnp.asarray(given)[None], every=steps)
    else:
        sampled = ZeroOrderHold(given)
    needed = sampled.needed(steps)
    values = real_numbers(system.name, name, sampled.values)
    if values.ndim == len(shape) + 1 and values.shape[0] > needed:
        values = values[:needed]
    (values,) = checked_arrays(system, **{name: (values, (needed, *shape))})
    return type(sampled)(values, sampled.every)


def check_clock(control: Input, wrench: Input, dt: jax.Array) -> None:
    """Raises ValueError or TypeError for a sampled control that steps dt () in s do not suit."""
    if isinstance(wrench, Sampled):
        raise TypeError(
            "simulate: the wrench is a Sampled controller, and a controller gives the commands; "
            "give wrenches as a function of (t, q, v), or as samples"
        )
    if isinstance(control, Sampled):
        control.check_dt(dt)


def finer_input(given: Input, n: int) -> Input:
    """The same input for steps n times as short; samples (m, ...) are held n times as long."""
    if not isinstance(given, SampledInput):
        return given
    return type(given)(given.values, n * given.every)


def check_functions(system: System, control: Input, wrench: Input, at: tuple) -> None:
    """Raises ValueError or TypeError for inputs that return another shape or type at (t, q, v)."""
    shapes = {"control": (system.nu,), "wrench": (len(system.body_names), 6)}
    for (name, shape), u in zip(shapes.items(), (control, wrench), strict=True):
        if callable(u):
            _check_function(system, name, u, shape, at)


def _check_function(system: System, name: str, function: Callable, shape: tuple[int, ...], at: Any):
    def returned(t: jax.Array, q: jax.Array, v: jax.Array) -> jax.Array:
        return real_numbers(system.name, f"what the function {name} returns", function(t, q, v))

    returned_shape = jax.eval_shape(returned, *at).shape
    check_shape(system.name, f"what the function {name} returns", returned_shape, shape)
