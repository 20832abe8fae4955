"""What of a machine can be set by hand: sliders of its joints, gizmos of its free bodies."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ...constraints import assemble
from ...groups import quaternion, so3
from ...system import System
from ...system.joints import Free, Spherical

# Where a joint has no limits: a turn, and a metre.
_WIDTHS = {"rad": np.pi, "m": 1.0}


@dataclass(frozen=True)
class Slider:
    """A coordinate that a slider sets: its entry in q, its range in rad or m."""

    name: str
    unit: str
    entry: int
    lower: float
    upper: float


@dataclass(frozen=True)
class Gizmo:
    """A body on a free joint or a ball joint: its index, the start of its entries in q.

    turns: whether it only turns.
    """

    name: str
    body: int
    start: int
    turns: bool


def sliders(system: System) -> list[Slider]:
    """The sliders of a machine, within the limits of its joints.

    Mimic joints have none, as they follow others, and neither have joints whose coordinates are no
    plain numbers.
    """
    t = system.topology
    lower, upper = (np.asarray(getattr(system.joints, end)) for end in ("lower", "upper"))
    made = []
    for b in t.coordinate_joints:
        if not t.manifolds[b].plain:
            continue
        for i in range(len(t.kinds[b])):
            dof, entry = int(t.dof_start[b]) + i, int(t.coordinate_start[b]) + i
            name, unit = t.coordinate_labels[entry]
            made.append(Slider(name, unit, entry, *_range(lower[dof], upper[dof], _WIDTHS[unit])))
    return made


def _range(lower: float, upper: float, width: float) -> tuple[float, float]:
    """The range of a slider; of an open one the width on either side, or twice it on one side."""
    if not np.isfinite(lower) and not np.isfinite(upper):
        return -width, width
    low = float(lower) if np.isfinite(lower) else float(upper) - 2 * width
    high = float(upper) if np.isfinite(upper) else float(lower) + 2 * width
    return low, high


def gizmos(system: System) -> list[Gizmo]:
    """The free bodies and those on ball joints, which are set by gizmos."""
    t = system.topology
    return [
        Gizmo(t.joints[b], b, int(t.coordinate_start[b]), isinstance(t.types[b], Spherical))
        for b in t.coordinate_joints
        if isinstance(t.types[b], Free | Spherical)
    ]


def unset(system: System) -> list[str]:
    """The joints that have neither sliders nor a gizmo."""
    t = system.topology
    set_by_gizmo = {gizmo.name for gizmo in gizmos(system)}
    return [
        t.joints[b]
        for b in t.coordinate_joints
        if not t.manifolds[b].plain and t.joints[b] not in set_by_gizmo
    ]


def moved(system: System, gizmo: Gizmo, q: NDArray, poses: NDArray, pose: NDArray) -> NDArray:
    """The configuration (nq,) in which the gizmo's body is at a pose (4, 4) of the world.

    q (nq,) and poses (nb, 4, 4): the present ones. A ball joint takes the attitude only.
    """
    parent = system.topology.parents[gizmo.body]
    joint = np.eye(4)
    joint[:3, :3] = np.asarray(so3.exp(system.joints.rotation[gizmo.body]))
    joint[:3, 3] = np.asarray(system.joints.position[gizmo.body])
    frame = joint if parent < 0 else poses[parent] @ joint
    relative = np.linalg.solve(frame, pose)
    turn = np.asarray(quaternion.from_matrix(jnp.asarray(relative[:3, :3])))
    new = np.array(q)
    new[gizmo.start : gizmo.start + 4] = turn
    if not gizmo.turns:
        new[gizmo.start + 4 : gizmo.start + 7] = relative[:3, 3]
    return new


def closed_at(system: System, q: NDArray, v: NDArray) -> tuple[NDArray, NDArray]:
    """The state (q (nq,), v (nv,)) near a given one that keeps the constraints.

    Raises `ModelError` where there is none.
    """
    if not system.constraints:
        return q, v
    q1, v1 = assemble(system, q, v)
    return np.array(q1), np.array(v1)
