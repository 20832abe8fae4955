"""The numbers of a system by their paths.

The path of a number is "owner/leaf". The owner is a body, with a leaf of `system.bodies`; a joint,
with a leaf of `system.joints` or of a part at this joint (`Stribeck`, `Encoder`); or an actuator or
another sensor, with one of its numbers, "jet/lag", "jet/axis/direction" or "imu/bias". "gravity"
has no owner. Other couplings and constraints have no names and are counted:
"couplings/0/stiffness", "constraints/1/first/position". A joint with several degrees of freedom has
one number for each, "ball/damping[2]". "body/inertial" is mass, centre of mass and inertia
together. Patterns are those of the shell, such as "arm*/damping"; only a pattern that ends in
"/inertial" selects that, and only one that ends in "/com_z" that entry of "body/com". Patterns skip
the numbers of bodies without mass, such as the frame of a tool, which have no effect; their whole
paths select these.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from ..forces.at_joint import AtJoint
from ..system.frozen import is_frozen
from ..system.joints import UNITS
from ..system.system import Joints, System
from ..system.validation import format_value
from .places import BODY, COM, GROUPS, INERTIAL, Place, Places, about, shape_of

# Comparing long names is slow.
_LONGEST = 200


@dataclass(frozen=True)
class Entry:
    """One value of a system: its array, the index in it (None for all of it), and its name.

    owner and leaf make its path; suffix is the index of the dof at a joint with several.
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
        """The array entries that it consists of."""
        if self.place == INERTIAL:
            others = (("bodies", name) for name in BODY if name != "com")
            return frozenset((place, self.index) for place in (*others, *COM))
        if self.place == ("bodies", "com"):
            return frozenset((place, self.index) for place in COM)
        return frozenset({(self.place, self.index)})

    def matches(self, pattern: str) -> bool:
        part = self.place == INERTIAL or self.place in COM
        if part and not pattern.endswith("/" + self.leaf):
            return False
        paths = self.path, named(self.owner, self.leaf)
        return pattern in paths or any(fnmatchcase(path, pattern) for path in paths)


def named(owner: str, label: str) -> str:
    """The path "owner/label"; the label alone without an owner."""
    return f"{owner}/{label}" if owner else label


def entries(system: System) -> list[Entry]:
    """Every value of the system on which a motion can depend: bodies first, then joints."""
    t = system.topology
    values = [
        Entry(("bodies", leaf), b, name, leaf)
        for b, name in enumerate(t.bodies)
        for leaf in (*BODY, "inertial", *(str(place[1]) for place in COM))
    ]
    for b, name in enumerate(t.joints):
        values += [Entry(("joints", leaf), b, name, leaf) for leaf in ("position", "rotation")]
    for leaf in (f.name for f in fields(Joints)):
        if leaf not in ("position", "rotation", "multiplier", "offset", "numbers"):
            values += _of_dofs(system, leaf)
    for b, joint in enumerate(t.types):
        for leaf in system.joints.numbers.get(joint.type_name(), {}):
            place = ("joints", "numbers", joint.type_name(), leaf)
            values.append(Entry(place, int(t.place_in_type[b]), t.joints[b], leaf))
    for leaf in ("multiplier", "offset"):
        for i, dof in enumerate(t.mimic_dofs):
            values.append(Entry(("joints", leaf), i, t.joints[t.dof_body[dof]], leaf))
    values.append(Entry(("gravity",), None, "", "gravity"))
    for group in GROUPS:
        for keys, _ in jax.tree_util.tree_leaves_with_path(getattr(system, group)):
            place = tuple(_key(k) for k in keys)
            of = getattr(system, group)[place[0]]
            owner = "/".join(map(str, (group, *place[:-1])))
            if isinstance(of, AtJoint):
                owner = of.joint
            elif hasattr(of, "label"):
                inner = (name for name in place[1:-1] if name != "quantity")
                owner = "/".join(map(str, (of.label, *inner)))
            values.append(Entry((group, *place), None, owner, str(place[-1])))
    return values


def _key(key: Any) -> str | int:
    """The attribute, index or key that leads one step into a pytree."""
    return next(getattr(key, kind) for kind in ("name", "idx", "key") if hasattr(key, kind))


