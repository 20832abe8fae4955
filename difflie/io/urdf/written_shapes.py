"""Shapes of a system as <collision> elements of a URDF file."""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import Element, SubElement

import numpy as np

from ...collision import Box, Capsule, Cylinder, Sphere
from ...system import System
from .places import numbers_text, roll_pitch_yaw

_WRITTEN = Box, Capsule, Cylinder, Sphere


def unwritten(system: System) -> list[str]:
    """The names of the shapes for which URDF has no words: hulls, planes, those of the world."""
    shapes: dict[str, Any] = dict(system.shapes)
    return [n for n, s in shapes.items() if not isinstance(s, _WRITTEN) or s.body is None]


def write_shapes(robot: Element, system: System) -> None:
    """Writes the shapes of a system into the links of a <robot>, but the `unwritten` ones."""
    links = {link.get("name"): link for link in robot.findall("link")}
    left = set(unwritten(system))
    shapes: dict[str, Any] = {n: s for n, s in system.shapes.items() if n not in left}
    for name, shape in shapes.items():
        collision = SubElement(links[shape.body], "collision", name=name)
        angles = roll_pitch_yaw(np.asarray(shape.frame.rotation))
        SubElement(
            collision, "origin", xyz=numbers_text(shape.frame.position), rpy=numbers_text(angles)
        )
        geometry = SubElement(collision, "geometry")
        if isinstance(shape, Box):
            SubElement(geometry, "box", size=numbers_text(2 * shape.half_sizes))
        elif isinstance(shape, Sphere):
            SubElement(geometry, "sphere", radius=numbers_text(shape.radius))
        else:
            sizes = {
                "radius": numbers_text(shape.radius),
                "length": numbers_text(2 * shape.half_length),
            }
            SubElement(geometry, "capsule" if isinstance(shape, Capsule) else "cylinder", sizes)
