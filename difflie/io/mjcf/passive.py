"""Passive forces of a MuJoCo model beside those of hinges, slides and tendons.

They are gravity compensation, springs of ball and free joints, and the resistance of the medium.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...forces import BoxInFluid, Bushing, Coupling, EllipsoidInFluid, PointForce
from ...groups import so3
from ...system import Body, Free, Spherical
from ..robot_files import of_quaternion
from .joints import TYPES, higher_terms, yields

_LEAST = 1e-15  # MuJoCo's mjMINVAL
_SPHERE, _CAPSULE, _CYLINDER = 2, 3, 5  # MuJoCo's mjtGeom


def passive_couplings(
    model: Any, names: Sequence[str], tree: Sequence[Body], joints: Sequence[str], gravity: Any
) -> Iterator[Coupling]:
    """The passive forces of a MuJoCo model, as couplings.

    names: of its bodies but the world; tree: the bodies of the system; joints: the names of the
    model's joints; gravity (3,) in m/s^2.
    """
    yield from _gravity_compensation(model, names, np.asarray(gravity, float))
    yield from _springs(model, tree, joints)
    yield from _medium(model, names)


def _gravity_compensation(
    model: Any, names: Sequence[str], gravity: np.ndarray
) -> Iterator[Coupling]:
    for b in np.flatnonzero(model.body_gravcomp).tolist():
        force = -gravity * (model.body_mass[b] * model.body_gravcomp[b])
        if b and np.any(force):
            yield PointForce([(names[b - 1], model.body_ipos[b].copy())], force)


def _springs(model: Any, tree: Sequence[Body], joints: Sequence[str]) -> Iterator[Coupling]:
    moved = {body.joint.name: body for body in tree}
    higher = higher_terms(model, "jnt_stiffness")
    sprung = np.column_stack((model.jnt_stiffness, higher)).any(axis=1) & (yields(model) == 0)
    for j in np.flatnonzero(sprung).tolist():
        kind, body = TYPES[model.jnt_type[j]], moved.get(joints[j])
        if kind not in (Spherical, Free) or body is None:
            continue
        at = int(model.jnt_qposadr[j])
        rest = np.asarray(model.qpos_spring[at : at + (7 if kind is Free else 4)])
        position, stiffness = body.position, model.jnt_stiffness[j] * np.eye(6)
        if kind is Free:
            position, rest = rest[:3], rest[3:]
        else:
            stiffness[3:] = 0
        turn = so3.log(np.asarray(body.rotation) @ of_quaternion(rest))
        ends = [(body.parent, np.array(position)), (body.name, np.zeros(3))]
        terms = higher[j] * np.array([[1.0], [1.0 if kind is Free else 0.0]])
        several = terms if np.any(terms) else None
        yield Bushing(ends, stiffness, first_rotation=turn, higher_stiffness=several)


def _medium(model: Any, names: Sequence[str]) -> Iterator[Coupling]:
    density, viscosity = float(model.opt.density), float(model.opt.viscosity)
    if not (density or viscosity):
        return
    medium = {"density": density, "viscosity": viscosity, "wind": model.opt.wind.copy()}
    for b, name in enumerate(names, start=1):
        mass, inertia = float(model.body_mass[b]), np.asarray(model.body_inertia[b])
        if mass < _LEAST:
            continue
        own = np.flatnonzero(model.geom_bodyid == b).tolist()
        shaped = [g for g in own if model.geom_fluid[g, 0] > 0]
        yield from (_ellipsoid(model, g, name, medium) for g in shaped)
        if shaped:
            continue
        squares = np.maximum(inertia.sum() - 2 * inertia, _LEAST) * 6 / mass
        yield BoxInFluid(
            [(name, model.body_ipos[b].copy())],
            np.sqrt(squares),
            rotation=so3.log(of_quaternion(model.body_iquat[b])),
            **medium,
        )


def _ellipsoid(model: Any, geom: int, body: str, medium: dict[str, Any]) -> EllipsoidInFluid:
    """The forces of the medium on a geom that MuJoCo takes for an ellipsoid."""
    x, y, z = model.geom_size[geom]
    kind = int(model.geom_type[geom])
    axes = {_SPHERE: (x, x, x), _CAPSULE: (x, x, x + y), _CYLINDER: (x, x, y)}.get(kind, (x, y, z))
    blunt, slender, angular, kutta, magnus = model.geom_fluid[geom, 1:6]
    return EllipsoidInFluid(
        [(body, model.geom_pos[geom].copy())],
        axes,
        rotation=so3.log(of_quaternion(model.geom_quat[geom])),
        added_mass=model.geom_fluid[geom, 6:9].copy(),
        added_inertia=model.geom_fluid[geom, 9:12].copy(),
        blunt=blunt,
        slender=slender,
        angular=angular,
        kutta=kutta,
        magnus=magnus,
        **medium,
    )
