"""The readings of several sensors, one beside the other, and how predictions differ from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from ...system.system import System
from ...system.validation import format_value, nearest
from ..problem import Deviation, deviations
from ..reading.columns import DataError
from ..recordings import Recording
from .encoder import Encoder
from .sensor import Sensor


def named_sensor(system: System, name: str) -> Sensor:
    """The sensor of this name; raises DataError for an unknown one, with the nearest."""
    known = {s.name: s for s in system.sensors if isinstance(s, Sensor)}
    if name in known:
        return known[name]
    if any(isinstance(s, Encoder) and s.joint == name for s in system.sensors):
        raise DataError(
            f"{system.name}: {format_value(name)} has an encoder, whose readings are q; give the "
            "deviation of these"
        )
    hint = nearest(str(name), known) or f"; there are {', '.join(known) or 'none'}"
    raise DataError(f"{system.name}: no sensor is named {format_value(name)}{hint}")


def readings_of(system: System, recording: Recording, names: Iterable[str]) -> NDArray:
    """The readings (n, K) of sensors side by side, with NaN for gaps.

    A reading that is not compared by subtraction, such as a pose, is a gap if a part of it is one.
    Raises DataError for readings that are missing, all NaN, or of a wrong number of columns.
    """
    found = [np.zeros((len(recording.t), 0))]
    for name in names:
        sensor = named_sensor(system, name)
        if name not in recording.readings:
            hint = nearest(name, recording.readings)
            raise DataError(
                f"{recording.name}: there are no readings of {format_value(name)}{hint}; name "
                "their columns, or leave its deviation out"
            )
        given, size = recording.readings[name], sensor.size(system)
        if given.shape[1] != size:
            said = ", ".join(column for column, _ in sensor.columns(system))
            raise DataError(
                f"{recording.name}: the readings of {format_value(name)} have {given.shape[1]} "
                f"columns, the sensor {size}: {said}"
            )
        if np.isnan(given).all():
            raise DataError(
                f"{recording.name}: all readings of {format_value(name)} are gaps; leave its "
                "deviation out, or the recording"
            )
        gap = np.isnan(given)
        gap = gap if sensor.flat else gap.any(axis=1, keepdims=True)
        found.append(np.where(gap, np.nan, given))
    return np.concatenate(found, axis=1)


def reading_deviations(system: System, given: Mapping[str, Deviation], weight: float) -> NDArray:
    """The standard deviations (K,) of sensors side by side, over the root of a weight."""
    each = [
        deviations(name, deviation, named_sensor(system, name).size(system), weight)
        for name, deviation in given.items()
    ]
    return np.concatenate([np.zeros(0), *each])


def differences(
    system: System,
    names: Sequence[str],
    measured: Float[Array, " K"],
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    a: Float[Array, " nv"] | None,
    u: Float[Array, " nu"] | None,
    t: Any,
) -> Float[Array, " K"]:
    """How far the predictions of sensors in a state are from readings (K,); zero at gaps."""
    parts, done = [measured[:0]], 0
    for name in names:
        sensor = named_sensor(system, name)
        predicted = sensor.predicted(system, q, v, a, u, t)
        reading = measured[done : done + predicted.size]
        gap = jnp.isnan(reading)
        off = sensor.difference(predicted, jnp.where(gap, 0, reading))
        parts.append(jnp.where(gap, jnp.zeros_like(off), off))
        done += predicted.size
    return jnp.concatenate(parts)


def columns_of_sensors(system: System, names: Iterable[str]) -> list[tuple[str, str, str]]:
    """The sensor, the name and the unit of each of the readings (K,)."""
    return [(n, *column) for n in names for column in named_sensor(system, n).columns(system)]


def widths(system: System, names: Sequence[str]) -> NDArray:
    """The place in `names` of the sensor of each of the readings (K,)."""
    sizes = [named_sensor(system, name).size(system) for name in names]
    return np.repeat(np.arange(len(names)), sizes)
