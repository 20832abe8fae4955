"""Tables of identification files for sensors beyond the joints.

    [[sensor]]                            [[sensor]]
    name = "imu"                          name = "hand"
    kind = "accelerometer"                kind = "pose"                # motion capture
    body = "fore arm"                     body = "hand"
    position = [0.1, 0.0, 0.02]           columns = ["qw", "qx", "qy", "qz", "x", "y", "z"]
    rotation = [0.0, 0.0, 1.5708]         deviation = [0.01, 0.01, 0.01, 0.002, 0.002, 0.002]
    columns = ["ax", "ay", "az"]
    deviation = 0.05                      # in the sensor's unit, one or one for each column

Kinds with a `body`, and position (m) and rotation (a rotation vector in rad) of the sensor on it:
"accelerometer" (m/s^2) and "gyroscope" (rad/s), both in the sensor's axes; "point" (m), in the
world, without a rotation; "pose", with six columns, a rotation vector (rad) and a position (m), or
seven, a quaternion (w, x, y, z) and a position. With a `joint`, which may be fixed: "wrench", three
moments (N m) and three forces (N) in the sensor's axes. Of one's own: kind = "module:function", a
function of (system, q, v, u, t) in module.py beside the file, or a quantity; to import it must be
allowed, by --allow-code.

scale and bias: reading = scale * quantity + bias, one number or one for each column. A sensor's
numbers are parameters with the paths "imu/bias", "imu/scale", "imu/frame/position",
"hand/reference/position" (of the frame in which poses and points are measured) and "wrist/position"
of a wrench.

With fit.error = "torque" readings are compared along the measured motion; with "motion", and with
"both", in which each counts once, along the simulated one. fit.positions = false leaves the angles
out of the comparison. Readings are cut and resampled like all columns, and not smoothed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated

from ..system.fields import number
from ..system.validation import format_value, nearest

# What each kind stands on.
KINDS = {
    **dict.fromkeys(("accelerometer", "gyroscope", "point", "pose"), "body"),
    "wrench": "joint",
}

_Three = Annotated[list[float], number(shape=(3,))]


def _zero() -> list[float]:
    return [0.0, 0.0, 0.0]


def _has_kind(kind: str) -> Iterator[str]:
    if kind not in KINDS and ":" not in kind:
        hint = nearest(kind, KINDS) or f"; write one of {', '.join(KINDS)}, or module:function"
        yield f"kind is {format_value(kind)}, which is not known{hint}"


def _has_place(
    kind: str,
    body: str | None,
    joint: str | None,
    position: list[float],
    rotation: list[float],
) -> Iterator[str]:
    given = {"body": body, "joint": joint}
    for key, value in given.items():
        if KINDS.get(kind) == key and value is None:
            yield f"{key} is missing; a sensor of kind {format_value(kind)} needs it"
        if value is not None and KINDS.get(kind) != key:
            said = format_value(value)
            yield f"{key} is {said}; it must be left out of kind {format_value(kind)}"
    if kind not in KINDS and (any(position) or any(rotation)):
        yield f"position and rotation must be left out of kind {format_value(kind)}"
    if kind == "point" and any(rotation):
        yield f"rotation is {rotation}; it must be left out of a point"


def _has_columns(columns: list[str]) -> Iterator[str]:
    if not columns:
        yield "columns is []; it must be the names of one column or more"


@dataclass(frozen=True)
class SensorTable:
    """[[sensor]]: as of `difflie.identify.Sensor`, with its columns and standard deviations."""

    name: str
    kind: str
    columns: list[str]
    deviation: Annotated[float | list[float], number(shape=None, positive=True)]
    body: str | None = None
    joint: str | None = None
    position: _Three = field(default_factory=_zero)
    rotation: _Three = field(default_factory=_zero)
    scale: Annotated[float | list[float], number(shape=None)] = 1.0
    bias: Annotated[float | list[float], number(shape=None)] = 0.0
    conditions = _has_kind, _has_place, _has_columns
