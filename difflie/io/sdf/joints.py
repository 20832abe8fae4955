"""Joints of an SDF model: their types, axes, limits, springs and mimic laws."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...system import (
    Continuous,
    Fixed,
    Helical,
    Joint,
    Mimic,
    ModelError,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)
from ...system.validation import format_value, nearest
from ..robot_elements import Element
from ..unread import Notes
from .frames import MODEL, Frames, Scope

TYPES: dict[str, type[Joint]] = {
    "revolute": Revolute,
    "continuous": Continuous,
    "prismatic": Prismatic,
    "screw": Helical,
    "universal": Universal,
    "revolute2": Universal,
    "ball": Spherical,
    "fixed": Fixed,
}
# The elements of <dynamics>, and what they are called here.
_RESISTING = {
    "damping": "damping",
    "friction": "friction",
    "spring_stiffness": "stiffness",
    "spring_reference": "spring_reference",
}
# SDF writes infinite limits so.
_INFINITE = 1e16


def read_joint(
    joint: Element, key: str, scope: Scope, frames: Frames, notes: Notes
) -> tuple[type[Joint], dict[str, Any]]:
    """The class of a joint and its fields, all but the mimic; axes are those in its own frame."""
    kind = joint.needed("type")
    if kind == "gearbox":
        raise ModelError(
            f"{joint.source}: a gearbox couples two joints and is none itself; put a <mimic> "
            "into the <axis> of one of them"
        )
    if kind not in TYPES:
        raise ModelError(
            f"{joint.source}: there is no joint type {format_value(kind)}{nearest(kind, TYPES)}; "
            f"known are {', '.join(TYPES)}"
        )
    fields: dict[str, Any] = {"name": key, "source": joint.source}
    if TYPES[kind] in (Spherical, Fixed):
        return TYPES[kind], fields
    axes = [_needed_axis(joint, "axis")]
    fields["axis"] = _direction(axes[0], key, scope, frames, notes)
    if TYPES[kind] is Universal:
        axes.append(_needed_axis(joint, "axis2"))
        fields["second_axis"] = _direction(axes[1], key, scope, frames, notes)
    if kind == "screw":
        fields["pitch"] = _pitch(joint)
    numbers = [_numbers(axis, limited=kind != "continuous") for axis in axes]
    for name in numbers[0]:
        values = [of_axis[name] for of_axis in numbers]
        fields[name] = values if len(values) > 1 else values[0]
    return TYPES[kind], fields


def _needed_axis(joint: Element, tag: str) -> Element:
    return joint.needed_child(tag, f"<{tag}><xyz>0 0 1</xyz></{tag}>")


def _direction(
    axis: Element, joint: str, scope: Scope, frames: Frames, notes: Notes
) -> list[float]:
    """The direction (3,) of an axis in the frame of its joint."""
    xyz = axis.leaf("xyz")
    direction = [0.0, 0.0, 1.0] if xyz is None else xyz.values(3)
    length = math.hypot(*direction)
    if length == 0:
        raise ModelError(f"{(xyz or axis).source}: the axis is zero; give it a direction")
    if abs(length - 1) > 1e-3:  # less is rounding
        notes["axis not of unit length, normalised"].append((xyz or axis).line)
    unit = np.asarray(direction) / length
    given = None if xyz is None else xyz.get("expressed_in")
    # Before version 1.7 this was how an axis was given in the frame of the model.
    if axis.flag_in("use_parent_model_frame"):
        given = given or MODEL
    if given:
        turn: NDArray = frames.pose(frames.key(given, scope, xyz or axis), joint)[:3, :3]
        unit = turn @ unit
    return unit.tolist()


def _pitch(joint: Element) -> float:
    """The advance of a screw in m/rad.

    screw_thread_pitch is in m for a turn, right-handed; thread_pitch in rad/m, left-handed. See the
    description of both in the specification of <joint>.
    """
    if joint.leaf("screw_thread_pitch") is not None:
        return joint.value_in("screw_thread_pitch", 0.0) / (2 * math.pi)
    left = joint.leaf("thread_pitch")
    if left is None:
        raise ModelError(
            f"{joint.source}: the element <screw_thread_pitch> is missing; add it, in m for a turn"
        )
    (turns,) = left.values(1)
    if turns == 0:
        raise ModelError(f"{left.source}: it is zero; give <screw_thread_pitch>, in m for a turn")
    return -1 / turns


def _numbers(axis: Element, limited: bool) -> dict[str, float]:
    """The limits of an axis, and what resists its motion."""
    limit, dynamics = axis.child("limit"), axis.child("dynamics")
    found = {"lower": -math.inf, "upper": math.inf, "max_velocity": math.inf}
    found |= {"max_effort": math.inf, **dict.fromkeys(_RESISTING.values(), 0.0)}
    if limit is not None:
        for name in ("lower", "upper") if limited else ():
            found[name] = _wide(limit.value_in(name, found[name], finite=False))
        for name in ("velocity", "effort"):
            most = limit.value_in(name, math.inf, finite=False)
            # A negative one is none.
            found[f"max_{name}"] = math.inf if most < 0 else _wide(most)
    if dynamics is not None:
        found |= {name: dynamics.value_in(tag, 0.0) for tag, name in _RESISTING.items()}
    return found


def _wide(limit: float) -> float:
    return math.copysign(math.inf, limit) if abs(limit) >= _INFINITE else limit


def mimic_of(joint: Element, scope: Scope, frames: Frames) -> Mimic | None:
    """The law of a joint that follows another: multiplier (q - reference) + offset."""
    axis = joint.child("axis")
    mimic = None if axis is None else axis.child("mimic")
    if mimic is None:
        return None
    name, which = mimic.needed("joint"), mimic.get("axis")
    if which not in (None, "axis"):
        raise ModelError(
            f"{mimic.source}: it follows {format_value(which)} of a joint; a joint that is "
            "followed must have one axis"
        )
    multiplier = mimic.value_in("multiplier", 1.0)
    offset = mimic.value_in("offset", 0.0) - multiplier * mimic.value_in("reference", 0.0)
    return Mimic(frames.key(name, scope, mimic), multiplier, offset)
