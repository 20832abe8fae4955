"""The bodies and joints of a system as those of a MuJoCo file."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element, SubElement

import equinox as eqx
import numpy as np

from ....forces import (
    Bushing,
    PointDamping,
    PointFriction,
    PolynomialForce,
    RotationStop,
    WorldArmature,
    YieldingRotation,
)
from ....system import Body, Fixed, Free, Joint, Prismatic, Revolute, Spherical
from ....system.joints import Series
from ....system.validation import format_value
from .draft import Draft, matrix, numbers, put

_SAME = 1e-12
_LEAST = 1e-15  # MuJoCo's mjMINVAL, in kg m^2


class JointElement(NamedTuple):
    """A joint of the file: its name, type, and the body of the system whose joint it is.

    dof: which degree of freedom of that joint it is, from 0; None for a ball or free joint.
    """

    name: str
    kind: str
    body: int
    dof: int | None


class Stage(NamedTuple):
    """A joint of a body of the file, its body in the system, and its anchor (3,) in m."""

    body: Body
    anchor: np.ndarray


def write_bodies(draft: Draft, bodies: list[Body]) -> list[JointElement]:
    """Writes the bodies with their joints; the joints in MuJoCo's order.

    bodies: those of the system. Massless bodies that `read_mjcf` makes for a body with several
    joints, and to which nothing refers, become joints of this body again.
    """
    merged = _helpers(draft, bodies)
    children: dict[str | None, list[Body]] = {}
    for body in bodies:
        children.setdefault(body.parent, []).append(body)
    numbered = {body.name: b for b, body in enumerate(bodies)}
    joints: list[JointElement] = []

    def write(body: Body) -> None:
        chain = [body]
        while chain[-1].name in merged:
            chain += children[chain[-1].name]
        _write_body(draft, chain, numbered, joints)
        for child in children.get(chain[-1].name, []):
            write(child)

    for root in children[None]:
        write(root)
    return joints


def spring_of(body: Body, parts: tuple[Any, ...]) -> Bushing | None:
    """The spring of a ball or free joint among couplings, as `read_mjcf` makes it."""
    free = isinstance(body.joint, Free)
    size = 6 if free else 3
    for part in parts:
        if not isinstance(part, Bushing) or part.path.bodies != (body.parent, body.name):
            continue
        wanted = np.zeros((6, 6))
        wanted[:size, :size] = np.eye(size) * float(part.stiffness[0, 0])
        still = not (np.any(part.damping) or np.any(part.second_rotation))
        if part.higher_stiffness is not None:
            turning, moving = np.asarray(part.higher_stiffness, float)
            still = still and _same(moving, turning if free else 0.0)
        start = part.path.points[0] if free else body.position
        turn = part.first_rotation if free else body.rotation
        placed = _same(part.path.points, [start, np.zeros(3)])
        turned = _same(matrix(part.first_rotation), matrix(turn))
        if still and placed and turned and _same(part.stiffness, wanted):
            return part
    return None


def yielding_of(body: Body, parts: tuple[Any, ...]) -> YieldingRotation | None:
    """The spring of a ball joint that yields, in place of another, among couplings."""
    if not isinstance(body.joint, Spherical) or spring_of(body, parts) is not None:
        return None
    for part in parts:
        ends = isinstance(part, YieldingRotation) and part.path.bodies == (body.parent, body.name)
        still = ends and _same(part.z, [1.0, 0.0, 0.0, 0.0]) and np.any(part.elastic_stretch)
        if still and _same(matrix(part.first_rotation), matrix(body.rotation)):
            return part
    return None


def stop_of(body: Body, parts: tuple[Any, ...]) -> RotationStop | None:
    """The limit of a ball joint among couplings, as `read_mjcf` makes it."""
    for part in parts:
        if not isinstance(part, RotationStop) or part.path.bodies != (body.parent, body.name):
            continue
        plain = not np.any(part.smoothing) and float(part.exponent) == 1
        if plain and _same(matrix(part.first_rotation), matrix(body.rotation)):
            return part
    return None


# What of the couplings of ball and free joints is written with these.
AT_BALLS = spring_of, yielding_of, stop_of


def rubbing_of(body: Body, parts: tuple[Any, ...]) -> PointFriction | None:
    """The friction of a free joint along the axes of the world among couplings."""
    return _at_origin(body, parts, PointFriction)


def damping_of(body: Body, parts: tuple[Any, ...]) -> list[PolynomialForce | PointDamping]:
    """The dampers of higher order of a ball or free joint, if they are the same in all directions.

    Of the rotation, and of the translation of a free joint along the axes of the world.
    """
    name = body.joint.name or body.name
    own = (part for part in parts if isinstance(part, PolynomialForce) and part.joint == name)
    turning = next(own, None)
    if isinstance(body.joint, Spherical):
        return [] if turning is None else [turning]
    moving = _at_origin(body, parts, PointDamping)
    if turning is None or moving is None or not _same(turning.damping, moving.damping):
        return []
    return [turning, moving]


def _at_origin(body: Body, parts: tuple[Any, ...], kind: type[Any]) -> Any:
    for part in parts:
        on_it = isinstance(part, kind) and part.path.bodies == (body.name,)
        if on_it and not np.any(part.path.points):
            return part
    return None


def turning(body: Body, parts: tuple[Any, ...]) -> WorldArmature | None:
    """What lets the armature of a free joint act along the axes of the world, among couplings."""
    name = body.joint.name or body.name
    own = (part for part in parts if isinstance(part, WorldArmature) and part.joint == name)
    return next(own, None)


def _helpers(draft: Draft, bodies: list[Body]) -> set[str]:
    """The bodies that become joints of the body that they carry."""
    system, found = draft.system, {}
    moved = [body for body in bodies if isinstance(body.joint, Spherical | Free)]
    # Springs and stops of joints become these joints' own.
    springs = {id(of(body, system.couplings)) for body in moved for of in AT_BALLS}
    couplings = tuple(part for part in system.couplings if id(part) not in springs)
    parts = system.frames, couplings, system.actuators, system.constraints, system.sensors
    meant = set(_words((*parts, system.idle_shapes)))
    carried: dict[str | None, list[Body]] = {}
    for body in bodies:
        carried.setdefault(body.parent, []).append(body)
    for body in reversed(bodies):
        on = carried.get(body.name, [])
        if len(on) != 1 or body.name in meant or _heavy(body):
            continue
        (child,) = on
        end = found.get(child.name, child.name)
        usual = f"{end}/{body.joint.name or body.name}"
        alike = body.name.rstrip("_") == usual.rstrip("_") and not np.any(child.rotation)
        simple = Revolute, Prismatic, Spherical
        if alike and isinstance(body.joint, simple) and isinstance(child.joint, (*simple, Fixed)):
            found[body.name] = end
    return set(found)


def _heavy(body: Body) -> bool:
    return bool(body.mass or np.any(body.com) or np.any(body.inertia))


def _words(part: Any) -> Iterator[str]:
    """All strings in parts of a system, among them the names of bodies."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, Mapping):
        for value in part.values():
            yield from _words(value)
    elif isinstance(part, tuple | list):
        for value in part:
            yield from _words(value)
    elif isinstance(part, eqx.Module):
        for field in dataclasses.fields(part):
            yield from _words(getattr(part, field.name))


