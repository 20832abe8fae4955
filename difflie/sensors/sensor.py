"""Sensors: encoders of joints and sensors of any quantity, on a system, and their readings.

They exert no force and so are no couplings: simulations ignore them. Comparisons of a motion with
measurements use them, and `Trajectory.readings` says what they read along a motion.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from ..deprecated import renamed
from ..forces.actuators.acting import applied
from ..forces.at_joint import AtJoint
from ..quantities import AccelerationQuantity, Quantity
from ..quantities.quantity import as_quantity
from ..system.fields import number, number_faults
from ..system.internal_states import with_states
from ..system.protocols import SensorElement
from ..system.system import System
from ..system.user_functions import called
from ..system.validation import ModelError, format_value, real_values


class Encoder(AtJoint):
    """The encoder of a joint with one degree of freedom, with its scale and zero.

        reading = position_scale q + position_bias

    position_scale, without unit, is negative for reversed counting; position_bias in rad or m is
    the reading at q = 0. Velocities and accelerations are taken as derivatives of the reading. For
    a torque sensor use `Drive`.
    """

    joint: str = eqx.field(static=True)
    position_scale: jax.Array = eqx.field(converter=number(), default=1.0, kw_only=True)
    position_bias: jax.Array = eqx.field(
        converter=number(unit="rad or m"), default=0.0, kw_only=True
    )

    def incompatibilities(self, system: System, there: Sequence[SensorElement]) -> list[str]:
        return super().incompatibilities(system, there) or self.needs_coordinate(system)

    def problems(self) -> list[str]:
        scale = self.position_scale
        if isinstance(scale, Tracer) or np.any(scale):
            return super().problems()
        return [*super().problems(), "position_scale is 0.0; it must not be zero"]


def to_measured(
    system: System, q: Float[Array, "*batch nq"], v: Float[Array, "*batch nv"]
) -> tuple[Float[Array, "*batch nq"], Float[Array, "*batch nv"]]:
    """The readings for q (..., nq) and v (..., nv), in rad, m and the same per s."""
    scale, bias, rate = _calibration(system, q.shape[:-1])
    return scale * q + bias, rate * v


def to_true(system: System, q: jax.Array, *rates: jax.Array) -> tuple[jax.Array, ...]:
    """The true q (..., nq), and velocities or accelerations (..., nv), for these readings."""
    scale, bias, rate = _calibration(system, q.shape[:-1])
    return (q - bias) / scale, *(x / rate for x in rates)


def _calibration(system: System, batch: tuple[int, ...]) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The scales (*batch, nq) and biases of coordinates, the scales (*batch, nv) of their rates."""
    t = system.topology
    scale, rate = (jnp.ones(n, system.dtype) for n in (t.nq, t.nv))
    bias = jnp.zeros_like(scale)
    for encoder in system.sensors:
        if not isinstance(encoder, Encoder):
            continue
        i, k = encoder.coordinate(t), encoder.velocity(t)
        scale = scale.at[i].set(encoder.position_scale)
        bias = bias.at[i].set(encoder.position_bias)
        rate = rate.at[k].set(encoder.position_scale)
    scale, bias, rate = (jnp.broadcast_to(x, (*batch, x.size)) for x in (scale, bias, rate))
    return scale, bias, rate


# What names in paths, patterns and tables of columns mean already.
_TAKEN = "q", "v", "a", "tau", "t", "time", "gravity", "couplings", "constraints", "sensors"
_SIGNS = "/*?[]"


