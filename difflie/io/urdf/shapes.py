"""The <collision> elements of a URDF file, as shapes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ...collision import Box, Capsule, ConvexHull, Cylinder, Shape, Sphere
from ...collision.hulls import fewer_corners, hull_corners
from ...system import ModelError, System
from ...system.frame import Frame
from ...system.validation import format_value
from ..meshes import read_mesh
from ..robot_elements import Element
from ..robot_files import distinct
from ..unread import Notes
from .places import matrix_of, mesh_file, origin_of


def read_shapes(
    robot: Element, folder: Path, system: System, meshes: bool
) -> tuple[dict[str, Shape], list[str]]:
    """The shapes of a <robot> by name, and why others are none.

    folder: of the file; meshes: whether their files are opened, to take their convex hulls. A link
    that is no body is the world.
    """
    shapes: dict[str, Shape] = {}
    faults: list[str] = []
    for link in robot.all("link"):
        name = link.attributes.get("name", "")
        body = name if name in system.body_names else None
        for k, collision in enumerate(c for c in link.children if c.tag == "collision"):
            given = collision.get("name") or f"{name}/collision{k}"
            try:
                for shape in _shapes(collision, body, folder, meshes):
                    shapes[distinct(given, shapes)] = shape
            except (ModelError, ImportError) as error:
                faults.append(str(error))
    return shapes, faults


def _shapes(collision: Element, body: str | None, folder: Path, meshes: bool) -> Iterator[Shape]:
    position, rotation = origin_of(collision, Notes(list))
    frame = Frame(body, position, matrix_of(rotation))
    for geometry in collision.all("geometry"):
        for element in geometry.children:
            geometry.all(element.tag)  # it is read
            if element.tag == "sphere":
                yield Sphere(frame, _size(element, "radius"))
            elif element.tag == "box":
                yield Box(frame, np.array(_sizes(element, "size", 3)) / 2)
            elif element.tag in ("cylinder", "capsule"):
                made = Cylinder if element.tag == "cylinder" else Capsule
                yield made(frame, _size(element, "radius"), _size(element, "length") / 2)
            elif element.tag == "mesh" and meshes:
                scale = np.array(element.numbers("scale", 3, [1.0, 1.0, 1.0]))
                file = mesh_file(element.needed("filename"), folder.absolute())
                yield hull_shape(frame, file, scale)
            elif element.tag == "mesh":
                raise ModelError(f"{element.source}: meshes are opened with contacts=True only")
            else:
                raise ModelError(
                    f"{element.source}: this is no box, cylinder, capsule, sphere or mesh"
                )


def hull_shape(frame: Frame, file: Path, scale: np.ndarray) -> ConvexHull:
    """The convex hull of the mesh in a file, times scale (3,), in a frame."""
    parts = read_mesh(file, scale, "collision")
    corners = hull_corners(np.concatenate([vertices for vertices, _, _ in parts]))
    return ConvexHull(frame, fewer_corners(corners))


def _size(element: Element, name: str) -> float:
    return _sizes(element, name, 1)[0]


def _sizes(element: Element, name: str, count: int) -> list[float]:
    values = element.numbers(name, count)
    if min(values) <= 0:
        text = format_value(element.needed(name))
        raise ModelError(f"{element.source}: {name} must be positive, got {text}")
    return values
