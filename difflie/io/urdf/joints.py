"""Joints of a URDF file: their types, axes, limits and mimic laws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...system import (
    Continuous,
    Fixed,
    Free,
    Helical,
    Joint,
    Mimic,
    ModelError,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Translation,
    Universal,
)
from ...system.joints import ROW_FIELDS
from ...system.validation import format_value, nearest
from ..robot_elements import Element
from ..unread import Notes

TYPES: dict[str, type[Joint]] = {
    "fixed": Fixed,
    "revolute": Revolute,
    "continuous": Continuous,
    "prismatic": Prismatic,
    "planar": Planar,
    "translation": Translation,
    "floating": Free,
    "spherical": Spherical,
    "ball": Spherical,
    "universal": Universal,
    "helical": Helical,
}
_SCREWS = ("revolute", "continuous", "prismatic", "helical")
# What other formats call them.
_FOREIGN = {
    "screw": "helical",
    "hinge": "revolute",
    "slide": "prismatic",
    "free": "floating",
    "weld": "fixed",
}


def read_joint(joint: Element, notes: Notes) -> tuple[type[Joint], dict[str, Any]]:
    """The class of a joint and its fields, all but the mimic."""
    kind = joint.needed("type")
    if kind not in TYPES:
        here = _FOREIGN.get(kind.lower())
        hint = f", which is called {here} here" if here else nearest(kind, TYPES)
        hint += ", with its pitch in m/rad in <axis>" if here == "helical" else ""
        raise ModelError(
            f"{joint.source}: there is no joint type {format_value(kind)}{hint}; known are "
            f"{', '.join(TYPES)}"
        )
    fields: dict[str, Any] = {"name": joint.needed("name"), "source": joint.source}
    if kind in _SCREWS:
        fields["axis"] = _axis(joint, "axis", (1.0, 0.0, 0.0), notes)
        fields |= _limits(joint, kind, notes)
    if kind == "helical":
        axis = joint.needed_child("axis", '<axis xyz="..." pitch="..."/> with the pitch in m/rad')
        fields["pitch"] = axis.number("pitch")
    if kind == "planar":
        if joint.child("axis") is None:
            what = "planar joint without an axis, in its y-z plane as specified (x-y elsewhere)"
            notes[what].append(joint.line)
        fields["normal"] = _axis(joint, "axis", (1.0, 0.0, 0.0), notes)
    if kind == "universal":
        fields["axis"] = _axis(joint, "axis", (1.0, 0.0, 0.0), notes)
        fields["second_axis"] = _axis(joint, "axis2", (0.0, 1.0, 0.0), notes)
    # Planar and floating joints would need separate values for angles and lengths.
    if kind in _SCREWS or TYPES[kind] in (Spherical, Translation, Universal):
        dynamics = joint.child("dynamics")
        if dynamics is not None:
            fields["damping"] = dynamics.number("damping", 0.0)
            fields["friction"] = dynamics.number("friction", 0.0)
    return TYPES[kind], fields | _difflie(joint, len(TYPES[kind]().dofs()))


def _difflie(joint: Element, count: int) -> dict[str, list[float]]:
    """The numbers in the <difflie> of a joint with `count` degrees of freedom."""
    own = joint.child("difflie") if count else None
    if own is None:
        return {}
    names = [name for name in ROW_FIELDS if name in own.attributes]
    return {name: own.numbers(name, count, finite=False) for name in names}


def _axis(joint: Element, tag: str, default: tuple[float, ...], notes: Notes) -> Sequence[float]:
    element = joint.child(tag)
    if element is None:
        return default
    axis = element.numbers("xyz", 3)
    length = math.hypot(*axis)
    if length == 0:
        raise ModelError(f"{element.source}: the axis is zero; give it a direction")
    if abs(length - 1) > 1e-3:  # less is rounding
        notes["axis not of unit length, normalised"].append(element.line)
    return [a / length for a in axis]


def _limits(joint: Element, kind: str, notes: Notes) -> dict[str, float]:
    limit = joint.child("limit")
    if limit is None:
        if kind != "continuous":
            notes[f"{kind} joint without a limit, unlimited"].append(joint.line)
        return {}
    fields = {}
    if kind != "continuous":
        fields["lower"] = limit.number("lower", 0.0, finite=False)
        fields["upper"] = limit.number("upper", 0.0, finite=False)
        if not {"lower", "upper"} & limit.attributes.keys():
            notes["limit without lower and upper, both 0 as specified"].append(limit.line)
    for name in ("velocity", "effort"):
        fields[f"max_{name}"] = limit.number(name, math.inf, finite=False)
        if name not in limit.attributes:
            notes[f"limit without {name}, unlimited"].append(limit.line)
    return fields


def mimic_law(
    name: str, joints: dict[str, Element], read: dict[str, tuple[type[Joint], dict[str, Any]]]
) -> Mimic | None:
    """The law of a mimic joint; a mimic of a mimic is resolved to the joint that both follow."""
    passed = [name]
    law: Mimic | None = None
    while passed[-1] in read and read[passed[-1]][0] is not Fixed:
        element = joints[passed[-1]].child("mimic")
        if element is None:
            break
        followed = element.needed("joint")
        multiplier, offset = element.number("multiplier", 1.0), element.number("offset", 0.0)
        if law is not None:
            multiplier, offset = law.multiplier * multiplier, law.multiplier * offset + law.offset
        if followed in passed:
            what = "itself" if len(passed) == 1 else "itself by way of " + ", ".join(passed[1:])
            raise ModelError(
                f"{element.source}: the joint {format_value(name)} mimics {what}; "
                "let it follow a joint that moves on its own"
            )
        law = Mimic(followed, multiplier, offset)
        passed.append(followed)
    return law
