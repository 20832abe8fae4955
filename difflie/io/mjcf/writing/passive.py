"""The couplings of a system as passive forces of a MuJoCo file."""

from __future__ import annotations

import importlib
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import numpy as np

from ....forces import (
    BoxInFluid,
    Damper,
    EffortLimit,
    EllipsoidInFluid,
    FixedTendon,
    Inerter,
    JointStop,
    JointTendon,
    PointForce,
    PolynomialForce,
    Rope,
    RotationStop,
    ShapeContact,
    SharedLimit,
    SpatialTendon,
    Spring,
    SpringDamper,
    Tendon,
    YieldingJointTendon,
    YieldingSpring,
    YieldingTendon,
)
from ....forces.tendons import TendonLaw
from ....system import Body, Free, Spherical, System
from .bodies import AT_BALLS, damping_of, rubbing_of, turning
from .draft import Draft, matrix, numbers, put
from .tendons import excess, write_fixed, write_path, write_spatial

_MEDIUM = "density", "viscosity", "wind"
_SAME = 1e-9  # relative, of forces and inertias that follow from others


def write_couplings(draft: Draft, bodies: list[Body]) -> None:
    """Writes the couplings of the system; adds to the faults of the draft.

    Springs and friction of ball and free joints are written with these.
    """
    parts = draft.system.couplings
    moved = [body for body in bodies if isinstance(body.joint, Spherical | Free)]
    done = {id(of(body, parts)) for body in moved for of in AT_BALLS}
    done |= {id(part) for body in moved for part in damping_of(body, parts)}
    free = [body for body in moved if isinstance(body.joint, Free)]
    done |= {id(part) for body in free for part in (rubbing_of(body, parts), turning(body, parts))}
    wet = [part for part in parts if isinstance(part, BoxInFluid | EllipsoidInFluid)]
    if wet and _write_medium(draft, wet, bodies):
        done |= {id(part) for part in wet}
    # Those with the shapes, the joints and the actuators.
    elsewhere = ShapeContact | EffortLimit | SharedLimit | JointStop
    done |= {id(part) for part in parts if isinstance(part, elsewhere)}
    for part in parts:
        if id(part) not in done and not _write(draft, part, bodies):
            draft.faults.append(f"the coupling {part}")


def has_stops(system: System) -> bool:
    """Whether limits of joints or tendons of a system are stops."""
    return any(
        isinstance(part, JointStop | RotationStop)
        or (isinstance(part, TendonLaw) and part.length_range is not None)
        for part in system.couplings
    )


def _write(draft: Draft, part: Any, bodies: list[Body]) -> bool:
    """Writes a coupling; whether it could be."""
    kind, name = type(part), getattr(part, "name", None) or type(part).__name__.lower()
    if kind in (Spring, Rope, SpringDamper, Damper):
        tendon = write_path(draft, part.path, name)
        if kind is not Damper:
            tendon.set("stiffness", numbers(part.stiffness))
            least = [0.0] if kind is Rope else []
            tendon.set("springlength", numbers([*least, float(part.rest_length)]))
        if kind in (Damper, SpringDamper):
            tendon.set("damping", numbers(part.damping))
        return True
    if isinstance(part, JointTendon) and type(part.transmission) is FixedTendon:
        gear = float(part.transmission.gear)
        tendon = write_fixed(draft, part.transmission, name, gear)
        tendon.attrib |= _of_law(part, gear * excess(draft, part.transmission))
        _note_stop(draft, part, tendon)
        return True
    if isinstance(part, Inerter):
        return _write_inerter(draft, part, name)
    along = part.transmission if isinstance(part, Tendon) else None
    if isinstance(along, SpatialTendon) and float(along.gear) == 1:
        tendon = write_spatial(draft, along, name)
        tendon.attrib |= _of_law(part, 0.0)
        _note_stop(draft, part, tendon)
        return True
    if isinstance(part, PolynomialForce):
        return _write_polynomial(draft, part)
    if isinstance(part, YieldingSpring):
        return _write_yielding(draft, part)
    if isinstance(part, YieldingJointTendon | YieldingTendon):
        return _write_yielding_tendon(draft, part, name)
    return isinstance(part, PointForce) and _write_compensation(draft, part, bodies)


