"""Sensors attached to a system, after their checks."""

from __future__ import annotations

import functools
from dataclasses import replace

import jax
import jax.numpy as jnp

from ...system.system import System
from ...system.validation import ModelError, format_value
from .encoder import Encoder
from .sensor import Sensor


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
        for fault in sensor.incompatibilities(system, system.sensors) or sensor.problems():
            raise ModelError(f"{system.name}: {sensor}: {fault}")
        if isinstance(sensor, Sensor):
            sensor = sensor.with_whole_bias(system)
        added = jax.tree.map(functools.partial(jnp.asarray, dtype=system.dtype), sensor)
        system = replace(system, sensors=(*system.sensors, added))
    return system
