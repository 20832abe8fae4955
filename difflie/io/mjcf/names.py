"""The names of a MuJoCo model's bodies and joints, with defaults for unnamed ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...system.validation import format_value
from ..robot_files import distinct

# The default names of joints, by MuJoCo's numbers of joint types.
_WORDS = ("free", "ball", "slide", "hinge")

_MOST = 4

# What names of sensors and couplings cannot have, as paths of parameters have other uses for it.
SIGNS = str.maketrans({sign: "_" for sign in "/*?[]"})


class Names(NamedTuple):
    """The names of a model's bodies but the world, and of its joints."""

    bodies: Sequence[str]
    joints: Sequence[str]


def body_names(model: Any) -> list[str]:
    """The names of a MuJoCo model's bodies but the world, "bodyN" where they have none."""
    numbers = range(1, model.nbody)
    return _named([model.body(b).name for b in numbers], [f"body{b}" for b in numbers])


def joint_names(model: Any) -> list[str]:
    """The names of a MuJoCo model's joints, "BODY/hinge" and the like where they have none."""
    bodies = body_names(model)
    owners = [bodies[model.jnt_bodyid[j] - 1] for j in range(model.njnt)]
    words = [_WORDS[kind] for kind in model.jnt_type]
    given = [model.joint(j).name for j in range(model.njnt)]
    return _named(given, [f"{b}/{word}" for b, word in zip(owners, words, strict=True)])


def site_names(model: Any) -> list[str]:
    """The names of a MuJoCo model's sites, "siteN" where they have none."""
    numbers = range(model.nsite)
    return _named([model.site(s).name for s in numbers], [f"site{s}" for s in numbers])


def key_names(model: Any) -> list[str]:
    """The names of a MuJoCo model's keyframes, "keyN" where they have none."""
    numbers = range(model.nkey)
    return _named([model.key(k).name for k in numbers], [f"key{k}" for k in numbers])


def actuator_names(model: Any) -> list[str]:
    """The names of a MuJoCo model's actuators, "actuatorN" where they have none."""
    # Not `nu`: in MuJoCo 4 an actuator may have several controls.
    numbers = range(len(model.actuator_trntype))
    return _named([model.actuator(a).name for a in numbers], [f"actuator{a}" for a in numbers])


# What the controls of an actuator are, by MuJoCo's mjtCtrlInput.
INPUTS = {1: "position", 2: "velocity", 4: "effort", 8: "voltage", 16: "none"}
_AXES = {3: "xyz", 4: "wxyz"}  # of orientations, by the number of their controls


def command_names(model: Any) -> list[list[str]]:
    """The names of the commands that each of a MuJoCo model's actuators has here.

    The first has the name of the actuator, the others "NAME/velocity" and the like; those of an
    orientation are "NAME/x", "NAME/y" and "NAME/z". An actuator without controls has one command,
    which does nothing.
    """
    names, found = actuator_names(model), []
    taken = set(names)
    for a, name in enumerate(names):
        words = [""]
        if hasattr(model, "actuator_ctrlnum"):
            count = int(model.actuator_ctrlnum[a])
            if count > 1 and model.actuator_outnum[a] > 1:
                words = list(_AXES[count])
            elif count > 1:
                words = ["", *input_words(model, a)[1:]]
        own = [distinct(f"{name}/{word}", taken) if word else name for word in words]
        taken |= set(own)
        found.append(own)
    return found


def control_names(model: Any) -> list[str]:
    """The names of a MuJoCo model's controls, in its order."""
    there = getattr(model, "actuator_ctrlnum", np.ones(len(model.actuator_trntype)))
    pairs = zip(command_names(model), there, strict=True)
    return [name for names, count in pairs if count for name in names]


def input_words(model: Any, a: int) -> list[str]:
    """What the controls of an actuator with a controller are, such as "position"."""
    return [word for bit, word in INPUTS.items() if int(model.actuator_ctrlspec[a]) & bit]


def listed(model: Any, kind: str, numbers: Sequence[int]) -> str:
    """The names of some elements for a message; of many the first few, and how many more.

    kind: as in the fields of a model, such as "geom" or "jnt"; numbers: which of its elements. One
    without a name is called by its body and its number.
    """
    names = [_shown(model, kind, number) for number in numbers]
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ", ".join(names[:_MOST]) + more


def element_name(model: Any, kind: str, number: int) -> str:
    """The name of an element in the file; "" without one. kind: as of `listed`."""
    # Plugins and elements of other versions have no names.
    starts = getattr(model, f"name_{kind}adr", None)
    name = b"" if starts is None else model.names[starts[number] :].split(b"\0", 1)[0]
    return name.decode(errors="replace")


def _shown(model: Any, kind: str, number: int) -> str:
    if kind == "body":
        return format_value(body_names(model)[number - 1]) if number else "the world"
    if kind == "jnt":
        return format_value(joint_names(model)[number])
    name = element_name(model, kind, number)
    if name:
        return format_value(name)
    owners = getattr(model, f"{kind}_bodyid", None)
    if owners is None:
        return f"number {number}"
    return f"number {number} of {_shown(model, 'body', int(owners[number]))}"


def _named(given: Sequence[str], defaults: Sequence[str]) -> list[str]:
    """The given names, and for the empty ones the defaults, made distinct by underscores."""
    taken, names = set(given), []
    for name, default in zip(given, defaults, strict=True):
        if not name:
            name = distinct(default, taken)
            taken.add(name)
        names.append(name)
    return names
