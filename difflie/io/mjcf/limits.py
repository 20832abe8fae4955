"""The limits of joints and tendons of a MuJoCo model as compliant stops.

MuJoCo's limits are soft constraints. With the impedance d and the reference k and b of solref and
solimp, and the inertia m = 1 / w of the inverse weight w at the model's initial pose, a limit at
rest carries k d^2 m / (1 - d) per rad or m. That is the stiffness here, with d at the depth at
which this load is m g. The damping b d m / (1 - d), at most critical, is a dissipation that has it
under this load.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...forces import JointStop
from ...system import Prismatic, Revolute, System
from .contacts import impedance, reference
from .joints import TYPES

_GRAVITY = 9.81
_LEAST = 1e-15
_OFF = {"limit", "constraint"}


def joint_stops(
    model: Any, joints: Sequence[str], system: System, disabled: set[str]
) -> Iterator[JointStop]:
    """The stops of hinges and slides; joints: their names; disabled: the flags that are off."""
    for j, name in enumerate(joints):
        scalar = TYPES[model.jnt_type[j]] in (Prismatic, Revolute)
        if scalar and model.jnt_limited[j] and name in system.joint_names and not disabled & _OFF:
            weight = float(model.dof_invweight0[model.jnt_dofadr[j]])
            stiffness, dissipation = stop_numbers(
                model, model.jnt_solref[j], model.jnt_solimp[j], weight
            )
            yield JointStop(stiffness, (name,), dissipation=dissipation)


def stop_numbers(
    model: Any, solref: np.ndarray, solimp: np.ndarray, weight: float
) -> tuple[float, float]:
    """The stiffness in N/m or N m/rad and the dissipation in s/m or s/rad of a limit.

    weight: its inverse inertia in 1/kg or 1/(kg m^2).
    """
    k, c, _ = reference(model, solref, solimp)
    start = impedance(solimp, 0.0)
    low, high = 0.0, _GRAVITY * (1 - start) / (k * start * start)
    for _ in range(200):  # for the depth to which m g presses it; what it carries grows with that
        depth = (low + high) / 2
        d = impedance(solimp, depth)
        low, high = (depth, high) if k * d * d * depth < _GRAVITY * (1 - d) else (low, depth)
    d = impedance(solimp, high)
    share = d / (1 - d)
    damping = min(c * share, 2 * np.sqrt(k * d * share))
    return k * d * share / max(weight, _LEAST), float(damping / _GRAVITY)


def unread_limits(model: Any, disabled: set[str]) -> Iterator[tuple[str, str, list[int]]]:
    """What of the limits that are read is not modelled, and which elements have it."""
    for kind, limited, what in (
        ("jnt", model.jnt_limited, "margins of limits"),
        ("tendon", model.tendon_limited, "margins of limits of tendons"),
    ):
        margins = getattr(model, f"{kind}_margin")
        at = [] if disabled & _OFF else np.flatnonzero((limited != 0) & (margins != 0)).tolist()
        yield what, kind, at
