"""The couplings of a system as passive forces of a MuJoCo file."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....forces import (
    BoxInFluid,
    Damper,
    FixedTendon,
    JointTendon,
    PointForce,
    Rope,
    ShapeContact,
    SpatialTendon,
    Spring,
    SpringDamper,
    Tendon,
)
from ....forces.tendons import TendonLaw
from ....system import Body, Free, Spherical
from .bodies import rubbing_of, spring_of
from .draft import Draft, matrix, numbers
from .tendons import excess, write_fixed, write_path, write_spatial

_SAME = 1e-9  # relative, of forces and inertias that follow from others


def write_couplings(draft: Draft, bodies: list[Body]) -> None:
    """Writes the couplings of the system; adds to the faults of the draft.

    Springs and friction of ball and free joints are written with these.
    """
    parts = draft.system.couplings
    moved = [body for body in bodies if isinstance(body.joint, Spherical | Free)]
    done = {id(spring_of(body, parts)) for body in moved}
    done |= {id(rubbing_of(body, parts)) for body in moved if isinstance(body.joint, Free)}
    boxes = [part for part in parts if isinstance(part, BoxInFluid)]
    if boxes and _write_medium(draft, boxes, bodies):
        done |= {id(box) for box in boxes}
    done |= {id(part) for part in parts if isinstance(part, ShapeContact)}  # with the shapes
    for part in parts:
        if id(part) not in done and not _write(draft, part, bodies):
            draft.faults.append(f"the coupling {part}")


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
        return True
    along = part.transmission if isinstance(part, Tendon) else None
    if isinstance(along, SpatialTendon) and float(along.gear) == 1:
        write_spatial(draft, along, name).attrib |= _of_law(part, 0.0)
        return True
    return isinstance(part, PointForce) and _write_compensation(draft, part, bodies)


def _of_law(law: TendonLaw, offset: float) -> dict[str, str]:
    """The attributes of a tendon's law; offset: by how much it is longer here, in m."""
    rest = np.asarray(law.rest_lengths, float) - offset
    values = {"stiffness": law.stiffness, "damping": law.damping, "frictionloss": law.friction}
    given = {name: numbers(value) for name, value in values.items() if np.any(value)}
    return given | ({"springlength": numbers(rest)} if np.any(law.stiffness) else {})


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


def _write_medium(draft: Draft, boxes: list[BoxInFluid], bodies: list[Body]) -> bool:
    """Writes the medium around all bodies; whether the boxes are those that MuJoCo has in it."""
    first = boxes[0]
    heavy = {body.name: body for body in bodies if body.mass}
    if sorted(str(box.path.bodies[0]) for box in boxes) != sorted(heavy):
        return False
    for box in boxes:
        body = heavy[str(box.path.bodies[0])]
        squares = np.asarray(box.size, float) ** 2
        turn = matrix(box.rotation)
        inertia = turn * (body.mass / 12 * (squares.sum() - squares)) @ turn.T
        alike = [
            (box.density, first.density),
            (box.viscosity, first.viscosity),
            (box.wind, first.wind),
            (box.path.points[0], body.com),
        ]
        scale = _SAME * np.abs(body.inertia).max()
        if not np.allclose(inertia, body.inertia, rtol=0, atol=scale):
            return False
        if not all(np.allclose(a, b, rtol=_SAME, atol=1e-12) for a, b in alike):
            return False
    for name in ("density", "viscosity", "wind"):
        draft.option.set(name, numbers(getattr(first, name)))
    return True
