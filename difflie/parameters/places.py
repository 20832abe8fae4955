"""Places of numbers in a system: where an array is, read and written."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..system.fields import PLAIN, Number, declared
from ..system.system import Bodies, System
from .pseudo_inertia import from_six, to_six

Place = tuple[str | int, ...]
"""The attributes and indices that lead to an array, or one of the places below."""
Places = tuple[tuple[Place, tuple[int, ...]], ...]
"""Places, each with the indices in its array; none for all of it."""

# The mass, the centre of mass and the inertia of a body as one value (10,).
INERTIAL: Place = ("bodies", "inertial")
# Single numbers of the centre of mass.
COM: dict[Place, int] = {("bodies", f"com_{axis}"): k for k, axis in enumerate("xyz")}
GROUPS = "couplings", "constraints", "sensors", "actuators"
BODY = tuple(f.name for f in fields(Bodies))


def read(system: System, places: Places) -> jax.Array:
    """The values (k, *shape) at the places."""
    return jnp.concatenate([_read(system, place, index) for place, index in places])


def write(system: System, places: Places, values: jax.Array) -> System:
    """The system with the values (k, *shape) at the places."""
    done = 0
    for place, index in places:
        count = len(index) or 1
        system = _write(system, place, index, values[done : done + count])
        done += count
    return system


def about(system: System, place: Place) -> Number:
    """The declaration of the field at a place: unit, sign, shape."""
    if place == INERTIAL:
        return Number(kind="inertial")
    if place in COM:
        return declared(Bodies)["com"]
    if place[:2] == ("joints", "numbers"):
        joint = next(j for j in system.topology.types if j.type_name() == place[2])
        return declared(type(joint)).get(str(place[3]), PLAIN)
    owner = _leaf(system, place[:-1])
    known = declared(type(owner)) if isinstance(owner, eqx.Module) else {}
    return known.get(str(place[-1]), PLAIN)


def shape_of(system: System, place: Place) -> tuple[int, ...]:
    """The shape of the array at a place; () for inertial parameters and entries of the com."""
    return () if place == INERTIAL or place in COM else _leaf(system, place).shape


def kind(system: System, place: Place) -> Any:
    """The class of the coupling, constraint or sensor at a place, and what it acts on.

    Empty for other places, and where the system has none.
    """
    group = getattr(system, str(place[0])) if place[0] in GROUPS else ()
    k = int(place[1]) if group else 0
    return jax.tree.structure(group[k : k + 1])


def _read(system: System, place: Place, index: tuple[int, ...]) -> jax.Array:
    if place == INERTIAL:
        b, at = system.bodies, np.array(index)
        six = to_six((b.inertia[at] + jnp.swapaxes(b.inertia[at], -1, -2)) / 2)
        return jnp.concatenate((b.mass[at, None], b.com[at], six), axis=-1)
    if place in COM:
        return system.bodies.com[np.array(index), COM[place]]
    array = _leaf(system, place)
    return array[np.array(index)] if index else array[None]


def _write(system: System, place: Place, index: tuple[int, ...], values: jax.Array) -> System:
    if place == INERTIAL:
        parts = values[:, 0], values[:, 1:4], from_six(values[:, 4:])
        for name, part in zip(BODY, parts, strict=True):
            system = _write(system, ("bodies", name), index, part)
        return system
    if place in COM:
        com = system.bodies.com.at[np.array(index), COM[place]].set(values)
        return eqx.tree_at(lambda s: s.bodies.com, system, com)
    new = _leaf(system, place).at[np.array(index)].set(values) if index else values[0]
    return eqx.tree_at(lambda s: _leaf(s, place), system, new)


def _leaf(system: System, place: Place) -> Any:
    value: Any = system
    for key in place:
        named = isinstance(key, str) and not isinstance(value, dict)
        value = getattr(value, str(key)) if named else value[key]
    return value
