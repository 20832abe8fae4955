"""The limits of joints and tendons of a MuJoCo model as compliant stops.

They have the stiffness of MuJoCo's soft constraints, see `softness.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...forces import JointStop
from ...system import Prismatic, Revolute, System
from .joints import TYPES
from .softness import soft_numbers

_OFF = {"limit", "constraint"}


def joint_stops(
    model: Any, joints: Sequence[str], system: System, disabled: set[str]
) -> Iterator[JointStop]:
    """The stops of hinges and slides; joints: their names; disabled: the flags that are off."""
    for j, name in enumerate(joints):
        scalar = TYPES[model.jnt_type[j]] in (Prismatic, Revolute)
        if scalar and model.jnt_limited[j] and name in system.joint_names and not disabled & _OFF:
            weight = float(model.dof_invweight0[model.jnt_dofadr[j]])
            law = soft_numbers(model, model.jnt_solref[j], model.jnt_solimp[j], weight)
            stiffness, dissipation = law
            yield JointStop(stiffness, (name,), dissipation=dissipation)


def unread_limits(model: Any, disabled: set[str]) -> Iterator[tuple[str, str, list[int]]]:
    """What of the limits that are read is not modelled, and which elements have it."""
    for kind, limited, what in (
        ("jnt", model.jnt_limited, "margins of limits"),
        ("tendon", model.tendon_limited, "margins of limits of tendons"),
    ):
        margins = getattr(model, f"{kind}_margin")
        at = [] if disabled & _OFF else np.flatnonzero((limited != 0) & (margins != 0)).tolist()
        yield what, kind, at
