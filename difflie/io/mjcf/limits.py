"""The limits of joints and tendons of a MuJoCo model as compliant stops.

They have the stiffness of MuJoCo's soft constraints, see `softness.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...forces import JointStop
from ...system import Prismatic, Revolute, System
from .flags import limits_act
from .joints import TYPES
from .softness import soft_numbers


def joint_stops(model: Any, joints: Sequence[str], system: System) -> Iterator[JointStop]:
    """The stops of hinges and slides; joints: their names."""
    for j, name in enumerate(joints):
        scalar = TYPES[model.jnt_type[j]] in (Prismatic, Revolute)
        if scalar and model.jnt_limited[j] and name in system.joint_names:
            weight = float(model.dof_invweight0[model.jnt_dofadr[j]])
            soft = model.jnt_solref[j], model.jnt_solimp[j]
            stiffness, dissipation = soft_numbers(model, *soft, weight)
            yield JointStop(stiffness, (name,), dissipation=dissipation)


def unread_limits(model: Any, disabled: set[str]) -> Iterator[tuple[str, str, list[int]]]:
    """What of the limits that are read is not modelled, and which elements have it."""
    for kind, limited, what in (
        ("jnt", model.jnt_limited, "margins of limits"),
        ("tendon", model.tendon_limited, "margins of limits of tendons"),
    ):
        margins = getattr(model, f"{kind}_margin")
        at = np.flatnonzero((limited != 0) & (margins != 0)).tolist()
        yield what, kind, at if limits_act(disabled) else []
