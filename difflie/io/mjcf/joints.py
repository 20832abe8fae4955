"""The joints of a MuJoCo model, with the limits and the inertia of their actuators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...forces import (
    PointDamping,
    PointFriction,
    PolynomialForce,
    WorldArmature,
)
from ...system import Free, Joint, Prismatic, Revolute, Spherical
from ...system.validation import format_value

# MuJoCo's joint types by number.
TYPES: tuple[type[Joint], ...] = (Free, Spherical, Prismatic, Revolute)

TENDON = 3  # what actuators act on: MuJoCo's mjTRN_TENDON
_OF_JOINT = 1  # what fixed tendons consist of: MuJoCo's mjWRAP_JOINT
ON_JOINTS = 0, 1  # what actuators act on: MuJoCo's mjTRN_JOINT and mjTRN_JOINTINPARENT


def read_joint(model: Any, j: int, name: str) -> Joint:
    """Joint number j of a MuJoCo model, with the armature and damping of its actuators."""
    kind = TYPES[model.jnt_type[j]]
    dof, ref = model.jnt_dofadr[j], model.qpos0[model.jnt_qposadr[j]]
    dofs = slice(dof, dof + len(kind().dofs()))
    fields: dict[str, Any] = {
        "name": name,
        "armature": model.dof_armature[dofs].copy(),
        "damping": model.dof_damping[dofs].copy(),
        "friction": model.dof_frictionloss[dofs].copy(),
    }
    if kind is Free:
        # Of the translation MuJoCo has it along the axes of the world; see `free_resistance`.
        fields["friction"][3:] = 0
    if kind in (Prismatic, Revolute):
        fields["axis"] = model.jnt_axis[j].tolist()
        # A spring that yields is a force of its own.
        fields["stiffness"] = 0.0 if yields(model)[j] else model.jnt_stiffness[j]
        fields["spring_reference"] = model.qpos_spring[model.jnt_qposadr[j]] - ref
        if model.jnt_limited[j]:
            fields["lower"], fields["upper"] = model.jnt_range[j] - ref
        least, most = effort_range(model, j)
        fields["max_effort"] = max(most, 0.0)
        if least != -most:
            fields["min_effort"] = min(least, 0.0)
    # Of ball and free joints, too, MuJoCo takes the first number of the gear, for all axes.
    for leaf, own in rotors(model).items():
        fields[leaf] += sum(own[a] for a in _drives(model, j))
    return kind(**fields)


def free_resistance(model: Any, bodies: Sequence[str]) -> Iterator[PointFriction | PointDamping]:
    """What resists the translation of free joints along the axes of the world.

    That is frictionloss and damping of higher order. bodies: the names of the model's bodies but
    the world.
    """
    dampers = _dampers(model)
    for j in np.flatnonzero(np.asarray(model.jnt_type) == TYPES.index(Free)):
        friction = model.dof_frictionloss[model.jnt_dofadr[j]]
        origin = [(bodies[int(model.jnt_bodyid[j]) - 1], (0.0, 0.0, 0.0))]
        if friction:
            yield PointFriction(origin, friction)
        if np.any(dampers[j]):
            yield PointDamping(origin, dampers[j])


def joint_forces(model: Any, names: Sequence[str]) -> Iterator[PolynomialForce | WorldArmature]:
    """Springs and dampers of higher order, and the armature of free joints.

    names: those of the model's joints. With the dampers of their actuators. Of ball and free joints
    only what resists the rotation; see `free_resistance`.
    """
    springs, dampers = higher_terms(model, "jnt_stiffness"), _dampers(model)
    for j, name in enumerate(names):
        kind, dof = TYPES[model.jnt_type[j]], int(model.jnt_dofadr[j])
        spring = springs[j] if kind in (Prismatic, Revolute) else np.zeros(2)
        if yields(model)[j]:  # see `yielding.py`
            spring = np.zeros(2)
        if np.any(spring) or np.any(dampers[j]):
            yield PolynomialForce(name, stiffness=spring, damping=dampers[j])
        drives = sum(rotors(model)["armature"][a] for a in _drives(model, j))
        if kind is Free and (model.dof_armature[dof] or drives):
            yield WorldArmature(name)


def yields(model: Any) -> NDArray:
    """The stretch (njnt,) at which the spring of each joint yields; 0 where it does not."""
    stretches = np.array(getattr(model, "jnt_springyield", np.zeros(model.njnt)), float)
    springs = np.column_stack((model.jnt_stiffness, higher_terms(model, "jnt_stiffness")))
    return np.where(springs.any(axis=1), stretches, 0.0)


def higher_terms(model: Any, field: str) -> NDArray:
    """The coefficients (n, 2) of higher order of a spring or damper; zero before MuJoCo 4."""
    linear = np.asarray(getattr(model, field, np.zeros(len(model.actuator_trntype))))
    known = getattr(model, f"{field}poly", np.zeros((len(linear), 2)))
    return np.array(known, float)


def _dampers(model: Any) -> NDArray:
    """The higher terms (njnt, 2) of the dampers of joints, with those of their actuators."""
    terms = higher_terms(model, "dof_damping")[model.jnt_dofadr]
    ratio, own = gears(model)[:, 0] ** 2, higher_terms(model, "actuator_damping")
    for j in range(model.njnt):
        for a in _drives(model, j):
            terms[j] += ratio[a] * own[a]
    return terms


def unused_drives(model: Any) -> Iterator[tuple[str, str, list[int]]]:
    """What of the actuators `read_joint` ignores, "actuator", and which have it."""
    kinds = [TYPES[kind] for kind in model.jnt_type]
    found: dict[str, list[int]] = {
        "actuators but for armature, damping and the limits of effort": [],
        "actuators of ball and free joints but for armature and damping": [],
        "actuators of tendons and others but for armature and damping": [],
    }
    scalar, several, others = found.values()
    for a, on in enumerate(model.actuator_trntype):
        kind = kinds[model.actuator_trnid[a, 0]] if on in ON_JOINTS else None
        at = others if kind is None else scalar if kind in (Prismatic, Revolute) else several
        at.append(a)
    for what, which in found.items():
        yield what, "actuator", which


def outputs(model: Any) -> NDArray:
    """The first force of each actuator among those of all; only in MuJoCo 4 one has several."""
    count = len(model.actuator_trntype)
    return np.array(getattr(model, "actuator_outadr", np.arange(count)))


def gears(model: Any) -> NDArray:
    """The gear (nactuator, 6) of the first force of each actuator."""
    return np.asarray(model.actuator_gear)[outputs(model)]


def rotors(model: Any) -> dict[str, NDArray]:
    """The armature and the damping of all actuators behind their gears; zero in MuJoCo 3."""
    ratio = gears(model)[:, 0] ** 2
    leaves = "armature", "damping"
    return {leaf: ratio * getattr(model, f"actuator_{leaf}", np.zeros(1)) for leaf in leaves}


def moved_joints(model: Any, a: int) -> list[int]:
    """The joints that an actuator may act on."""
    kind, on = int(model.actuator_trntype[a]), int(model.actuator_trnid[a, 0])
    if kind in ON_JOINTS:
        return [on]
    if kind == TENDON:
        first = int(model.tendon_adr[on])
        parts = slice(first, first + int(model.tendon_num[on]))
        if model.wrap_type[first] == _OF_JOINT:
            return np.unique(model.wrap_objid[parts]).tolist()
    return list(range(model.njnt))


def _drives(model: Any, j: int) -> list[int]:
    """The actuators that act on a joint itself."""
    on_joint = np.isin(model.actuator_trntype, ON_JOINTS) & (model.actuator_trnid[:, 0] == j)
    return np.flatnonzero(on_joint).tolist()


def lasting_efforts(model: Any, names: Sequence[str]) -> list[str]:
    """Phrases on joints whose effort cannot be 0 in MuJoCo, which a `System` cannot express.

    names: those of the model's joints.
    """
    said = []
    for j, kind in enumerate(model.jnt_type):
        if TYPES[kind] in (Prismatic, Revolute):
            low, high = effort_range(model, j)
            if low > 0 or high < 0:
                unit = "N m" if TYPES[kind] is Revolute else "N"
                said.append(
                    f"the effort of {format_value(names[j])} is between {low:g} and {high:g} "
                    f"{unit}, and may be 0 here"
                )
    return said


def effort_range(model: Any, j: int) -> tuple[float, float]:
    """The least and the greatest total effort of a joint's actuators, in N m or N."""
    low, high = -np.inf, np.inf
    drives = _drives(model, j)
    elsewhere = np.flatnonzero(~np.isin(model.actuator_trntype, ON_JOINTS)).tolist()
    if drives:
        ratios = [(a, gears(model)[a, 0]) for a in drives if gears(model)[a, 0]]
        ends = [np.sort(gear * _forces(model, a)) for a, gear in ratios]
        low, high = np.sum(ends, axis=0) if ends else (0.0, 0.0)
    if model.jnt_actfrclimited[j]:
        least, most = model.jnt_actfrcrange[j]
        others = any(j in moved_joints(model, a) for a in elsewhere)
        low, high = (least, most) if others else np.clip((low, high), least, most)
    return float(low), float(high)


def _forces(model: Any, a: int) -> NDArray:
    """The least and the greatest force (2,) of an actuator, before its gear."""
    forces = np.array([-np.inf, np.inf])
    if model.actuator_forcelimited[a]:
        forces = np.array(model.actuator_forcerange[a])
    is_motor = not (
        model.actuator_gaintype[a] or model.actuator_biastype[a] or model.actuator_dyntype[a]
    )
    # An actuator of MuJoCo 4 may have several controls; a motor has one.
    control = model.actuator_ctrladr[a] if hasattr(model, "actuator_ctrladr") else a
    if is_motor and model.actuator_ctrllimited[control]:
        ends = np.sort(model.actuator_gainprm[a, 0] * model.actuator_ctrlrange[control])
        forces = np.clip(ends, *forces)
    return forces