@renamed(faults="problems", misfits="incompatibilities")
class Sensor(eqx.Module):
    """A sensor of a quantity, with its scale and bias.

        reading = scale * quantity + bias

    name: that of its readings in recordings, and of its numbers: "imu/bias", "imu/scale",
    "imu/frame/position". quantity: one of `difflie.quantities`, or a function f(system, q, v, u,
    t), of shape () or (k,). scale, without unit, and bias, in the unit of the readings: one number,
    or one for each of the k readings. Readings of a `Pose` are its rotation vector in rad, of any
    length, and its origin in m; they are compared on SO(3), and its frames have positions and
    rotations in place of scale and bias.

    noise: the standard deviation of its readings, in their unit; cutoff: the size at which they are
    clipped, 0 for none. Both are used by `Trajectory.readings`, where it is asked for them.
    from_file: whether it is of a robot file. One of those gives way to another one of its name, and
    patterns of parameters do not select its numbers; their whole paths do.
    """

    name: str = eqx.field(static=True)
    quantity: Quantity = eqx.field(converter=as_quantity)
    scale: jax.Array = eqx.field(converter=number(shape=None), default=1.0)
    bias: jax.Array = eqx.field(converter=number(shape=None), default=0.0)
    noise: float = eqx.field(static=True, default=0.0, kw_only=True)
    cutoff: float = eqx.field(static=True, default=0.0, kw_only=True)
    from_file: bool = eqx.field(static=True, default=False, kw_only=True)

    @property
    def label(self) -> str:
        """The first part of the paths of its numbers."""
        return self.name

    @property
    def flat(self) -> bool:
        """Whether readings are compared by subtraction."""
        return type(self.quantity).difference is Quantity.difference

    def predicted(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        a: Float[Array, " nv"] | None,
        u: Float[Array, " nu"] | None,
        t: jax.Array | float,
    ) -> Float[Array, " k"]:
        """Its readings (k,) in a state; a: its measured acceleration, None for that of the motion.

        u: the command, None for none.
        """
        of = self.quantity
        if a is not None and isinstance(of, AccelerationQuantity):
            value = called(of.at, system, q, v, a, u, t)
        else:
            value = called(of, system, q, v, u, t)
        value = real_values(f"what {of.name} returns", jnp.ravel(jnp.asarray(value)), q.dtype)
        return self.scale * value + self.bias if self.flat else value

    def __call__(self, system: System, q: Any, v: Any, u: Any, t: Any) -> Float[Array, " k"]:
        """Its readings (k,) as a quantity, for `difflie.quantities.along` a simulated motion."""
        return self.predicted(system, q, v, None, u, t)

    def difference(
        self, predicted: Float[Array, " k"], reading: Float[Array, " k"]
    ) -> Float[Array, " k"]:
        """How far predicted readings (k,) are from a reading (k,)."""
        return self.quantity.difference(predicted, reading)

    def size(self, system: System) -> int:
        """The number k of its readings."""
        return int(np.prod(self._shape(system), dtype=int))

    def columns(self, system: System) -> list[tuple[str, str]]:
        """The name and the unit of each of its readings (k,), such as ("imu x", "m/s^2")."""
        size, named = self.size(system), self.quantity.labels(system)
        if named:
            return [(f"{self.name} {entry}", unit) for entry, unit in named]
        unit = getattr(self.quantity, "unit", "")
        return [(self.name if size == 1 else f"{self.name}[{i}]", unit) for i in range(size)]

    def unit(self, system: System) -> str:
        """The unit of its readings; "" where they have several."""
        units = {unit for _, unit in self.columns(system)}
        return units.pop() if len(units) == 1 else ""

    def needs(self, system: System) -> frozenset[str]:
        """Which of "v", "a", "u" and internal states "z" it depends on where all are measured."""
        given = {"v": system.nv, "a": system.nv, "u": system.nu}
        still, z = _still(system), jnp.full(system.nz, np.nan, system.dtype)

        def lost(name: str) -> bool:
            at = (jnp.full(n, np.nan if k == name else 0.0, system.dtype) for k, n in given.items())
            machine = with_states(still, z) if name == "z" else still
            return bool(jnp.isnan(_predicted(self, machine, *at)).any())

        return frozenset(name for name in (*given, *("z" * bool(system.nz))) if lost(name))

    def with_whole_bias(self, system: System) -> Sensor:
        """The same with a bias for each reading of the system: (k,), or () for k = 1."""
        size = self.size(system)
        bias = jnp.broadcast_to(jnp.ravel(self.bias), (size,))
        return eqx.tree_at(lambda s: s.bias, self, bias[0] if size == 1 else bias)

    def incompatibilities(self, system: System, there: Sequence[SensorElement]) -> list[str]:
        """Why it cannot be attached to a system beside the sensors there; empty if it can."""
        name = self.name
        if not isinstance(name, str) or not name or any(sign in name for sign in _SIGNS):
            return [f"its name is {format_value(name)}; give it one without {' '.join(_SIGNS)}"]
        t = system.topology
        for of, names in (
            ("a joint", t.joints),
            ("a body", t.bodies),
            ("an actuator", system.actuator_names),
            ("a coupling", [c.name for c in system.couplings]),
            ("a sensor", [s.name for s in there if isinstance(s, Sensor)]),
            ("something else", _TAKEN),
        ):
            if name in names:
                return [f"its name is that of {of} already; give it another"]
        try:
            shape = self._shape(system)
        except (ModelError, ValueError, TypeError) as error:
            return [f"its quantity cannot be measured: {error}"]
        if len(shape) > 1 or not all(shape):
            return [f"its quantity has shape {shape}; let it return one number, or k of them"]
        labels = self.quantity.labels(system)
        if labels and len(labels) != self.size(system):
            return [f"its quantity has shape {shape}, and {len(labels)} names of entries"]
        for what in ("scale", "bias"):
            own = jnp.shape(getattr(self, what))
            if own not in ((), (self.size(system),)):
                return [f"{what} has shape {own}; give one number, or {self.size(system)}"]
        return []

    def problems(self) -> list[str]:
        """The faults of its numbers, each with the fix."""
        faults = number_faults(self)
        for what in ("noise", "cutoff"):
            if not 0 <= getattr(self, what) < np.inf:
                faults.append(f"{what} is {getattr(self, what)}; it must be 0 or more")
        known = not isinstance(self.scale, Tracer) and not isinstance(self.bias, Tracer)
        if known and not np.all(self.scale):
            faults.append("scale has a zero; it must have none")
        if known and not self.flat and (np.any(self.scale != 1) or np.any(self.bias)):
            faults.append(
                "its readings are not compared by subtraction; leave out scale and bias, and move "
                "its frame"
            )
        return faults

    def _shape(self, system: System) -> tuple[int, ...]:
        """The shape of its quantity, without computing it."""
        arrays, fixed = eqx.partition((self.quantity, _still(system)), _is_array)
        leaves, structure = jax.tree.flatten(fixed)
        zero = [jax.ShapeDtypeStruct((n,), system.dtype) for n in (system.nq, system.nv, system.nu)]
        time = jax.ShapeDtypeStruct((), system.dtype)
        given = _value.eval_shape((tuple(leaves), structure), arrays, *zero, time)
        if given.dtype.kind not in "fi":
            raise TypeError(f"it returns {format_value(given)}; let it return real numbers")
        return given.shape

    def __str__(self) -> str:
        return f"{type(self).__name__} ({self.name!r}, {self.quantity.name})"