def _of_dofs(system: System, leaf: str) -> list[Entry]:
    """The entries of a leaf with one value per degree of freedom, where it has an effect."""
    t = system.topology
    values = []
    for dof, b in enumerate(t.dof_body):
        i, count = dof - int(t.dof_start[b]), len(t.kinds[b])
        if leaf == "axis" and not t.types[b].in_series:
            continue
        if leaf in ("stiffness", "spring_reference") and not t.manifolds[b].plain:
            continue
        if leaf == "pitch" and not (t.types[b].in_series and t.kinds[b][i] == "helical"):
            continue
        suffix = f"[{i}]" if count > 1 else ""
        values.append(Entry(("joints", leaf), dof, t.joints[b], leaf, suffix))
    return values


def select(system: System, pattern: str) -> list[Entry]:
    """The entries whose paths match the pattern, without those of bodies without mass.

    These are selected by their whole path, and where nothing else matches. Raises ValueError, with
    the nearest path, if there are none, and for a frozen system.
    """
    if is_frozen(system):
        raise ValueError(
            f"{system.name}: {format_value(pattern)} selects numbers of a frozen system, which are "
            "constants; use the system before frozen()"
        )
    known = entries(system)
    matching = [entry for entry in known if entry.matches(pattern)]
    if not matching:
        paths = [entry.path for entry in known]
        near = difflib.get_close_matches(pattern[:_LONGEST], paths, 1, cutoff=0)
        raise ValueError(
            f"{system.name}: no parameter matches {format_value(pattern)}; the nearest is "
            f"{near[0]!r}"
        )
    return [e for e in matching if e.path == pattern or _counts(system, e)] or matching


def _counts(system: System, entry: Entry) -> bool:
    """Whether a number can have an effect: not one of a body without mass, but for its inertia.

    All numbers of a traced system can.
    """
    b, k = system.bodies, entry.index
    if entry.place[0] != "bodies" or any(isinstance(a, Tracer) for a in (b.mass, b.inertia)):
        return True
    if np.asarray(b.mass)[k] != 0:
        return True
    return entry.leaf == "inertia" and bool(np.any(np.asarray(b.inertia)[k]))


def alike(system: System, selected: Sequence[Entry]) -> list[list[Entry]]:
    """The entries grouped by leaf, meaning and shape, in their order: each group is one stack."""
    groups: dict[Any, list[Entry]] = {}
    for entry in selected:
        groups.setdefault((entry.leaf, meaning(system, entry)), []).append(entry)
    return list(groups.values())


def meaning(system: System, entry: Entry) -> tuple[Any, ...]:
    """The shape, kind and bounds of a value, as its field declares them."""
    shape = shape_of(system, entry.place)
    rank = 0 if entry.index is None else 1
    of = about(system, entry.place)
    bounds = max(of.least, 0.0) if of.positive else of.least, of.most
    return shape[rank:], of.kind, bounds


def unit(system: System, entry: Entry) -> str:
    """The SI unit of an entry, as its field declares it, "" for none.

    Of "N m or N", for angles or lengths, the one that the joint type implies.
    """
    if entry.place[0] == "sensors" and entry.leaf == "bias":
        sensor: Any = system.sensors[int(entry.place[1])]
        return sensor.unit(system)
    t, declared = system.topology, about(system, entry.place).unit
    angular, _, linear = declared.partition(" or ")
    if not linear or entry.owner not in t.joints:
        return declared
    units = [UNITS[kind] for kind in t.kinds[t.joints.index(entry.owner)]]
    meant = {units[int(entry.suffix[1:-1])]} if entry.suffix else set(units)
    if len(meant) != 1:
        return declared
    return angular if "rad" in meant else linear


def places_of(group: Sequence[Entry]) -> Places:
    """The places of the values of a group of entries that are `alike`."""
    found: list[tuple[Place, list[int]]] = []
    # In their order, which links names and values; a place may occur again.
    for entry in group:
        if entry.index is None or not found or found[-1][0] != entry.place:
            found.append((entry.place, []))
        found[-1][1].extend([] if entry.index is None else [entry.index])
    return tuple((place, tuple(index)) for place, index in found)