def _write_inerter(draft: Draft, part: Inerter, name: str) -> bool:
    """Writes inertia along a tendon as one of its own; whether it is along one."""
    along = part.transmission
    if not isinstance(along, FixedTendon | SpatialTendon):
        return False
    write = write_fixed if isinstance(along, FixedTendon) else write_spatial
    tendon = write(draft, along, name)  # pyright: ignore[reportArgumentType]
    tendon.set("armature", numbers(float(part.inertance) * float(along.gear) ** 2))
    return True


def _note_stop(draft: Draft, part: JointTendon | Tendon, tendon: Element) -> None:
    if part.length_range is not None:
        draft.stopped.append((part, tendon.attrib["name"]))


def _write_polynomial(draft: Draft, part: PolynomialForce) -> bool:
    """Writes the higher terms of a spring and a damper at a joint; whether it has an element."""
    joint = _scalar_joint(draft, part.joint)
    for name in ("stiffness", "damping"):
        terms = np.asarray(getattr(part, name))
        if joint is not None and np.any(terms):
            joint.set(name, numbers([float(joint.get(name, "0")), *terms]))
    return joint is not None


def _write_yielding(draft: Draft, part: YieldingSpring) -> bool:
    """Writes a spring that yields at a joint without another; whether it could be."""
    joint = _scalar_joint(draft, part.joint)
    if joint is None or "stiffness" in joint.attrib or not float(part.elastic_stretch):
        return False
    joint.set("stiffness", numbers(part.stiffness))
    joint.set("springref", numbers(float(part.z[0]) + float(joint.get("ref", "0"))))
    joint.set("springyield", numbers(part.elastic_stretch))
    draft.yielding_joints[part.joint] = part
    return True


def _write_yielding_tendon(
    draft: Draft, part: YieldingJointTendon | YieldingTendon, name: str
) -> bool:
    """Writes a spring that yields as a tendon of its own; whether it could be."""
    along, offset = part.transmission, 0.0
    if not float(part.elastic_stretch):
        return False
    if isinstance(along, FixedTendon):
        gear = float(along.gear)
        offset = gear * excess(draft, along)
        tendon = write_fixed(draft, along, name, gear)
    elif isinstance(along, SpatialTendon) and float(along.gear) == 1:
        tendon = write_spatial(draft, along, name)
    else:
        return False
    tendon.set("stiffness", numbers(part.stiffness))
    tendon.set("springlength", numbers(np.asarray(part.z, float) - offset))
    tendon.set("springyield", numbers(part.elastic_stretch))
    draft.yielding_tendons.append((part, offset))
    return True


def _scalar_joint(draft: Draft, name: str) -> Element | None:
    """The element of a hinge or slide; None where there is none."""
    scalar = "hinge", "slide"
    joints = (joint for joint in draft.bodies[None].iter("joint") if joint.get("type") in scalar)
    return next((joint for joint in joints if joint.get("name") == name), None)


def _of_law(law: TendonLaw, offset: float) -> dict[str, str]:
    """The attributes of a tendon's law; offset: by how much it is longer here, in m."""
    rest = np.asarray(law.rest_lengths, float) - offset
    values = {"stiffness": law.stiffness, "damping": law.damping, "frictionloss": law.friction}
    given = {name: numbers(value) for name, value in values.items() if np.any(value)}
    springs = law.stiffness, law.higher_stiffness
    for name, terms in (("stiffness", springs), ("damping", (law.damping, law.higher_damping))):
        if terms[1] is not None:
            given[name] = numbers([float(terms[0]), *np.asarray(terms[1])])
    if law.length_range is not None:
        given["range"] = numbers(np.asarray(law.length_range, float) - offset)
    sprung = any(value is not None and np.any(value) for value in springs)
    return given | ({"springlength": numbers(rest)} if sprung else {})


