"""Internal states: numbers z of force elements and actuators that change with the motion.

An element lists its own as (name, unit) in `states`, and holds their values in `z0` (k,). Those of
a system are one vector z (nz,): of the actuators, then of the couplings, each in its order. Within
a step an element is asked in a copy of the system whose `z0` are the values at that moment.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .frozen import is_frozen, unfreeze
from .kinematic_tree import Tree
from .system import System, carried_tree


class Owner(NamedTuple):
    """An element with internal states: where it is in a system, and which entries of z it has."""

    group: str
    index: int
    element: Any
    place: slice


def owners(system: System) -> list[Owner]:
    """The elements of a system that have internal states, in the order of z."""
    found, start = [], 0
    for group in ("actuators", "couplings"):
        for i, element in enumerate(getattr(system, group)):
            if size := len(element.states):
                found.append(Owner(group, i, element, slice(start, start + size)))
                start += size
    return found


def states_of(system: System) -> Float[Array, " nz"]:
    """The internal states (nz,) that the elements of a system hold."""
    held = [owner.element.z0 for owner in owners(system)]
    return jnp.concatenate([jnp.zeros(0, system.dtype), *held])


def with_states(system: System, z: Float[Array, " nz"]) -> System:
    """The system at internal states z (nz,), not frozen; it carries its tree if it did before."""
    there = owners(system)
    if not there:
        return system
    tree = carried_tree(system)
    parts = {group: list(getattr(system, group)) for group in ("actuators", "couplings")}
    for owner in there:
        parts[owner.group][owner.index] = _at(unfreeze(owner.element), z[owner.place])
    made = replace(unfreeze(system), **{name: tuple(part) for name, part in parts.items()})
    return made if tree is None else replace(tree, system=made).carried()


def tree_with_states(tree: Tree, z: Float[Array, " nz"] | None) -> Tree:
    """The tree of the system at internal states z (nz,); the same for None."""
    if z is None:
        return tree
    system = with_states(tree.system, z)
    return replace(unfreeze(tree) if is_frozen(tree) else tree, system=system)


def _at(element: Any, z: jax.Array) -> Any:
    return eqx.tree_at(lambda e: e.z0, element, z, is_leaf=lambda x: x is None)
