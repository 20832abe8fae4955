"""Shapes of a system as geoms of a MuJoCo file, and those in contact as its pairs."""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import SubElement

import numpy as np

from ....collision import Box, Capsule, ConvexHull, Cylinder, Ellipsoid, HeightField, Plane, Sphere
from ....forces import ShapeContact
from ....groups import so3
from ..softness import soft_law
from .draft import Draft, WrittenPair, numbers, put

KINDS: dict[type, str] = {
    Sphere: "sphere",
    Capsule: "capsule",
    Cylinder: "cylinder",
    Box: "box",
    Ellipsoid: "ellipsoid",
    Plane: "plane",
    ConvexHull: "mesh",
    HeightField: "hfield",
}
# How thick a height field is, below its lowest point, in m.
_BASE = 0.1


def write_shapes(draft: Draft) -> None:
    """Writes the shapes of the system; adds those of classes of one's own to the faults.

    Shapes that are in no contact may touch all others in MuJoCo, as in the file they came from;
    those in contact touch in their pairs only.
    """
    names = {}
    idle = draft.system.idle_shapes
    for name, shape in draft.system.shapes.items():
        if type(shape) not in KINDS:
            draft.faults.append(f"the shape {name!r} ({type(shape).__name__})")
            continue
        names[name] = draft.unique("geom", name)
        geom = SubElement(draft.bodies[shape.frame.body], "geom", name=names[name], mass="0")
        position, turn = np.asarray(shape.frame.position), shape.frame.rotation
        if isinstance(shape, HeightField):
            # MuJoCo counts from the lowest point.
            lowest = np.array([0, 0, np.min(shape.heights)])
            position = position + np.asarray(so3.exp(turn)) @ lowest
        put(geom, position, turn)
        geom.set("type", KINDS[type(shape)])
        if name not in idle:
            geom.set("contype", "0")
            geom.set("conaffinity", "0")
        if isinstance(shape, ConvexHull):
            mesh = SubElement(draft.section("asset"), "mesh", name=names[name])
            mesh.set("vertex", numbers(shape.vertices))
            geom.set("mesh", names[name])
        elif isinstance(shape, HeightField):
            _write_heights(draft, shape, names[name])
            geom.set("hfield", names[name])
        else:
            geom.set("size", numbers(size_of(shape)))
    for contact in draft.system.couplings:
        if isinstance(contact, ShapeContact):
            _write_pairs(draft, contact, names)


def _write_heights(draft: Draft, shape: HeightField, name: str) -> None:
    """Writes the surface of a height field; in files its rows begin at the greatest y."""
    heights = np.asarray(shape.heights)
    above = heights - heights.min()
    top = above.max() or 1.0
    rows, columns = heights.shape
    field = SubElement(draft.section("asset"), "hfield", name=name)
    field.set("nrow", str(rows))
    field.set("ncol", str(columns))
    field.set("elevation", numbers(above[::-1] / top))
    field.set("size", numbers([*np.asarray(shape.half_sizes), top, _BASE]))


def size_of(shape: Any) -> np.ndarray:
    """The size of a shape, as MuJoCo has it, in m."""
    if isinstance(shape, Plane):
        return np.array([0.0, 0.0, 1.0])  # without end
    if isinstance(shape, Box):
        return np.asarray(shape.half_sizes)
    if isinstance(shape, Ellipsoid):
        return np.asarray(shape.radii)
    return np.array([float(number) for number in shape.numbers])  # radius, and half the length


def write_softness(draft: Draft, model: Any) -> list[str]:
    """Writes the stiffness and dissipation of contacts, by the weights of the file as compiled.

    model: MuJoCo's. The pairs whose dissipation is more than critical damping.
    """
    overdamped = []
    if draft.pairs:  # with MuJoCo's pyramids contacts carry more, by their friction
        draft.option.set("cone", "elliptic")
    for pair, contact, k in draft.pairs:
        if float(contact.exponent) != 1:
            continue
        bodies = [model.geom_bodyid[model.geom(pair.get(key)).id] for key in ("geom1", "geom2")]
        weight = float(model.body_invweight0[bodies, 0].sum())
        stiffness, dissipation = float(contact.stiffness[k]), float(contact.dissipation[k])
        solref, solimp, over = soft_law(stiffness, dissipation, weight)
        overdamped += [" and ".join(contact.pairs[k])] if over else []
        pair.set("solref", numbers(solref))
        pair.set("solimp", numbers(solimp))
    return overdamped


def _write_pairs(draft: Draft, contact: ShapeContact, names: dict[str, str]) -> None:
    for k, (first, second) in enumerate(contact.pairs):
        if first not in names or second not in names:
            continue
        pair = SubElement(draft.section("contact"), "pair", geom1=names[first], geom2=names[second])
        draft.pairs.append(WrittenPair(pair, contact, k))
        slide, spin, roll = (
            float(a[k]) for a in (contact.friction, contact.spinning, contact.rolling)
        )
        pair.set("condim", "6" if roll else "4" if spin else "3" if slide else "1")
        pair.set("friction", numbers([slide, slide, spin, roll, roll]))
        if float(contact.margin[k]):
            pair.set("margin", numbers(contact.margin[k]))
