"""The laws of many actuators: those of one kind are evaluated as one law of arrays.

A program is so traced and compiled once for each kind, and not for each actuator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...system.protocols import ActuatorElement
from ...system.user_functions import called, is_own

# What of an actuator says where it acts, and is nothing to its law.
_ELSEWHERE: dict[str, Any] = {"joint": None, "axis": None, "transmission": None, "name": None}

# Scalars, or arrays of an actuator with partners.
Given = tuple[jax.Array, jax.Array, jax.Array, Any]


def outputs(
    actuators: Sequence[ActuatorElement], given: Sequence[Given]
) -> list[tuple[jax.Array, Any]]:
    """What the law of each actuator returns: the torque (), and the memory or dz/dt.

    given: what each law takes: command (), q (), v () and the memory or z.
    """
    return _by_kind("torque", actuators, given)


def heard(
    actuators: Sequence[ActuatorElement], given: Sequence[tuple[jax.Array, Any]]
) -> list[tuple[jax.Array, Any]]:
    """The command () that the law of each actuator gets, and the memory that it gets.

    given: the command () at the start of the step, and the memory then.
    """
    return _by_kind("late", actuators, given)


def _by_kind(
    law_name: str, actuators: Sequence[ActuatorElement], given: Sequence[tuple]
) -> list[tuple[jax.Array, Any]]:
    """What a method of each actuator returns, two things, of what it takes."""
    kinds: dict[Any, list[int]] = {}
    laws: dict[int, Any] = {}
    for i, actuator in enumerate(actuators):
        kind: Any = i
        # An actuator of one's own may read more of itself in what it overrides, and may be made
        # from other fields, so it is not vectorised.
        if is_own(type(actuator)):
            law = replace(actuator, **_ELSEWHERE)  # pyright: ignore[reportArgumentType]
            shapes = [np.shape(leaf) for leaf in jax.tree.leaves((law, given[i]))]
            kind, laws[i] = (jax.tree.structure((law, given[i])), *shapes), law
        kinds.setdefault(kind, []).append(i)
    found: dict[int, tuple[jax.Array, Any]] = {}
    for those in kinds.values():
        if len(those) == 1:
            (i,) = those
            found[i] = called(getattr(actuators[i], law_name), *given[i])
            continue
        rows = [(laws[i], given[i]) for i in those]
        law, taken = jax.tree.map(lambda *a: jnp.stack(a), *rows)
        first, after = jax.vmap(lambda law, given: getattr(law, law_name)(*given))(law, taken)
        for k, i in enumerate(those):
            found[i] = first[k], jax.tree.map(lambda a, k=k: a[k], after)
    return [found[i] for i in range(len(actuators))]
