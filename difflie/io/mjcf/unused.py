"""Features of a MuJoCo model that a `System` does not have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...system import Free, Prismatic
from .equalities import unused_equalities
from .joints import TYPES
from .tendons import unused_tendons

# Counted features of a model, and their names in the warning.
_COUNTED = {
    "ngeom": "shapes of geoms",
    "npair": "contact pairs",
    "nflex": "flexes",
    "nskin": "skins",
    "nplugin": "plugins",
    "nsite": "sites",
    "nsensor": "sensors",
    "nkey": "keyframes",
    "ncam": "cameras",
    "nlight": "lights",
    "nnumeric": "custom numbers",
    "ntext": "custom texts",
    "ntuple": "custom tuples",
}

# MuJoCo 4 only.
_NONLINEAR = {
    "jnt_stiffnesspoly": "nonlinear springs",
    "jnt_springyield": "yield of springs",
    "dof_dampingpoly": "nonlinear damping",
    "actuator_dampingpoly": "nonlinear damping of actuators",
}


def unused(model: Any, disabled: set[str]) -> Iterator[str]:
    """The features of the model that a `System` does not have, for a warning."""

    def some(what: str, having: Any) -> Iterator[str]:
        count = int(np.count_nonzero(having))
        if count:
            yield f"{what} ({count})"

    drives = model.actuator_trntype
    scalar = np.asarray(model.jnt_type) >= TYPES.index(Prismatic)
    free_dof = np.asarray(model.jnt_type)[model.dof_jntid] == TYPES.index(Free)
    yield from some("contacts of geoms", model.geom_contype | model.geom_conaffinity)
    counts = [(what, getattr(model, field)) for field, what in _COUNTED.items()]
    others = *unused_tendons(model), *unused_equalities(model, disabled)
    for what, count in (*counts, *others):
        if count:
            yield f"{what} ({count})"
    if len(drives):
        yield f"actuators but for armature, damping and the limits of effort ({len(drives)})"
    yield from some("motion of mocap bodies", model.body_mocapid >= 0)
    yield from some("gravity compensation of bodies", model.body_gravcomp)
    yield from some("springs of ball and free joints", model.jnt_stiffness[~scalar])
    yield from some("limits of ball joints", model.jnt_limited[~scalar])
    yield from some("armature along free joints", model.dof_armature[free_dof])
    for field, what in _NONLINEAR.items():
        if hasattr(model, field):
            yield from some(what, getattr(model, field))
    if model.opt.density or model.opt.viscosity:
        yield "forces of the medium (option density, viscosity)"
    for name in sorted(disabled & {"spring", "damper", "passive", "frictionloss"}):
        yield f"option flag {name}=disable"
