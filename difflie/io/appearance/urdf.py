"""The <visual> elements of a URDF file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...system import ModelError, System
from ..files import existing
from ..urdf.element import Element
from ..urdf.meshes import mesh_file
from ..urdf.reader import origin_pose, parsed
from .meshes import read_mesh
from .shape import Appearance, Shape, box, cylinder, ellipsoid

Colour = tuple[float, float, float, float]


def urdf_appearance(path: Path, system: System) -> tuple[Appearance, list[str]]:
    """The shapes of the links of a file by name, None for a link that is the world; and faults."""
    robot = parsed(existing(path, "URDF"))
    materials = {m.attributes.get("name"): _rgba(m) for m in robot.all("material")}
    appearance: Appearance = {}
    faults: list[str] = []
    for link in robot.all("link"):
        name = link.attributes.get("name")
        shapes: list[Shape] = []
        for visual in link.all("visual"):
            material = visual.child("material")
            colour = None
            if material is not None:
                colour = _rgba(material) or materials.get(material.attributes.get("name"))
            try:
                shapes += _shapes(visual, colour, path.parent)
            except (ModelError, ImportError) as error:
                faults.append(str(error))
        if shapes:
            body = name if name in system.body_names else None
            appearance[body] = (*appearance.get(body, ()), *shapes)
    return appearance, faults


def _shapes(visual: Element, colour: Colour | None, folder: Path) -> list[Shape]:
    pose = origin_pose(visual)
    geometry = visual.needed_child("geometry", "a box, a cylinder, a sphere or a mesh")
    shapes = []
    for element in geometry.children:
        name = visual.attributes.get("name", element.tag)
        if element.tag == "mesh":
            scale = np.array(element.numbers("scale", 3, [1.0, 1.0, 1.0]))
            file = mesh_file(element.needed("filename"), folder.absolute())
            for vertices, faces, own in read_mesh(file, scale):
                shapes.append(Shape(vertices, faces, colour or own, file.name))
        elif element.tag == "box":
            shapes.append(Shape(*box(np.array(element.numbers("size", 3))), colour, name))
        elif element.tag == "cylinder":
            surface = cylinder(element.number("radius"), element.number("length"))
            shapes.append(Shape(*surface, colour, name))
        elif element.tag == "sphere":
            surface = ellipsoid(np.full(3, element.number("radius")))
            shapes.append(Shape(*surface, colour, name))
        else:
            raise ModelError(f"{element.source}: this is no box, cylinder, sphere or mesh")
    return [shape.placed(pose) for shape in shapes]


def _rgba(material: Element) -> Colour | None:
    colour = material.child("color")
    if colour is None:
        return None
    r, g, b, a = np.clip(colour.numbers("rgba", 4), 0.0, 1.0).tolist()
    return r, g, b, a