def _stages(chain: list[Body]) -> tuple[np.ndarray, list[Stage]]:
    """The position (3,) in m of a body in its parent, and its joints with their anchors.

    chain: the bodies of its joints, one after the other, the last of which is the body itself.
    """
    anchor, stages = np.zeros(3), []
    for body in reversed(chain[1:]):
        if not isinstance(body.joint, Fixed):
            stages.append(Stage(body, anchor))
        anchor = anchor - np.asarray(body.position)
    first = chain[0]
    if not isinstance(first.joint, Fixed):
        stages.append(Stage(first, anchor))
    at = np.asarray(first.position) - matrix(first.rotation) @ anchor
    return at, stages[::-1]


def _write_body(
    draft: Draft, chain: list[Body], numbered: dict[str, int], joints: list[JointElement]
) -> None:
    body, (position, stages) = chain[-1], _stages(chain)
    name = draft.unique("body", body.name)
    element = SubElement(draft.bodies[chain[0].parent], "body", name=name)
    draft.bodies[body.name] = element
    rotation = chain[0].rotation
    if isinstance(body.joint, Free):
        if body.parent is not None or np.any(position) or np.any(rotation):
            draft.faults.append(
                f"the free joint {format_value(body.joint.name)}, which is not that of the world's "
                "origin"
            )
        spring = spring_of(body, draft.system.couplings)
        if spring is not None:
            position, rotation = spring.path.points[0], spring.first_rotation
    put(element, position, rotation)
    for stage in stages:
        _write_joints(draft, element, stage, numbered[stage.body.name], joints)
    if _heavy(body):
        SubElement(element, "inertial", inertial(body))


def inertial(body: Body) -> dict[str, str]:
    """The attributes of a body's <inertial>."""
    about = (np.asarray(body.inertia) + np.asarray(body.inertia).T) / 2
    row = {"pos": numbers(body.com), "mass": numbers(body.mass)}
    aside = about[[0, 0, 1], [1, 2, 2]]
    # MuJoCo diagonalises a full inertia, and then wants no zero.
    if np.any(np.abs(aside) > _LEAST):
        return row | {"fullinertia": numbers([*np.diag(about), *aside])}
    return row | {"diaginertia": numbers(np.diag(about))}


