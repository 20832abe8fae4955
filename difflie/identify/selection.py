"""The numbers of a system by their paths.

The path of a number is "owner/leaf": the name of a body and a leaf of `system.bodies`, the name of
a joint and one of `system.joints` or of what stands at it (`Stribeck`, `Encoder`), the name of an
actuator and one of its numbers, or "gravity". Other couplings and constraints have no names and
are counted: "couplings/0/stiffness", "constraints/1/first/position". A joint with several degrees
of freedom has one number for each, "ball/damping[2]". "body/inertial" is its mass, its centre of
mass and its inertia together.
Patterns are those of the shell, such as "arm*/damping"; only a pattern that ends in "/inertial"
selects that, and only one that ends in "/com_z" that number of "body/com".
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..forces.actuators import Actuator
from ..forces.at_joint import AtJoint
from ..system.fields import PLAIN, Number, declared
from ..system.system import Bodies, Joints, System
from .pseudo_inertia import from_six, to_six

Place = tuple[str | int, ...]
Places = tuple[tuple[Place, tuple[int, ...]], ...]
INERTIAL: Place = ("bodies", "inertial")
# Single numbers of the centre of mass.
_COM: dict[Place, int] = {("bodies", f"com_{axis}"): k for k, axis in enumerate("xyz")}
_GROUPS = "couplings", "constraints", "sensors", "actuators"
_BODY = tuple(f.name for f in fields(Bodies))


@dataclass(frozen=True)
class Entry:
    """One value of a system: its array, the index in this (None for all of it), and its name.

    owner and leaf make its path; suffix counts the degrees of freedom of a joint with several.
    """

    place: Place
    index: int | None
    owner: str
    leaf: str
    suffix: str = ""

    @property
    def path(self) -> str:
        return named(self.owner, self.leaf) + self.suffix

    @property
    def parts(self) -> frozenset[tuple[Place, int | None]]:
        """What of the system it consists of."""
        if self.place == INERTIAL:
            others = (("bodies", name) for name in _BODY if name != "com")
            return frozenset((place, self.index) for place in (*others, *_COM))
        if self.place == ("bodies", "com"):
            return frozenset((place, self.index) for place in _COM)
        return frozenset({(self.place, self.index)})

    def matches(self, pattern: str) -> bool:
        part = self.place == INERTIAL or self.place in _COM
        if part and not pattern.endswith("/" + self.leaf):
            return False
        paths = self.path, named(self.owner, self.leaf)
        return pattern in paths or any(fnmatchcase(path, pattern) for path in paths)


def named(owner: str, label: str) -> str:
    """The path of a label of an owner; what has no owner is its label."""
    return f"{owner}/{label}" if owner else label


def entries(system: System) -> list[Entry]:
    """Every value of the system that a motion can depend on, body by body, then joint by joint."""
    t = system.topology
    found = [
        Entry(("bodies", leaf), b, name, leaf)
        for b, name in enumerate(t.bodies)
        for leaf in (*_BODY, "inertial", *(str(place[1]) for place in _COM))
    ]
    for b, name in enumerate(t.joints):
        found += [Entry(("joints", leaf), b, name, leaf) for leaf in ("position", "rotation")]
    for leaf in (f.name for f in fields(Joints)):
        if leaf not in ("position", "rotation", "multiplier", "offset", "numbers"):
            found += _rows(system, leaf)
    for b, joint in enumerate(t.types):
        for leaf in system.joints.numbers.get(joint.type_name(), {}):
            place = ("joints", "numbers", joint.type_name(), leaf)
            found.append(Entry(place, int(t.place_in_type[b]), t.joints[b], leaf))
    for leaf in ("multiplier", "offset"):
        for i, row in enumerate(t.mimic_dofs):
            found.append(Entry(("joints", leaf), i, t.joints[t.dof_body[row]], leaf))
    found.append(Entry(("gravity",), None, "", "gravity"))
    for group in _GROUPS:
        for keys, _ in jax.tree_util.tree_leaves_with_path(getattr(system, group)):
            place = tuple(k.name if hasattr(k, "name") else k.idx for k in keys)
            of = getattr(system, group)[place[0]]
            owner = "/".join(map(str, (group, *place[:-1])))
            if isinstance(of, AtJoint):
                owner = of.joint
            elif isinstance(of, Actuator):
                owner = of.label
            found.append(Entry((group, *place), None, owner, str(place[-1])))
    return found


def _rows(system: System, leaf: str) -> list[Entry]:
    """The entries of a leaf with one value for each degree of freedom, where it is of use."""
    t = system.topology
    found = []
    for row, b in enumerate(t.dof_body):
        i, count = row - int(t.dof_start[b]), len(t.kinds[b])
        if leaf == "axis" and not t.types[b].in_series:
            continue
        if leaf in ("stiffness", "rest") and not t.manifolds[b].plain:
            continue
        if leaf == "pitch" and not (t.types[b].in_series and t.kinds[b][i] == "helical"):
            continue
        suffix = f"[{i}]" if count > 1 else ""
        found.append(Entry(("joints", leaf), row, t.joints[b], leaf, suffix))
    return found


def select(system: System, pattern: str) -> list[Entry]:
    """The entries whose paths match the pattern.

    Raises ValueError, with the nearest path, if there are none.
    """
    known = entries(system)
    found = [entry for entry in known if entry.matches(pattern)]
    if not found:
        near = difflib.get_close_matches(pattern, [entry.path for entry in known], 1, cutoff=0)
        raise ValueError(
            f"{system.name}: no parameter matches {pattern!r}; the nearest is {near[0]!r}"
        )
    return found


def alike(system: System, selected: Sequence[Entry]) -> list[list[Entry]]:
    """The entries by leaf, meaning and shape, in their order: those of each go on one stack."""
    groups: dict[Any, list[Entry]] = {}
    for entry in selected:
        virtual = entry.place == INERTIAL or entry.place in _COM
        shape = () if virtual else _leaf(system, entry.place).shape
        rank = 0 if entry.index is None else 1
        meaning = about(system, entry.place)
        bounds = max(meaning.least, 0.0) if meaning.positive else meaning.least, meaning.most
        groups.setdefault((entry.leaf, shape[rank:], meaning.kind, bounds), []).append(entry)
    return list(groups.values())


def places(group: Sequence[Entry]) -> Places:
    """Where the values of a group of `alike` entries are."""
    found: dict[Place, list[int]] = {}
    for entry in group:
        found.setdefault(entry.place, []).extend([] if entry.index is None else [entry.index])
    return tuple((place, tuple(index)) for place, index in found.items())


def read(system: System, places: Places) -> jax.Array:
    """The values (k, *shape) at the places."""
    return jnp.concatenate([_read(system, place, index) for place, index in places])


def write(system: System, places: Places, values: jax.Array) -> System:
    """The system with other values (k, *shape) there."""
    done = 0
    for place, index in places:
        count = len(index) or 1
        system = _write(system, place, index, values[done : done + count])
        done += count
    return system


def about(system: System, place: Place) -> Number:
    """What the values at a place are declared to be."""
    if place == INERTIAL:
        return Number(kind="inertial")
    if place in _COM:
        return declared(Bodies)["com"]
    owner = _leaf(system, place[:-1])
    known = declared(type(owner)) if isinstance(owner, eqx.Module) else {}
    return known.get(str(place[-1]), PLAIN)


def kind(system: System, place: Place) -> Any:
    """What the coupling, constraint or sensor at a place is: its class, and what it acts on.

    Empty for other places, and where the system has none there.
    """
    group = getattr(system, str(place[0])) if place[0] in _GROUPS else ()
    k = int(place[1]) if group else 0
    return jax.tree.structure(group[k : k + 1])


def _read(system: System, place: Place, index: tuple[int, ...]) -> jax.Array:
    if place == INERTIAL:
        b, at = system.bodies, np.array(index)
        six = to_six((b.inertia[at] + jnp.swapaxes(b.inertia[at], -1, -2)) / 2)
        return jnp.concatenate((b.mass[at, None], b.com[at], six), axis=-1)
    if place in _COM:
        return system.bodies.com[np.array(index), _COM[place]]
    array = _leaf(system, place)
    return array[np.array(index)] if index else array[None]


def _write(system: System, place: Place, index: tuple[int, ...], values: jax.Array) -> System:
    if place == INERTIAL:
        parts = values[:, 0], values[:, 1:4], from_six(values[:, 4:])
        for name, part in zip(_BODY, parts, strict=True):
            system = _write(system, ("bodies", name), index, part)
        return system
    if place in _COM:
        com = system.bodies.com.at[np.array(index), _COM[place]].set(values)
        return eqx.tree_at(lambda s: s.bodies.com, system, com)
    new = _leaf(system, place).at[np.array(index)].set(values) if index else values[0]
    return eqx.tree_at(lambda s: _leaf(s, place), system, new)


def _leaf(system: System, place: Place) -> Any:
    value: Any = system
    for key in place:
        named = isinstance(key, str) and not isinstance(value, dict)
        value = getattr(value, str(key)) if named else value[key]
    return value