def _write_compensation(draft: Draft, part: PointForce, bodies: list[Body]) -> bool:
    """Writes a force that carries a part of a body's weight; whether it is one."""
    gravity, force = (np.asarray(a, float) for a in (draft.system.gravity, part.force))
    for body in bodies:
        if body.name != part.path.bodies[0] or not np.allclose(part.path.points[0], body.com):
            continue
        weight = body.mass * gravity
        share = -(force @ weight) / (weight @ weight) if np.any(weight) else 0.0
        element = draft.bodies.get(body.name)
        if element is None or element.get("gravcomp") is not None:
            return False
        if np.allclose(-share * weight, force, rtol=0, atol=_SAME * np.linalg.norm(force)):
            element.set("gravcomp", numbers(share))
            return True
    return False


def _write_medium(
    draft: Draft, parts: list[BoxInFluid | EllipsoidInFluid], bodies: list[Body]
) -> bool:
    """Writes the medium around all bodies; whether the parts are those that MuJoCo has in it."""
    first = parts[0]
    heavy = {body.name: body for body in bodies if body.mass}
    boxes = [part for part in parts if isinstance(part, BoxInFluid)]
    others = [part for part in parts if isinstance(part, EllipsoidInFluid)]
    shaped = {str(part.path.bodies[0]) for part in others}
    if sorted([*(str(box.path.bodies[0]) for box in boxes), *shaped]) != sorted(heavy):
        return False
    for part in parts:
        alike = ((getattr(part, name), getattr(first, name)) for name in _MEDIUM)
        if not all(np.allclose(a, b, rtol=_SAME, atol=1e-12) for a, b in alike):
            return False
    if not all(_is_inertial(box, heavy[str(box.path.bodies[0])]) for box in boxes):
        return False
    rows = [_ellipsoid(part) for part in others]
    if any(row is None for row in rows):
        return False
    for part, row in zip(others, rows, strict=True):
        name = draft.unique("geom", part.name or "ellipsoid")
        geom = SubElement(draft.bodies[part.path.bodies[0]], "geom", row or {}, name=name)
        put(geom, part.path.points[0], part.rotation)
    for name in _MEDIUM:
        draft.option.set(name, numbers(getattr(first, name)))
    return True


def _is_inertial(box: BoxInFluid, body: Body) -> bool:
    """Whether a box is that of the inertia of a body, about its centre of mass."""
    squares, turn = np.asarray(box.size, float) ** 2, matrix(box.rotation)
    inertia = turn * (body.mass / 12 * (squares.sum() - squares)) @ turn.T
    scale = _SAME * np.abs(body.inertia).max()
    placed = np.allclose(box.path.points[0], body.com, rtol=_SAME, atol=1e-12)
    return placed and np.allclose(inertia, body.inertia, rtol=0, atol=scale)


def _ellipsoid(part: EllipsoidInFluid) -> dict[str, str] | None:
    """The attributes of a geom; None where MuJoCo finds another added mass from its size."""
    own = (part.blunt, part.slender, part.angular, part.kutta, part.magnus)
    row = {"type": "ellipsoid", "size": numbers(part.size), "fluidshape": "ellipsoid"}
    row |= {"fluidcoef": numbers([float(x) for x in own]), "mass": "0"}
    row |= {"contype": "0", "conaffinity": "0"}
    root = Element("mujoco")
    SubElement(SubElement(root, "worldbody"), "geom", row)
    text = ElementTree.tostring(root, encoding="unicode")
    model = importlib.import_module("mujoco").MjModel.from_xml_string(text)
    added = np.concatenate([np.asarray(part.added_mass), np.asarray(part.added_inertia)])
    return row if np.allclose(model.geom_fluid[0, 6:], added, rtol=_SAME, atol=0) else None