def _write_joints(
    draft: Draft, element: Element, stage: Stage, b: int, joints: list[JointElement]
) -> None:
    """Writes the joint of a stage: one element, or one for each of its degrees of freedom."""
    joint, name = stage.body.joint, stage.body.joint.name or stage.body.name
    dofs = joint.dofs()
    if isinstance(joint, Spherical | Free):
        kind = "ball" if isinstance(joint, Spherical) else "free"
        rows = [_row(draft, stage.body, kind)]
        found = [JointElement(draft.unique("joint", name), kind, b, None)]
    elif isinstance(joint, Series) and all(d.kind in ("revolute", "prismatic") for d in dofs):
        names = [name] if len(dofs) == 1 else [f"{name}[{i}]" for i in range(len(dofs))]
        kinds = ["hinge" if dof.kind == "revolute" else "slide" for dof in dofs]
        found = [
            JointElement(draft.unique("joint", own), kind, b, i)
            for i, (own, kind) in enumerate(zip(names, kinds, strict=True))
        ]
        rows = [
            _scalar_row(joint, i, draft.references.get(names[i], 0.0)) for i in range(len(dofs))
        ]
    else:
        draft.faults.append(f"the {joint.type_name()} joint {format_value(name)}")
        return
    for (own, kind, *_), row in zip(found, rows, strict=True):
        written = SubElement(element, "joint", name=own, type=kind)
        if kind in ("hinge", "ball") and np.any(stage.anchor):
            written.set("pos", numbers(stage.anchor))
        written.attrib |= row
    joints += found


def _scalar_row(joint: Joint, i: int, ref: float) -> dict[str, str]:
    """The attributes of a hinge or slide: degree of freedom i of a joint, with its `ref`."""

    def number(name: str) -> float:
        return float(np.broadcast_to(np.asarray(getattr(joint, name), float), len(joint.dofs()))[i])

    axis = np.asarray(joint.dofs()[i].axis, float)
    row = {"axis": numbers(axis / np.linalg.norm(axis))}
    values = {
        "ref": ref,
        "damping": number("damping"),
        "armature": number("armature"),
        "frictionloss": number("friction"),
        "stiffness": number("stiffness"),
        "springref": number("spring_reference") + ref,
    }
    row |= {name: numbers(value) for name, value in values.items() if value}
    limits = np.array([number("lower"), number("upper")])
    if np.any(np.isfinite(limits)):
        row["range"] = numbers(limits + ref)
    return row


def _row(draft: Draft, body: Body, kind: str) -> dict[str, str]:
    """The attributes of a ball or free joint, for which MJCF has one number of each."""
    joint, parts = body.joint, draft.system.couplings
    free, size = kind == "free", len(body.joint.dofs())
    values = {
        name: np.broadcast_to(np.asarray(getattr(joint, name), float), size)
        for name in ("damping", "armature", "friction")
    }
    if free:
        rubbing = rubbing_of(body, parts)
        along = 0.0 if rubbing is None else float(rubbing.friction)
        values["friction"] = np.append(values["friction"][:3], 3 * [along])
        if np.any(np.asarray(joint.friction, float) * np.ones(6) * [0, 0, 0, 1, 1, 1]):
            draft.faults.append(
                f"friction along the axes of the body of {format_value(joint.name)}"
            )
    if free and np.any(values["armature"]) and turning(body, parts) is None:
        draft.faults.append(
            f"armature along the axes of the body of the free joint {format_value(joint.name)} "
            "(a WorldArmature makes it that along the world's)"
        )
    if uneven := [name for name, value in values.items() if np.ptp(value) > 0]:
        draft.faults.append(
            f"{' and '.join(uneven)} of the {joint.type_name()} joint {format_value(joint.name)}, "
            "which is not the same along all its axes"
        )
    spring, dampers = spring_of(body, parts), damping_of(body, parts)
    springs = [0.0] if spring is None else [float(spring.stiffness[0, 0])]
    if spring is not None and spring.higher_stiffness is not None:
        springs += list(spring.higher_stiffness[0])
    yielding = yielding_of(body, parts)
    if yielding is not None:
        springs = list(yielding.stiffness)
        draft.yielding_joints[joint.name or body.name] = yielding
    row = {
        "damping": [values["damping"][0], *(list(dampers[0].damping) if dampers else [])],
        "armature": values["armature"][0],
        "frictionloss": values["friction"][0],
        "stiffness": springs,
        "springyield": 0.0 if yielding is None else yielding.elastic_stretch,
    }
    row = {name: numbers(value) for name, value in row.items() if np.any(value)}
    stop = None if free else stop_of(body, parts)
    if stop is not None:
        draft.stopped_balls.append((joint.name or body.name, stop))
    return row if stop is None else row | {"range": numbers([0.0, float(stop.angle)])}


def _same(a: Any, b: Any) -> bool:
    return bool(np.allclose(a, b, rtol=_SAME, atol=_SAME))
