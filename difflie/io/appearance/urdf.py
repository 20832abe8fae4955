"""The <visual> elements of a URDF file, with meshes read by trimesh: STL, OBJ, DAE, PLY, GLB."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...system import System
from ...system.installation import extra
from ...system.validation import ModelError, format_value
from ..files import existing
from ..robot_elements import Element
from ..unread import Notes
from ..urdf.reader import matrix_of, mesh_file, origin_of, parsed
from .shape import Appearance, Shape, box, capsule, cylinder, ellipsoid

# Larger files are not read: the picture would not be better, and the browser slow.
LARGEST_FILE = 64 * 2**20
MOST_FACES = 500_000
# How archives begin, which trimesh unpacks to whatever size they have: zip, gzip, bzip2, xz.
_ARCHIVES = b"PK\x03\x04", b"\x1f\x8b", b"BZh", b"\xfd7zXZ"


def read_mesh(path: Path, scale: NDArray) -> list[tuple[NDArray, NDArray, Any]]:
    """The vertices (n, 3) in m, times scale (3,), faces (m, 3) and colour of each part of a file.

    A colour is (4,) from 0 to 1, None where the file gives none. Raises ImportError without
    trimesh; `ModelError` for a file that is missing, too large, or no mesh.
    """
    try:
        trimesh = importlib.import_module("trimesh")
    except ImportError:
        raise ImportError(
            f"meshes are read by trimesh, which is not installed; {extra('viewer')}"
        ) from None
    if not path.is_file():
        raise ModelError(f"{path}: the mesh is missing; put the file there")
    size = path.stat().st_size
    if size > LARGEST_FILE:
        raise ModelError(
            f"{path}: the mesh has {size / 2**20:.0f} MiB, at most {LARGEST_FILE // 2**20} are "
            "read; simplify it"
        )
    with path.open("rb") as file:
        if file.read(8).startswith(_ARCHIVES):
            raise ModelError(f"{path}: this is an archive; unpack it, and name the mesh in it")
    try:
        scene = trimesh.load_scene(path)
        parts = [part for part in scene.dump() if len(getattr(part, "faces", ()))]
    except ImportError as error:
        raise ImportError(
            f"files {path.suffix} need {error.name}, which is not installed; {extra('viewer')}"
        ) from None
    except Exception as error:  # trimesh's readers raise whatever their parsers raise
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise ModelError(f"{path}: it cannot be read as a mesh: {reason}") from None
    if not parts:
        raise ModelError(f"{path}: it has no triangles; export it as a surface of triangles")
    faces = sum(len(part.faces) for part in parts)
    if faces > MOST_FACES:
        raise ModelError(
            f"{path}: the mesh has {faces} triangles, at most {MOST_FACES} are read; simplify it"
        )
    # Of these formats only COLLADA states a unit; the lengths of the others are in m.
    unit = trimesh.units.unit_conversion(parts[0].units or "m", "m")
    read = []
    for part in parts:
        vertices = np.asarray(part.vertices, float) * (unit * scale)
        if not np.isfinite(vertices).all():
            raise ModelError(f"{path}: a vertex is not finite; export the mesh again")
        corners = np.asarray(part.faces, int)
        # A mirror turns the triangles inside out.
        corners = corners if np.prod(scale) > 0 else corners[:, ::-1]
        read.append((vertices, corners, _mesh_colour(part)))
    return read


def _mesh_colour(part: Any) -> tuple[float, float, float, float] | None:
    visual = part.visual
    if not getattr(visual, "defined", False):
        return None
    material = getattr(visual, "material", None)
    colour = np.asarray(material.main_color if material is not None else visual.main_color)
    r, g, b, a = (float(c) / 255 for c in colour)
    return r, g, b, a


Colour = tuple[float, float, float, float]


def urdf_appearance(path: Path, system: System) -> tuple[Appearance, list[str]]:
    """The shapes of the links of a file by name, None for a root link that is the world.

    () for a link of whose visuals none can be read. And faults: sentences on what is left out.
    """
    robot = parsed(existing(path, "URDF"))
    faults: list[str] = []
    # Names of materials hold in the whole file, also of those that a link defines.
    materials: dict[str | None, Colour] = {}
    for element in robot.walk():
        if element.tag == "material" and (colour := _rgba(element, faults)):
            materials.setdefault(element.attributes.get("name"), colour)
    children = {c.attributes.get("link") for j in robot.all("joint") for c in j.all("child")}
    appearance: Appearance = {}
    for link in robot.all("link"):
        name = link.attributes.get("name")
        visuals = link.all("visual")
        if visuals and name not in system.body_names and name in children:
            faults.append(f"{link.source}: {system.name} has no body {format_value(name)}")
            continue
        shapes: list[Shape] = []
        for visual in visuals:
            try:
                shapes += _shapes(visual, _colour(visual, materials, faults), path.parent)
            except (ModelError, ImportError) as error:
                faults.append(str(error))
        if visuals:
            body = name if name in system.body_names else None
            appearance[body] = (*appearance.get(body, ()), *shapes)
    return appearance, faults


def _shapes(visual: Element, colour: Colour | None, folder: Path) -> list[Shape]:
    pose = np.eye(4)
    pose[:3, 3], rotation = origin_of(visual, Notes(list))
    pose[:3, :3] = matrix_of(rotation)
    kinds = "a box, a cylinder, a capsule, a sphere or a mesh"
    geometry = visual.needed_child("geometry", kinds)
    if not geometry.children:
        raise ModelError(f"{geometry.source}: it is empty; add {kinds}")
    shapes = []
    for element in geometry.children:
        name = visual.attributes.get("name", element.tag)
        if element.tag == "mesh":
            scale = np.array(element.numbers("scale", 3, [1.0, 1.0, 1.0]))
            file = mesh_file(element.needed("filename"), folder.absolute())
            for vertices, faces, own in read_mesh(file, scale):
                shapes.append(Shape(vertices, faces, colour or own, file.name))
        elif element.tag == "box":
            shapes.append(Shape(*box(np.array(_sizes(element, "size", 3))), colour, name))
        elif element.tag == "cylinder":
            (radius,), (length,) = _sizes(element, "radius"), _sizes(element, "length")
            shapes.append(Shape(*cylinder(radius, length), colour, name))
        elif element.tag == "capsule":
            (radius,), (length,) = _sizes(element, "radius"), _sizes(element, "length")
            shapes.append(Shape(*capsule(radius, length), colour, name))
        elif element.tag == "sphere":
            surface = ellipsoid(np.full(3, _sizes(element, "radius")))
            shapes.append(Shape(*surface, colour, name))
        else:
            raise ModelError(f"{element.source}: this is no box, cylinder, capsule, sphere or mesh")
    return [shape.placed(pose) for shape in shapes]


def _sizes(element: Element, name: str, count: int = 1) -> list[float]:
    values = element.numbers(name, count)
    if min(values) <= 0:
        text = format_value(element.needed(name))
        raise ModelError(f"{element.source}: {name} must be positive, got {text}")
    return values


def _colour(
    visual: Element, materials: dict[str | None, Colour], faults: list[str]
) -> Colour | None:
    material = visual.child("material")
    if material is None:
        return None
    return _rgba(material, faults) or materials.get(material.attributes.get("name"))


def _rgba(material: Element, faults: list[str]) -> Colour | None:
    try:
        colour = material.child("color")
        if colour is None:
            return None
        r, g, b, a = np.clip(colour.numbers("rgba", 4), 0.0, 1.0).tolist()
    except ModelError as error:
        faults.append(str(error))
        return None
    return r, g, b, a
