"""The option flags of a MuJoCo model, which switch parts of it off."""

from __future__ import annotations

from typing import Any

import numpy as np

_DAMPING = "dof_damping", "dof_dampingpoly", "tendon_damping", "tendon_dampingpoly"
_SPRINGS = "jnt_stiffness", "jnt_stiffnesspoly", "tendon_stiffness", "tendon_stiffnesspoly"
_CONTACTS = "geom_contype", "geom_conaffinity"
_FRICTION = "dof_frictionloss", "tendon_frictionloss"
_MEDIUM = "body_gravcomp", "opt.density", "opt.viscosity"

# What is zero where a flag is off. MuJoCo 3 has the flag "passive", which stands for both of its
# successors and what else is passive; some fields are of MuJoCo 4 only.
_OFF = {
    "spring": _SPRINGS,
    "damper": (*_DAMPING, "actuator_damping", "actuator_dampingpoly"),
    "passive": (*_SPRINGS, *_DAMPING, *_MEDIUM),
    "frictionloss": _FRICTION,
    "clampctrl": ("actuator_ctrllimited",),
    "contact": _CONTACTS,
    "constraint": (*_FRICTION, *_CONTACTS),
}


def disabled_flags(mujoco: Any, model: Any) -> set[str]:
    """The names of the option flags that are off, as in "gravity"."""
    flags = mujoco.mjtDisableBit.__members__.items()
    off = [n for n, flag in flags if n[:7] == "mjDSBL_" and model.opt.disableflags & int(flag)]
    return {name.removeprefix("mjDSBL_").lower() for name in off}


def limits_act(disabled: set[str]) -> bool:
    """Whether the limits of joints and tendons act with these flags off."""
    return not disabled & {"limit", "constraint"}


def switch_off(model: Any, disabled: set[str]) -> None:
    """Sets to zero what the flags that are off take out of the motion of a model.

    Equality constraints and gravity are left to their readers. Limits of joints stay, for they are
    no constraints of a `System`.
    """
    fields = [field for flag in disabled for field in _OFF.get(flag, ())]
    if {"spring", "damper"} <= disabled:
        fields += _MEDIUM  # MuJoCo computes no passive force then
    for field in fields:
        *inner, name = field.split(".")
        owner = getattr(model, inner[0]) if inner else model
        value = getattr(owner, name, None)
        if isinstance(value, np.ndarray):
            value[...] = 0
        elif value is not None:
            setattr(owner, name, 0.0)
