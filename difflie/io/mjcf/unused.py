"""Features of a MuJoCo model that a `System` does not have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ...system import Free, Prismatic
from .equalities import unused_equalities
from .joints import TYPES, unused_drives
from .names import listed
from .tendons import SITE, unused_tendons

# Elements that no motion depends on, or that no `System` has, and their names in the warning.
_ALL = {
    "geom": "shapes of geoms",
    "pair": "contact pairs",
    "flex": "flexes",
    "skin": "skins",
    "plugin": "plugins",
    "site": "sites",
    "sensor": "sensors",
    "key": "keyframes",
    "cam": "cameras",
    "light": "lights",
    "numeric": "custom numbers",
    "text": "custom texts",
    "tuple": "custom tuples",
}

# Fields of bodies, joints and actuators that are not zero; those in the second part of MuJoCo 4
# only.
_FIELDS = {
    ("body", "gravcomp"): "gravity compensation of bodies",
    ("jnt", "stiffnesspoly"): "nonlinear springs",
    ("jnt", "springyield"): "yield of springs",
    ("actuator", "dampingpoly"): "nonlinear damping of actuators",
}


def unused(model: Any, disabled: set[str]) -> Iterator[str]:
    """The features of the model that a `System` does not have, for a warning.

    Each with the names of the elements that have it. disabled: the option flags that are off.
    """
    for what, kind, at in _features(model, disabled):
        found = list(map(int, at))
        if found:
            yield f"{what} ({listed(model, kind, found)})"
    if model.opt.density or model.opt.viscosity:
        yield "forces of the medium (option density, viscosity)"


def _features(model: Any, disabled: set[str]) -> Iterator[tuple[str, str, Iterable[int]]]:
    """Each feature with the kind and the numbers of the elements that have it."""
    yield "contacts of geoms", "geom", np.flatnonzero(model.geom_contype | model.geom_conaffinity)
    for kind, what in _ALL.items():
        # What tendons are led through is used.
        led = model.wrap_objid[model.wrap_type == SITE] if kind == "site" else ()
        yield what, kind, np.setdiff1d(np.arange(getattr(model, f"n{kind}")), led)
    yield from unused_tendons(model)
    yield from unused_equalities(model, disabled)
    yield from unused_drives(model)
    yield "motion of mocap bodies", "body", np.flatnonzero(model.body_mocapid >= 0)
    joints, kinds = np.arange(model.njnt), np.asarray(model.jnt_type)
    vector = kinds < TYPES.index(Prismatic)
    yield "springs of ball and free joints", "jnt", joints[vector & (model.jnt_stiffness != 0)]
    yield "limits of ball joints", "jnt", joints[vector & (model.jnt_limited != 0)]
    free = kinds[model.dof_jntid] == TYPES.index(Free)
    loaded = np.unique(model.dof_jntid[free & (model.dof_armature != 0)])
    yield "armature along free joints", "jnt", loaded
    damped = np.asarray(getattr(model, "dof_dampingpoly", np.zeros((model.nv, 1))))
    yield "nonlinear damping", "jnt", np.unique(model.dof_jntid[damped.any(axis=-1)])
    for (kind, field), what in _FIELDS.items():
        values = np.asarray(getattr(model, f"{kind}_{field}", np.zeros(0)))
        yield what, kind, [k for k, own in enumerate(values) if np.any(own)]
