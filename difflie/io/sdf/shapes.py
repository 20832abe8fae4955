"""The <collision> elements of an SDF file, as shapes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ...collision import Box, Capsule, Cylinder, Ellipsoid, Plane, Shape, Sphere
from ...system import ModelError, System
from ...system.frame import Frame
from ...system.validation import format_value
from ..robot_elements import Element
from ..robot_files import distinct
from ..urdf.places import mesh_file
from ..urdf.shapes import hull_shape
from .frames import WORLD
from .models import Machine
from .poses import matrix


def read_shapes(found: Machine, system: System, meshes: bool) -> tuple[dict[str, Shape], list[str]]:
    """The shapes of a model by name, and why others are none; links that are no body stand still.

    One without a name is called "LINK/collisionN". meshes: whether their files are opened, to take
    their convex hulls.
    """
    shapes: dict[str, Shape] = {}
    faults: list[str] = []
    for key, link in found.links.items():
        body = key if key in system.body_names else None
        for k, collision in enumerate(c for c in link.children if c.tag == "collision"):
            name = collision.get("name")
            given = f"{key}/collision{k}" if name is None else f"{key}/{name}"
            try:
                pose = _pose(found, key, collision, body)
                for shape in _shapes(collision, body, pose, meshes):
                    shapes[distinct(given, shapes)] = shape
            except (ModelError, ImportError) as error:
                faults.append(str(error))
    return shapes, faults


def _pose(found: Machine, key: str, collision: Element, body: str | None) -> NDArray:
    """The pose (4, 4) of a collision in its body, or in the world."""
    pose, frames = collision.leaf("pose"), found.frames
    base = None if pose is None else pose.get("relative_to")
    placed = matrix(pose)
    if base and pose is not None:
        placed = frames.pose(frames.key(base, found.scopes[key], pose), key) @ placed
    return placed if body else frames.pose(key, WORLD) @ placed


def _shapes(collision: Element, body: str | None, pose: NDArray, meshes: bool) -> Iterator[Shape]:
    frame = Frame(body, pose[:3, 3], pose[:3, :3])
    for geometry in collision.all("geometry"):
        for element in geometry.children:
            geometry.all(element.tag)  # it is read
            if element.tag == "empty":
                continue
            if element.tag == "sphere":
                yield Sphere(frame, _sizes(element, "radius", 1)[0])
            elif element.tag == "box":
                yield Box(frame, np.array(_sizes(element, "size", 3)) / 2)
            elif element.tag == "ellipsoid":
                yield Ellipsoid(frame, np.array(_sizes(element, "radii", 3)))
            elif element.tag in ("cylinder", "capsule"):
                made = Cylinder if element.tag == "cylinder" else Capsule
                radius, length = (_sizes(element, name, 1)[0] for name in ("radius", "length"))
                yield made(frame, radius, length / 2)
            elif element.tag == "plane":
                for size in element.leaves("size"):
                    size.waive()  # only what is drawn of it
                yield Plane(Frame(body, pose[:3, 3], pose[:3, :3] @ _turn_to(_normal(element))))
            elif element.tag == "mesh" and meshes:
                scale = element.leaf("scale")
                file = mesh_file(element.words_in("uri") or "", element.path.absolute().parent)
                yield hull_shape(frame, file, np.array(scale.values(3) if scale else [1.0] * 3))
            elif element.tag == "mesh":
                raise ModelError(f"{element.source}: meshes are opened with contacts=True only")
            else:
                raise ModelError(
                    f"{element.source}: this is no box, cylinder, capsule, ellipsoid, sphere, "
                    "plane or mesh"
                )


def _normal(plane: Element) -> NDArray:
    """The unit normal (3,) of a plane."""
    given = plane.leaf("normal")
    normal = np.array([0.0, 0.0, 1.0] if given is None else given.values(3))
    length = np.linalg.norm(normal)
    if not length:
        raise ModelError(f"{plane.source}: its normal is zero; give it a direction")
    return normal / length


def _turn_to(z: NDArray) -> NDArray:
    """A rotation (3, 3) whose third axis is a unit vector (3,)."""
    if z[2] == 1:
        return np.eye(3)
    y = np.cross(z, np.eye(3)[int(np.argmin(np.abs(z)))])
    y = y / np.linalg.norm(y)
    return np.stack([np.cross(y, z), y, z], axis=1)


def _sizes(element: Element, name: str, count: int) -> list[float]:
    given = element.leaf(name)
    if given is None:
        raise ModelError(f"{element.source}: the element <{name}> is missing; add <{name}>...")
    values = given.values(count)
    if min(values) <= 0:
        raise ModelError(f"{given.source}: {name} must be positive, got {format_value(given.text)}")
    return values
