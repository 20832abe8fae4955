"""Readings of sensors in recordings, beside what the sensors of a system predict."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike, NDArray

from ..groups import quaternion
from ..sensors import Encoder, Sensor
from ..system.system import System
from ..system.validation import format_value, nearest
from .problem import QUATERNION_LENGTH, Deviation, deviations
from .recordings import DataError, Recording


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
    return np.repeat(
        np.arange(len(names)), [named_sensor(system, name).size(system) for name in names]
    )


def pose_readings(quaternions: ArrayLike, positions: ArrayLike) -> NDArray:
    """Readings (n, 6) of a `Pose`: rotation vectors in rad, then positions in m.

    quaternions (n, 4), as (w, x, y, z) of any sign, and positions (n, 3) in m, as motion capture
    gives them. A row with a NaN is a gap. Successive rotation vectors are near each other, beyond
    pi where a turn goes on, so that they may be interpolated. Raises DataError for other shapes,
    and for quaternions that are not of length one, up to rounding.
    """
    quaternions, positions = np.asarray(quaternions, float), np.asarray(positions, float)
    n = len(quaternions)
    if quaternions.shape != (n, 4) or positions.shape != (n, 3):
        raise DataError(
            f"the quaternions have shape {quaternions.shape} and the positions {positions.shape}; "
            "give (n, 4) and (n, 3)"
        )
    lengths = np.linalg.norm(quaternions, axis=1)
    for k in np.flatnonzero(np.abs(lengths - 1) > QUATERNION_LENGTH)[:1]:
        raise DataError(
            f"the quaternion of row {k + 1} has the length {lengths[k]:.4g}; give (w, x, y, z) of "
            "length 1, and leave gaps as NaN"
        )
    gap = np.any(np.isnan(np.column_stack((quaternions, positions))), axis=1)
    safe = np.where(gap[:, None], [1.0, 0.0, 0.0, 0.0], quaternions / lengths[:, None])
    turns = np.asarray(jax.vmap(quaternion.log)(jnp.asarray(safe)), float)
    return unwrapped(np.where(gap[:, None], np.nan, np.column_stack((turns, positions))))


def unwrapped(poses: NDArray) -> NDArray:
    """Readings (n, 6) of a `Pose`, with whole turns added so that successive ones are near.

    Rows with a NaN are gaps, and left out.
    """
    found = poses.copy()
    turns = found[:, :3]
    for before, k in itertools.pairwise(np.flatnonzero(~np.any(np.isnan(turns), axis=1))):
        length = np.linalg.norm(turns[k])
        if length > 0:
            whole = 2 * np.pi / length * turns[k]
            # Along its axis, to the multiple that is nearest to the vector before.
            count = np.round((turns[before] - turns[k]) @ whole / (whole @ whole))
            turns[k] += count * whole
    return found
