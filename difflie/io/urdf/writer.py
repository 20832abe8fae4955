"""Systems as URDF files, which `read_urdf` reads back equal and other programs can read too.

Numbers are written at full precision. What URDF cannot express (armature, springs, the base,
gravity, ...) is written to the elements <difflie> that `reader` describes; other readers ignore
them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import numpy as np

from ...system import Body, Fixed, Free, Joint, ModelError, System
from ...system.builders import bodies_of
from ...system.joints import ROW_FIELDS
from ...system.shown import some
from ...system.validation import format_value, warn
from ..files import write_whole
from ..robot_files import distinct
from .joints import TYPES
from .places import numbers_text, roll_pitch_yaw
from .reader import parsed
from .written_shapes import unwritten, write_shapes

# Parts that a URDF file cannot hold, and advice for each.
_BEYOND = {
    "couplings": " and attach them to what load returns",
    "actuators": " and attach them to what load returns",
    "constraints": ", and constrain what load returns or give it a file of loops",
    "sensors": " and give them to what load returns",
}
# The attributes and elements that are written; all others are kept from an original.
_WRITTEN = {
    "link": ("inertial",),
    "joint": (
        *("parent", "child", "origin", "axis", "axis2", "limit", "dynamics", "mimic", "difflie"),
    ),
}
# Springs that Gazebo has beside the joints.
_ADDED = "springStiffness", "springReference"
_LIMITED = ("revolute", "prismatic", "helical")
_DEFAULTS = {f.name: f.default for f in fields(Joint)}


def write_urdf(
    system: System,
    path: str | os.PathLike[str],
    original: str | os.PathLike[str] | None = None,
) -> None:
    """Writes a system as a URDF file, completely or not at all.

    path: of the file. Spheres, capsules, cylinders and boxes on bodies are written as <collision>.
    A system has no visuals, transmissions and the like. original: a URDF file with the same links,
    from which all these and all shapes are copied, its mesh paths unchanged. Named frames and
    states are not written either, though links are frames, too. Warns once of these and of
    parts that the file the system was read from has and this one has not, and of armature, which
    other programs take as zero: neither URDF nor MuJoCo's reader of it can express it.

    Reading the file gives the same names, topology and numbers; rotations to rounding, axes
    normalised. Other programs may refuse joint types beyond URDF (helical, universal, translation,
    spherical). The base and gravity are written too: `load` without these options restores them.
    Raises `ModelError` for invalid numbers, a planar or translation joint with other axes than its
    own, couplings, actuators, constraints, sensors, and a batch of systems.
    """
    for part, again in _BEYOND.items():
        if things := getattr(system, part):
            raise ModelError(
                f"{system.name}: URDF has no words for its {part}: {', '.join(map(str, things))}; "
                f"save dataclasses.replace(system, {part}=()), after `import dataclasses`{again}"
            )
    bodies = bodies_of(system)
    robot = Element("robot", name=system.name)
    own = SubElement(robot, "difflie")
    root = bodies[0]
    if _is_base(bodies):
        own.set("base", "free" if isinstance(root.joint, Free) else "fixed")
        jointed = bodies[1:]
    else:
        world = distinct("world", [b.name for b in bodies])
        own.set("world", world)
        SubElement(robot, "link", name=world)
        jointed = bodies
    own.set("gravity", numbers_text(system.gravity))
    for body in bodies:
        _write_link(robot, body)
    if original is None:
        write_shapes(robot, system)
    for body in jointed:
        _write_joint(robot, body, body.parent or own.get("world", ""))
    if original is not None:
        _keep(Path(original), robot)
    remarks = list(_remarks(system, original is None))
    if remarks:
        warn(f"{path}: {'; '.join(remarks)}")
    ElementTree.indent(robot)
    text = ElementTree.tostring(robot, encoding="unicode")
    write_whole(path, f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n')


def _remarks(system: System, alone: bool) -> Iterator[str]:
    """What a reader of the file will not get; alone: without an original."""
    if alone and system.topology.unread:
        yield (
            f"not written, as no part of a system: {', '.join(system.topology.unread)}; give a "
            "URDF file of the same links as `original` (of a command: --original) to keep them"
        )
    lost: dict[str, Iterable[str]] = {"frames": system.frames, "states": system.states}
    lost |= {"shapes": unwritten(system)} if alone else {}
    if named := [f"{what} ({some(list(names), 4)})" for what, names in lost.items() if names]:
        yield f"URDF has no words for named {' and '.join(named)}, which are not written"
    if np.any(system.joints.armature):
        yield "armature is written for difflie only; other programs take it as zero"


def _keep(original: Path, robot: Element) -> None:
    """Copies what the original has beyond links and joints of a robot into it."""
    parsed(original)  # for what it refuses
    old = ElementTree.fromstring(original.read_bytes())
    named = {(e.tag, e.get("name")): e for e in old}
    if version := old.get("version"):
        robot.set("version", version)
    for link in robot.findall("link"):
        if ("link", link.get("name")) not in named and len(link):
            raise ModelError(
                f"{original}: there is no link {format_value(link.get('name'))}, which the system "
                "has; give the file it was read from"
            )
    for element in robot:
        if element.tag in _WRITTEN:
            others = named.get((element.tag, element.get("name")), ())
            element.extend(e for e in others if e.tag not in _WRITTEN[element.tag])
    robot.extend(e for e in old if not _is_written(e, robot))
    # Numbers of joints stand in the joints now.
    for element in robot.iter():
        for child in [c for c in element if c.tag in _ADDED or c.tag.endswith("}rotor_inertia")]:
            element.remove(child)
    for block in robot.findall("gazebo"):
        if not len(block) and block.get("reference"):
            robot.remove(block)


def _is_written(element: Element, robot: Element) -> bool:
    """Whether an element of an original is written anew, as a <drake:joint> is as a <joint>."""
    names = {joint.get("name") for joint in robot.iter("joint")}
    own = element.tag.endswith("}joint") and element.get("name") in names
    return own or element.tag in (*_WRITTEN, "difflie")


def _is_base(bodies: list[Body]) -> bool:
    """Whether the first body is one that `read_urdf` adds for the base by itself."""
    root = bodies[0]
    others = [b.joint.name or b.name for b in bodies[1:]]
    return (
        all(b.parent is not None for b in bodies[1:])
        and isinstance(root.joint, Fixed | Free)
        and root.joint.name == distinct("root_joint", others)
        and not np.any(root.position)
        and not np.any(root.rotation)
        and not any(_differs(root.joint, name) for name in ROW_FIELDS)
    )


def _write_link(robot: Element, body: Body) -> None:
    link = SubElement(robot, "link", name=body.name)
    if not (body.mass or np.any(body.com) or np.any(body.inertia)):
        return
    inertial = SubElement(link, "inertial")
    SubElement(inertial, "origin", xyz=numbers_text(body.com))
    SubElement(inertial, "mass", value=numbers_text(body.mass))
    about = (np.asarray(body.inertia) + np.asarray(body.inertia).T) / 2
    entries = {
        f"i{a}{b}": (i, j) for i, a in enumerate("xyz") for j, b in enumerate("xyz") if i <= j
    }
    SubElement(inertial, "inertia", {n: numbers_text(about[at]) for n, at in entries.items()})


def _write_joint(robot: Element, body: Body, parent: str) -> None:
    joint = body.joint
    kind = next((name for name, known in TYPES.items() if known is type(joint)), None)
    if kind is None:
        raise ModelError(
            f"joint {joint.name or body.name!r}: a URDF file cannot hold a joint of the type "
            f"{type(joint).__name__}; save the system as a pickle of Python, or use another joint"
        )
    element = SubElement(robot, "joint", name=joint.name or body.name, type=kind)
    SubElement(element, "parent", link=parent)
    SubElement(element, "child", link=body.name)
    rpy = roll_pitch_yaw(np.asarray(body.rotation))
    SubElement(element, "origin", xyz=numbers_text(body.position), rpy=numbers_text(rpy))
    dofs = joint.dofs()
    if kind in (*_LIMITED, "continuous", "universal"):
        axis = SubElement(element, "axis", xyz=numbers_text(_unit(dofs[0].axis)))
        if kind == "helical":
            axis.set("pitch", numbers_text(dofs[0].pitch))
    if kind == "universal":
        SubElement(element, "axis2", xyz=numbers_text(_unit(dofs[1].axis)))
    if kind == "planar":
        SubElement(element, "axis", xyz=numbers_text(_unit(dofs[2].axis)))
    own = {name for name in ROW_FIELDS if _differs(joint, name)}
    if len(dofs) == 1:
        limits = [] if kind == "continuous" else [("lower", "lower"), ("upper", "upper")]
        limits += [("velocity", "max_velocity"), ("effort", "max_effort")]
        values = {given: float(np.asarray(getattr(joint, name)).item()) for given, name in limits}
        SubElement(element, "limit", {n: numbers_text(_finite(v)) for n, v in values.items()})
        own -= {name for given, name in limits if np.isfinite(values[given])}
        own |= {name for given, name in limits if not np.isfinite(values[given])}
        rubbing = {name: numbers_text(getattr(joint, name)) for name in ("damping", "friction")}
        SubElement(element, "dynamics", rubbing)
        own -= {"damping", "friction"}
    if joint.mimic is not None:
        SubElement(
            element,
            "mimic",
            joint=joint.mimic.joint,
            multiplier=numbers_text(joint.mimic.multiplier),
            offset=numbers_text(joint.mimic.offset),
        )
    if own:
        values = {name: numbers_text(getattr(joint, name)) for name in ROW_FIELDS if name in own}
        SubElement(element, "difflie", values)


def _differs(joint: Joint, name: str) -> bool:
    """Whether a number of a joint is not its default."""
    return bool(np.any(np.asarray(getattr(joint, name)) != _DEFAULTS[name]))


def _finite(value: float) -> float:
    """The number, or the largest float for infinity: other programs do not read "inf"."""
    return float(np.clip(value, -sys.float_info.max, sys.float_info.max))


def _unit(axis: Any) -> np.ndarray:
    axis = np.asarray(axis, float)
    return axis / np.linalg.norm(axis)
