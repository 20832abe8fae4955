"""The <visual> elements of a URDF file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...system import System
from ...system.validation import ModelError, format_value
from ..files import existing
from ..meshes import read_mesh
from ..robot_elements import Element
from ..unread import Notes
from ..urdf.places import matrix_of, mesh_file, origin_of
from ..urdf.reader import parsed
from .shape import Appearance, Shape, box, capsule, cylinder, ellipsoid

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
