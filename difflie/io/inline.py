"""Inline tables that stand for frames on bodies and for the points of paths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass, field
from typing import Annotated, Any

from ..forces.actuators.actuator import Axis, as_axis
from ..forces.path import as_path
from ..system.fields import number
from ..system.frame import Frame

_Point = Annotated[list[float], number(unit="m", shape=(3,))]


@dataclass(frozen=True, kw_only=True)
class PointTable:
    """{body = "NAME", point = [x, y, z]}: a point (m) in the frame of a body, or of the world."""

    body: str | None = None
    point: _Point


@dataclass(frozen=True)
class FrameTable:
    """{body = "NAME", position = [x, y, z], axis = [x, y, z]}: a frame on a body or the world.

    position in m; axis: the direction of its z axis, of any length, or in its place rotation, a
    rotation vector in rad. See `difflie.Frame`.
    """

    body: str | None = None
    position: _Point = field(default_factory=lambda: [0.0, 0.0, 0.0])
    rotation: Annotated[list[float], number(unit="rad", shape=(3,))] | None = None
    axis: Annotated[list[float], number(shape=(3,))] | None = None


# By the type or converter of a field: the table for its values, and the function that reads it.
STANDS_FOR: dict[Any, tuple[Any, Callable[[Any], Any]]] = {
    Frame: (FrameTable, lambda table: Frame(*astuple(table))),
    as_path: (list[PointTable], lambda points: as_path([(p.body, p.point) for p in points])),
    as_axis: (Axis, as_axis),
}
