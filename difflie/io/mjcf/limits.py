"""The limits of joints and tendons of a MuJoCo model as compliant stops.

They have the stiffness of MuJoCo's soft constraints, see `softness.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...forces import JointStop, RotationStop
from ...groups import so3
from ...system import Body, Spherical, System
from .flags import limits_act
from .joints import TYPES
from .softness import soft_numbers


def joint_stops(
    model: Any, joints: Sequence[str], tree: Sequence[Body], system: System
) -> Iterator[JointStop | RotationStop]:
    """The stops of hinges, slides and ball joints; joints: their names, tree: the bodies."""
    moved = {body.joint.name: body for body in tree}
    for j, name in enumerate(joints):
        if not model.jnt_limited[j] or name not in system.joint_names:
            continue
        # Of a ball joint, the same for all of its axes.
        weight = float(model.dof_invweight0[model.jnt_dofadr[j]])
        soft = model.jnt_solref[j], model.jnt_solimp[j]
        stiffness, dissipation = soft_numbers(model, *soft, weight)
        if TYPES[model.jnt_type[j]] is Spherical:
            body = moved[name]
            yield RotationStop(
                [(body.parent, np.array(body.position)), (body.name, np.zeros(3))],
                stiffness,
                angle=max(model.jnt_range[j]),
                first_rotation=so3.log(np.asarray(body.rotation)),
                dissipation=dissipation,
            )
        else:
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
