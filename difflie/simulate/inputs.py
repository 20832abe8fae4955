"""The inputs of a time loop: controls and wrenches, as functions, samples, or digital feedback.

A digital controller is called at its sample times; `time_steps` holds its command over the steps in
between. What holds between samples is in `forces.inputs`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..forces.inputs import SampledInput, ZeroOrderHold
from ..formulations import Inputs, Known
from ..system.arguments import checked_arrays
from ..system.shown import some
from ..system.system import System
from ..system.user_functions import called, carried, settled
from ..system.validation import check_shape, format_value, real_numbers


class Controller(Protocol):
    """A controller with a memory: a discrete PID, an observer, a network with a state.

    The memory is a pytree of arrays. Its structure and shapes stay as `init` made them. Its types
    are those that calls give it: an integral may start from 0. Floating-point numbers have the
    precision of the state.
    """

    def init(self, t: jax.Array, q: jax.Array, v: jax.Array) -> Any:
        """The memory before the first sample, at t () in s, q (nq,), v (nv,)."""
        ...

    def __call__(self, memory: Any, t: jax.Array, q: jax.Array, v: jax.Array) -> tuple[Any, Any]:
        """The command u (nu,) at a sample time, and the memory for the next one."""
        ...


class Held(NamedTuple):
    """What is kept from sample to sample: the memory, and the command u (nu,), which is held."""

    memory: Any
    u: jax.Array


class Sampled(eqx.Module):
    """A control by a digital controller, `simulate(..., control=Sampled(controller, rate))`.

    rate: its samples in a second (Hz), the first at t = 0. Between two of them is a whole number of
    time steps, over which the command (nu,) is held. controller: a function of t () in s, q (nq,)
    and v (nv,) that returns the command, or a `Controller`, which also has a memory. Arrays in the
    controller are leaves, and derivatives pass through command and memory in both modes.

    Raises TypeError for what cannot be called, and ValueError for a rate that is not positive;
    `simulate` raises ValueError if a sample does not take a whole number of steps. A traced dt
    cannot be checked: then the nearest whole number is taken.

    >>> lift = dl.chain([dl.Body(name="lift", joint=dl.Prismatic(), mass=2.0)])
    >>> held = dl.Sampled(lambda t, q, v: 19.62 - 40 * q - 20 * v, rate=50)
    >>> run = dl.simulate(lift, [0.1], [0.0], dt=0.01, steps=100, control=held)
    >>> print(run.u[:4, 0].round(2))  # in N; a sample in two steps
    [15.62 15.62 16.44 16.44]
    """

    controller: Any
    rate: float = eqx.field(static=True)

    def __init__(self, controller: Any, rate: Any) -> None:
        if inspect.isclass(controller):
            name = controller.__name__
            raise TypeError(f"Sampled: the controller is the class {name}; write {name}(...)")
        if not callable(controller):
            raise TypeError(
                f"Sampled: the controller is {format_value(controller)}; give a function of (t, q, "
                "v), or an object with init(t, q, v) that is called as (memory, t, q, v)"
            )
        if isinstance(rate, Tracer) or not (np.ndim(rate) == 0 and 0 < float(rate) < np.inf):
            raise ValueError(
                f"Sampled: the rate is {format_value(rate)}; give a positive number in Hz"
            )
        self.controller, self.rate = controller, float(rate)

    def __str__(self) -> str:
        return "the sampled control"

    def check_dt(self, dt: jax.Array) -> None:
        """Raises ValueError if a sample does not take a whole number of concrete steps dt ()."""
        if isinstance(dt, Tracer):
            return
        exact = 1 / (self.rate * float(dt))
        whole = max(1, round(exact))
        if abs(exact - whole) > 16 * float(jnp.finfo(dt.dtype).eps) * exact:
            raise ValueError(
                f"simulate: a sample of the control at {self.rate:.10g} Hz takes {exact:.6g} steps "
                f"of dt = {float(dt):.10g} s, and must take a whole number of them; with dt = "
                f"{1 / (self.rate * whole):.10g} s it takes {whole}"
            )

    def check(self, system: System, at: tuple[jax.Array, jax.Array, jax.Array]) -> None:
        """Raises TypeError or ValueError if the controller returns something else at (t, q, v)."""

        def returned(t: jax.Array, q: jax.Array, v: jax.Array) -> tuple[Any, Any, Any]:
            memory = self._first(t, q, v)
            made = self._called(memory, t, q, v)
            if not (isinstance(made, tuple) and len(made) == 2):
                raise TypeError(
                    f"{system.name}: the sampled controller returns {format_value(made)}; let it "
                    "return two things, the command and its memory"
                )
            u, after = made
            what = "the command of the sampled controller"
            return real_numbers(system.name, what, u), memory, jax.tree.map(jnp.asarray, after)

        u, memory, after = jax.eval_shape(returned, *at)
        check_width(
            system, "control", "the command of the sampled controller", u.shape, (system.nu,)
        )
        if _shapes(memory) != _shapes(after):
            raise TypeError(
                f"{system.name}: the sampled controller makes the memory {_words(after)} of "
                f"{_words(memory)}; let it keep the structure and the shapes that init returns"
            )

    def begin(self, t: jax.Array, q: jax.Array, v: jax.Array) -> Held:
        """After the first sample, at t () in s, q (nq,), v (nv,)."""
        return self.sample(self._first(t, q, v), t, q, v)

    def sample(self, memory: Any, t: jax.Array, q: jax.Array, v: jax.Array) -> Held:
        """After a sample at t () in s, q (nq,), v (nv,)."""
        u, after = self._called(memory, t, q, v)
        return Held(carried(after, memory), jnp.asarray(u, q.dtype))

    @property
    def _remembers(self) -> bool:
        return hasattr(self.controller, "init")

    def _first(self, t: jax.Array, q: jax.Array, v: jax.Array) -> Any:
        if not self._remembers:
            return None
        memory = called(self.controller.init, t, q, v, names="init(t, q, v)")

        def after(memory: Any) -> Any:
            made = self._called(memory, t, q, v)
            # `check` says what is wrong with anything else.
            return made[1] if isinstance(made, tuple) and len(made) == 2 else None

        return settled(memory, after, q.dtype)

    def _called(self, memory: Any, t: jax.Array, q: jax.Array, v: jax.Array) -> Any:
        if self._remembers:
            return called(self.controller, memory, t, q, v, names="controller(memory, t, q, v)")
        return called(self.controller, t, q, v, names="controller(t, q, v)"), None


def _shapes(memory: Any) -> Any:
    leaves, structure = jax.tree.flatten(memory)
    return structure, [a.shape for a in leaves]


def _words(memory: Any) -> str:
    return format_value(jax.tree.map(lambda a: f"{a.dtype}{list(a.shape)}", memory))


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
    elif isinstance(given, eqx.Module):
        raise TypeError(
            f"{system.name}: {name} is a {type(given).__name__}; give numbers, samples, a function "
            f"of (t, q, v) or a Sampled controller; {_PLANS}"
        )
    elif np.ndim(given) == len(shape):
        # One value for the whole motion.
        check_width(system, name, name, np.shape(given), shape)
        sampled = ZeroOrderHold(jnp.asarray(given)[None], every=steps)
    else:
        sampled = ZeroOrderHold(given)
    needed = sampled.needed(steps)
    values = real_numbers(system.name, name, sampled.values)
    if values.ndim == len(shape) + 1 and values.shape[0] > needed:
        values = values[:needed]
    check_width(system, name, name, values.shape, (needed, *shape))
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
    elif callable(control) and hasattr(control, "init"):
        raise TypeError(
            "simulate: the control has a memory, which init makes, and needs the rate of its "
            "samples in Hz; give difflie.Sampled(controller, rate)"
        )


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
        made = called(function, t, q, v, names=f"{name}(t, q, v)")
        return real_numbers(system.name, f"what the function {name} returns", made)

    returned_shape = jax.eval_shape(returned, *at).shape
    check_width(system, name, f"what the function {name} returns", returned_shape, shape)


_PLANS = "a plan is carried out by difflie.control.replay"


def check_width(
    system: System, name: str, what: str, actual: tuple[int, ...], shape: tuple[int, ...]
) -> None:
    """Raises ValueError for an input of another shape, with the names of its numbers in order."""
    fix = ""
    if name == "control" and actual[-1:] != shape[-1:]:
        t = system.topology
        free = [label for label, _ in t.velocity_labels]
        named = some([repr(label) for label in system.actuator_names or free])
        fix = f", for {named} in this order"
        driven = [t.joints[b] for b in t.coordinate_joints if len(t.kinds[b]) == 1]
        if not system.actuators and driven and 0 < sum(actual[-1:]) < len(free):
            fix += (
                f"; to command some joints alone attach difflie.Drive({driven[0]!r}), and {_PLANS}"
            )
    check_shape(system.name, what, actual, shape, fix)
