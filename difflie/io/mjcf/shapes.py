"""The geoms of a MuJoCo model that may touch, as shapes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...collision import (
    Box,
    Capsule,
    ConvexHull,
    Cylinder,
    Ellipsoid,
    HeightField,
    Plane,
    Shape,
    Sphere,
)
from ...collision.hulls import fewer_corners
from ...system.frame import Frame
from ..robot_files import distinct, of_quaternion
from .stand_ins import stands_in

# The flags without which nothing touches.
OFF = {"contact", "constraint"}


def geom_names(model: Any, bodies: Sequence[str]) -> list[str]:
    """The names of a MuJoCo model's geoms, "BODY/geomN" where they have none.

    bodies: its bodies but the world. N counts the geoms of a body from 0.
    """
    given = [model.geom(g).name for g in range(model.ngeom)]
    taken, names = set(given), []
    for g, name in enumerate(given):
        if not name:
            b = int(model.geom_bodyid[g])
            owner = bodies[b - 1] if b else "world"
            name = distinct(f"{owner}/geom{g - int(model.body_geomadr[b])}", taken)
            taken.add(name)
        names.append(name)
    return names


def touching_geoms(model: Any, disabled: set[str]) -> NDArray[np.intp]:
    """The numbers of the geoms that may touch others: by their masks, or by an explicit pair.

    disabled: the option flags that are off, such as "contact".
    """
    masks = (model.geom_contype | model.geom_conaffinity) != 0
    pairs = [] if disabled & OFF else [*model.pair_geom1, *model.pair_geom2]
    paired = np.isin(np.arange(model.ngeom), pairs)
    real = [not stands_in(model, g) for g in range(model.ngeom)]
    return np.flatnonzero((masks | paired) & np.array(real, bool))


def unread_shapes(model: Any, disabled: set[str]) -> list[int]:
    """The geoms that may touch others, and are no shape here: signed distance fields, say."""
    return [int(g) for g in touching_geoms(model, disabled) if _corners(model, g) is None]


def geom_shapes(model: Any, bodies: Sequence[str], disabled: set[str]) -> dict[str, Shape]:
    """The shapes of the geoms that may touch, by name; bodies: those of the model but the world."""
    return dict(_shapes(model, bodies, disabled))


def _shapes(model: Any, bodies: Sequence[str], disabled: set[str]) -> Iterator[tuple[str, Shape]]:
    names = geom_names(model, bodies)
    for g in touching_geoms(model, disabled):
        corners = _corners(model, g)
        if corners is None:
            continue
        b = int(model.geom_bodyid[g])
        turn = of_quaternion(model.geom_quat[g])
        frame = Frame(bodies[b - 1] if b else None, model.geom_pos[g], turn)
        shape = simple_shape(frame, model.geom_type[g], model.geom_size[g])
        if _kind(model, g) == "hfield":
            shape = HeightField(*_heights(model, g), frame=frame)
        yield names[g], ConvexHull(frame, fewer_corners(corners)) if shape is None else shape


def simple_shape(frame: Frame, number: int, size: NDArray) -> Shape | None:
    """The shape of MuJoCo's type `number` with this size (3,), in m; None of a mesh and the like.

    frame: of the geom or site.
    """
    kind = _KINDS[number]
    if kind == "plane":
        return Plane(frame)
    if kind == "sphere":
        return Sphere(frame, size[0])
    if kind in ("capsule", "cylinder"):
        return (Capsule if kind == "capsule" else Cylinder)(frame, size[0], size[1])
    if kind in ("box", "ellipsoid"):
        return (Box if kind == "box" else Ellipsoid)(frame, size.copy())
    return None


_KINDS = "plane", "hfield", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh", "sdf"


def _kind(model: Any, g: int) -> str:
    return _KINDS[model.geom_type[g]]


def _corners(model: Any, g: int) -> NDArray | None:
    """The corners (n, 3) of a hull, as MuJoCo finds them; (0, 3) of another shape, None of none."""
    kind = _kind(model, g)
    if kind not in ("mesh", "sdf"):
        return np.zeros((0, 3))
    m = int(model.geom_dataid[g])
    if kind != "mesh" or m < 0 or model.mesh_graphadr[m] < 0:
        return None
    graph = model.mesh_graph[model.mesh_graphadr[m] :]
    count = int(graph[0])
    corners = graph[2 + count : 2 + 2 * count] + model.mesh_vertadr[m]
    return np.array(model.mesh_vert[corners], float)


def _heights(model: Any, g: int) -> tuple[NDArray, NDArray]:
    """Half the sizes (2,) of a height field, and its heights (rows, columns), in m."""
    m = int(model.geom_dataid[g])
    x, y, top, _ = np.array(model.hfield_size[m])
    rows, columns = int(model.hfield_nrow[m]), int(model.hfield_ncol[m])
    start = int(model.hfield_adr[m])
    heights = np.array(model.hfield_data[start : start + rows * columns], float)
    return np.array([x, y]), top * heights.reshape(rows, columns)
