"""The names of a MuJoCo model's bodies and joints, with defaults for unnamed ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..names import distinct

# The default names of joints, by MuJoCo's numbers of joint types.
_WORDS = ("free", "ball", "slide", "hinge")


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


def _named(given: Sequence[str], defaults: Sequence[str]) -> list[str]:
    """The given names, and for the empty ones the defaults, made distinct by underscores."""
    taken, names = set(given), []
    for name, default in zip(given, defaults, strict=True):
        if not name:
            name = distinct(default, taken)
            taken.add(name)
        names.append(name)
    return names
