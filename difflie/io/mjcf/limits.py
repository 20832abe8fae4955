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
from .softness import USUAL, soft_numbers

NUMBERS = "limits of hinges and slides"


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


def unread_limits(
    model: Any, disabled: set[str], stops: bool
) -> Iterator[tuple[str, str, list[int]]]:
    """What of the limits is not modelled, and which elements have it.

    stops: whether they are read as stops. `NUMBERS` are limits that are read as numbers only.
    """
    if not limits_act(disabled):
        return
    limited = np.asarray(model.jnt_limited) != 0
    tendons, balls = np.asarray(model.tendon_limited) != 0, _of_balls(model)
    if not stops:
        yield NUMBERS, "jnt", np.flatnonzero(limited & ~balls).tolist()
        yield "limits of ball joints", "jnt", np.flatnonzero(limited & balls).tolist()
        yield "limits of tendons", "tendon", np.flatnonzero(tendons).tolist()
        limited, tendons = limited & ~balls, tendons & False
        soft = limited & _not_usual(model.jnt_solref, model.jnt_solimp)
        yield "softness (solreflimit, solimplimit) of limits", "jnt", np.flatnonzero(soft).tolist()
    for kind, which, what in (
        ("jnt", limited, "margins of limits"),
        ("tendon", tendons, "margins of limits of tendons"),
    ):
        margins = getattr(model, f"{kind}_margin") != 0
        yield what, kind, np.flatnonzero(which & margins).tolist()


def unread_friction(model: Any, disabled: set[str]) -> Iterator[tuple[str, str, list[int]]]:
    """The softness of dry friction, which is smoothed here, and which elements have it."""
    what = "softness (solreffriction, solimpfriction) of friction"
    dofs = (model.dof_frictionloss != 0) & _not_usual(model.dof_solref, model.dof_solimp)
    yield what, "jnt", sorted({int(model.dof_jntid[dof]) for dof in np.flatnonzero(dofs)})
    soft = _not_usual(model.tendon_solref_fri, model.tendon_solimp_fri)
    along = np.flatnonzero((model.tendon_frictionloss != 0) & soft)
    yield f"{what} of tendons", "tendon", along.tolist()


def _of_balls(model: Any) -> np.ndarray:
    return np.asarray(model.jnt_type) == TYPES.index(Spherical)


def _not_usual(solref: np.ndarray, solimp: np.ndarray) -> np.ndarray:
    """Which of n constraints (n, ...) have another softness than MuJoCo's default."""
    usual = (solref, USUAL["solref"]), (solimp, USUAL["solimp"])
    return np.any([np.any(own != default, axis=1) for own, default in usual], axis=0)