def _is_array(x: Any) -> bool:
    return isinstance(x, jax.Array | np.ndarray | np.generic)


@functools.partial(jax.jit, static_argnums=0)
def _value(fixed: tuple, arrays: Any, *state: Any) -> Any:
    """The value of a quantity; jax keeps what it has traced, for it is asked for many times."""
    leaves, structure = fixed
    quantity, system = eqx.combine(arrays, jax.tree.unflatten(structure, leaves))
    value = quantity(system, *state)
    if not _is_array(value):
        raise TypeError(f"it returns {format_value(value)}; let it return real numbers")
    return value


def _still(system: System) -> System:
    """The system whose actuators have no memory, to see what a quantity is like."""
    return applied(system, jnp.zeros(system.nu, system.dtype))


@eqx.filter_jit
def _predicted(sensor: Sensor, system: System, v: Any, a: Any, u: Any) -> jax.Array:
    return sensor.predicted(system, system.neutral(), v, a, u, jnp.zeros((), v.dtype))


def with_sensors(system: System, *sensors: Encoder | Sensor) -> System:
    """The system with encoders and other sensors appended to those it has, in `system.sensors`.

    Their numbers take on the system's precision and are leaves like all others, with the paths
    "joint/position_bias" and "joint/position_scale" of an encoder, "name/bias", "name/scale" and
    "name/frame/position" of a `Sensor`. Its bias gets one entry for each of its readings.

    Raises `ModelError` for an encoder at a joint that is unknown (with the nearest known one),
    follows another, has several degrees of freedom or an encoder already; for a sensor whose name
    is taken, or whose quantity cannot be measured on this system; and for a number that is not
    finite, of a wrong shape, or a zero scale.
    """
    for sensor in sensors:
        if not isinstance(sensor, Encoder | Sensor):
            raise ModelError(
                f"{system.name}: {format_value(sensor)} is no sensor; give a "
                "difflie.identify.Encoder, "
                'or Sensor("NAME", quantity)'
            )
        if isinstance(sensor, Sensor):
            system = replace(system, sensors=_without(system.sensors, sensor.name))
        for fault in sensor.incompatibilities(system, system.sensors) or sensor.problems():
            raise ModelError(f"{system.name}: {sensor}: {fault}")
        if isinstance(sensor, Sensor):
            sensor = sensor.with_whole_bias(system)
        added = jax.tree.map(functools.partial(jnp.asarray, dtype=system.dtype), sensor)
        system = replace(system, sensors=(*system.sensors, added))
    return system


def _without(sensors: tuple[SensorElement, ...], name: str) -> tuple[SensorElement, ...]:
    """The sensors but those of a robot file that have this name."""
    return tuple(
        s for s in sensors if not (isinstance(s, Sensor) and s.from_file and s.name == name)
    )


def is_of_file(sensor: SensorElement) -> bool:
    """Whether a sensor is one of a robot file."""
    return isinstance(sensor, Sensor) and sensor.from_file
