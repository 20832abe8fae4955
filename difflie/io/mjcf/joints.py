"""The joints of a MuJoCo model, with the limits and the inertia of their actuators."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...system import Free, Joint, Prismatic, Revolute, Spherical

# MuJoCo's joint types by number.
TYPES: tuple[type[Joint], ...] = (Free, Spherical, Prismatic, Revolute)


def read_joint(model: Any, j: int, name: str) -> Joint:
    """Joint number j of a MuJoCo model, with the armature and damping of its actuators."""
    kind = TYPES[model.jnt_type[j]]
    dof, ref = model.jnt_dofadr[j], model.qpos0[model.jnt_qposadr[j]]
    dofs = slice(dof, dof + len(kind().dofs()))
    fields: dict[str, Any] = {
        "name": name,
        "damping": model.dof_damping[dofs].copy(),
        "friction": model.dof_frictionloss[dofs].copy(),
    }
    if kind is not Free:
        fields["armature"] = model.dof_armature[dofs].copy()
    if kind in (Prismatic, Revolute):
        fields["axis"] = model.jnt_axis[j].tolist()
        fields["stiffness"] = model.jnt_stiffness[j]
        fields["spring_reference"] = model.qpos_spring[model.jnt_qposadr[j]] - ref
        if model.jnt_limited[j]:
            fields["lower"], fields["upper"] = model.jnt_range[j] - ref
        drives = _drives(model, j)
        fields["max_effort"] = _max_effort(model, j, drives)
        for leaf in ("armature", "damping"):
            # MuJoCo 3 has no such property of actuators.
            own = getattr(model, f"actuator_{leaf}", None)
            if own is not None:
                fields[leaf] += sum(model.actuator_gear[a, 0] ** 2 * own[a] for a in drives)
    return kind(**fields)


def _drives(model: Any, j: int) -> list[int]:
    """The actuators that act on a hinge or slide itself."""
    on_joint = (model.actuator_trntype <= 1) & (model.actuator_trnid[:, 0] == j)
    return np.flatnonzero(on_joint).tolist()


def _max_effort(model: Any, j: int, drives: list[int]) -> float:
    """The total effort of a joint's actuators, in N m or N; infinite if it is not limited."""
    limit = np.inf
    if drives:
        limit = sum(abs(model.actuator_gear[a, 0]) * _strongest(model, a) for a in drives)
    if model.jnt_actfrclimited[j]:
        limit = min(limit, np.abs(model.jnt_actfrcrange[j]).max())
    return float(limit)


def _strongest(model: Any, a: int) -> float:
    """The largest force of an actuator, before its gear."""
    strongest = np.inf
    if model.actuator_forcelimited[a]:
        strongest = np.abs(model.actuator_forcerange[a]).max()
    is_motor = not (
        model.actuator_gaintype[a] or model.actuator_biastype[a] or model.actuator_dyntype[a]
    )
    # An actuator of MuJoCo 4 may have several controls; a motor has one.
    control = model.actuator_ctrladr[a] if hasattr(model, "actuator_ctrladr") else a
    if is_motor and model.actuator_ctrllimited[control]:
        largest = np.abs(model.actuator_ctrlrange[control]).max()
        strongest = min(strongest, abs(model.actuator_gainprm[a, 0]) * largest)
    return float(strongest)
