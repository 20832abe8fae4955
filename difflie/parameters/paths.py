"""The numbers of a system by their paths.

The path of a number is "owner/leaf". The owner is a body, with a leaf of `system.bodies`; a joint,
with a leaf of `system.joints` or of a part at this joint (`Stribeck`, `Encoder`); or an actuator or
another sensor, with one of its numbers, "jet/lag", "jet/axis/direction" or "imu/bias". "gravity"
has no owner. Couplings and constraints are counted, "couplings/0/stiffness",
"constraints/1/first/position"; a coupling with a name has the path "balancer/stiffness", and the
counted one selects it, too. A shape has its own, "foot/radius"; "shapes/foot/radius" in any case,
and alone where another number has the first. A joint with several degrees of freedom has one
number for each, "ball/damping[2]". "body/inertial" is mass, centre of mass and inertia together.
Patterns are those of the shell, such as "arm*/damping"; only a pattern that ends in "/inertial"
selects that, and only one that ends in "/com_z" or "/I_xy" that entry of "body/com" or of
"body/inertia", which is about the centre of mass, in the axes of the body's frame. I_xy is the
entry of the matrix, and its mirror image with it. One entry alone may leave the inertias that rigid
bodies have; "body/inertia" does not. The components of all other values have paths, too, by their
names in `Parameters.names`: "gravity_z", "body/position_x", "balancer/path/points[0, 2]", with or
without the blank, and "joint/axis_turn_1", an angle from the direction that the system has.
Patterns skip the numbers of bodies without mass, such as the frame of a tool, which have no effect,
and of the sensors of robot files; their whole paths select these.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..forces.at_joint import AtJoint
from ..system.fields import PLAIN, Number, declared, number
from ..system.frozen import is_frozen
from ..system.joints import UNITS
from ..system.system import Bodies, Joints, System
from ..system.validation import format_value
from .pseudo_inertia import from_six, to_six
from .transforms import Definite, Direction, Identity, Transform


@dataclass(frozen=True)
class Component:
    """The last key of the place of one component of a value: its number in `Transform.labels`."""

    number: int


Place = tuple[str | int | Component, ...]
"""The attributes and indices that lead to an array, or one of the places below."""
Places = tuple[tuple[Place, tuple[int, ...]], ...]
"""Places, each with the indices in its array; none for all of it."""

# The mass, the centre of mass and the inertia of a body as one value (10,).
INERTIAL: Place = ("bodies", "inertial")
# Single numbers of the centre of mass.
COM: dict[Place, int] = {("bodies", f"com_{axis}"): k for k, axis in enumerate("xyz")}
# Single numbers of the inertia.
INERTIA: dict[Place, tuple[int, int]] = {
    ("bodies", f"I_{'xyz'[i]}{'xyz'[j]}"): (i, j) for i in range(3) for j in range(i, 3)
}
# What components of a value are, by its kind; of others they are its entries.
_COMPONENTS: dict[str, Transform] = {"direction": Direction(), "semidefinite": Definite()}
GROUPS = "couplings", "constraints", "sensors", "actuators"
BODY = tuple(f.name for f in fields(Bodies))


def read(system: System, places: Places, origin: System | None = None) -> jax.Array:
    """The values (k, *shape) at the places; origin: see `write`."""
    return _values(system, places, system if origin is None else origin)


@functools.partial(jax.jit, static_argnums=1)
def _values(system: System, places: Places, origin: System) -> jax.Array:
    return jnp.concatenate([_read(system, place, index, origin) for place, index in places])


def write(
    system: System, places: Places, values: jax.Array, origin: System | None = None
) -> System:
    """The system with the values (k, *shape) at the places.

    origin: the system from whose directions the angles of directions count, by default this one.
    """
    origin = system if origin is None else origin
    done = 0
    for place, index in places:
        count = len(index) or 1
        system = _write(system, place, index, values[done : done + count], origin)
        done += count
    return system


def about(system: System, place: Place) -> Number:
    """The declaration of the field at a place: unit, sign, shape."""
    if place == INERTIAL:
        return Number(kind="inertial")
    if place in COM:
        return declared(Bodies)["com"]
    if place in INERTIA:
        i, j = INERTIA[place]
        return number(unit="kg m^2", nonnegative=i == j)
    if isinstance(place[-1], Component):
        of = about(system, place[:-1])
        plain = replace(of, shape=(), kind="plain")
        return replace(plain, unit="rad") if of.kind == "direction" else plain
    if place[:2] == ("joints", "numbers"):
        joint = next(j for j in system.topology.types if j.type_name() == place[2])
        return declared(type(joint)).get(str(place[3]), PLAIN)
    owner = _leaf(system, place[:-1])
    known = declared(type(owner)) if isinstance(owner, eqx.Module) else {}
    return known.get(str(place[-1]), PLAIN)


def shape_of(system: System, place: Place) -> tuple[int, ...]:
    """The shape of the array at a place; () for inertial parameters and for single entries."""
    if isinstance(place[-1], Component):
        return shape_of(system, place[:-1])[:1] if place[0] in ("bodies", "joints") else ()
    single = place == INERTIAL or place in COM or place in INERTIA
    return () if single else _leaf(system, place).shape


def kind(system: System, place: Place) -> Any:
    """The class of the coupling, constraint or sensor at a place, and what it acts on.

    Empty for other places, and where the system has none.
    """
    group = getattr(system, str(place[0])) if place[0] in GROUPS else ()
    k = int(str(place[1])) if group else 0
    return jax.tree.structure(group[k : k + 1])


def _read(system: System, place: Place, index: tuple[int, ...], origin: System) -> jax.Array:
    if place == INERTIAL:
        b, at = system.bodies, np.array(index)
        six = to_six((b.inertia[at] + jnp.swapaxes(b.inertia[at], -1, -2)) / 2)
        return jnp.concatenate((b.mass[at, None], b.com[at], six), axis=-1)
    if place in COM:
        return system.bodies.com[np.array(index), COM[place]]
    if place in INERTIA:
        at, (i, j), inertia = np.array(index), INERTIA[place], system.bodies.inertia
        return (inertia[at, i, j] + inertia[at, j, i]) / 2
    if isinstance(last := place[-1], Component):
        return _components(system, place, index, origin)[:, last.number]
    array = _leaf(system, place)
    return array[np.array(index)] if index else array[None]


def _components(system: System, place: Place, index: tuple[int, ...], origin: System) -> jax.Array:
    """The components (k, size) of the whole values of which a place is one component."""
    values, starts = (_read(s, place[:-1], index, s) for s in (system, origin))
    return jax.vmap(_transform(system, place[:-1]).components)(values, starts)


def _transform(system: System, place: Place) -> Transform:
    """The transform that makes components of the values at a place."""
    return _COMPONENTS.get(about(system, place).kind, Identity())


def _write(
    system: System, place: Place, index: tuple[int, ...], values: jax.Array, origin: System
) -> System:
    if place == INERTIAL:
        parts = values[:, 0], values[:, 1:4], from_six(values[:, 4:])
        for name, part in zip(BODY, parts, strict=True):
            system = _write(system, ("bodies", name), index, part, origin)
        return system
    if place in COM:
        com = system.bodies.com.at[np.array(index), COM[place]].set(values)
        return eqx.tree_at(lambda s: s.bodies.com, system, com)
    if place in INERTIA:
        at, (i, j), inertia = np.array(index), INERTIA[place], system.bodies.inertia
        inertia = inertia.at[at, i, j].set(values).at[at, j, i].set(values)
        return eqx.tree_at(lambda s: s.bodies.inertia, system, inertia)
    if isinstance(last := place[-1], Component):
        components = _components(system, place, index, origin).at[:, last.number].set(values)
        starts = _read(origin, place[:-1], index, origin)
        whole = jax.vmap(_transform(system, place[:-1]).of_components)(components, starts)
        return _write(system, place[:-1], index, whole, origin)
    new = _leaf(system, place).at[np.array(index)].set(values) if index else values[0]
    return eqx.tree_at(lambda s: _leaf(s, place), system, new)


def _leaf(system: System, place: Place) -> Any:
    value: Any = system
    for key in place:
        named = isinstance(key, str) and not isinstance(value, dict)
        value = getattr(value, str(key)) if named else value[key]
    return value


# Comparing long names is slow.
_LONGEST = 200


@dataclass(frozen=True)
class Entry:
    """One value of a system: its array, the index in it (None for all of it), and its name.

    owner and leaf make its path; suffix is the index of the dof at a joint with several. alias: the
    path that it would have without the name of its coupling; "" for no other. components: the
    places of its components, where it has several that have paths.
    """

    place: Place
    index: int | None
    owner: str
    leaf: str
    suffix: str = ""
    alias: str = ""
    components: tuple[Place, ...] = ()

    @property
    def path(self) -> str:
        return named(self.owner, self.leaf) + self.suffix

    @property
    def parts(self) -> frozenset[tuple[Place, int | None]]:
        """The array entries that it consists of."""
        if self.place == INERTIAL:
            return frozenset((place, self.index) for place in (("bodies", "mass"), *COM, *INERTIA))
        return frozenset((place, self.index) for place in self.components or (self.place,))

    @property
    def is_component(self) -> bool:
        """Whether it is one component of a value that is an entry, too."""
        last = self.place[-1]
        return self.place in COM or self.place in INERTIA or isinstance(last, Component)

    def matches(self, pattern: str) -> bool:
        own = [self.path, named(self.owner, self.leaf), *([self.alias] if self.alias else [])]
        if pattern in own or pattern in (compact(path) for path in own):
            return True
        if not self.is_component and self.place != INERTIAL:
            return any(fnmatchcase(path, pattern) for path in own)
        # Brackets are of its name, not of a set of letters.
        for end in {"/" + path.rpartition("/")[2] for path in (*own, *map(compact, own))}:
            if pattern.endswith(end):
                owners = (path.rpartition("/")[0] for path in own)
                return any(fnmatchcase(owner, pattern[: -len(end)]) for owner in owners)
        return False


def is_angle(system: System, entry: Entry) -> bool:
    """Whether an entry is an angle by which a direction is turned from that of the system."""
    whole = entry.place[:-1]
    return isinstance(entry.place[-1], Component) and about(system, whole).kind == "direction"


def compact(path: str) -> str:
    """A path without the blanks in its indices, "points[0,0]"."""
    return path.replace(", ", ",")


def named(owner: str, label: str) -> str:
    """The path "owner/label"; the label alone without an owner."""
    return f"{owner}/{label}" if owner else label


def entries(system: System) -> list[Entry]:
    """Every value of the system on which a motion can depend: bodies first, then joints."""
    t = system.topology
    parts = {"com": tuple(COM), "inertia": tuple(INERTIA)}
    values = [
        Entry(("bodies", leaf), b, name, leaf, components=parts.get(leaf, ()))
        for b, name in enumerate(t.bodies)
        for leaf in (*BODY, "inertial", *(str(place[1]) for place in (*COM, *INERTIA)))
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
    shapes: list[tuple[Place, str]] = []
    for group in GROUPS:
        for keys, _ in jax.tree_util.tree_leaves_with_path(getattr(system, group)):
            place = tuple(_key(k) for k in keys)
            of: Any = getattr(system, group)[place[0]]
            leaf, inner = str(place[-1]), [str(p) for p in place[1:-1] if p != "quantity"]
            owner = "/".join(map(str, (group, *place[:-1])))
            if isinstance(of, AtJoint):
                owner = of.joint
            elif hasattr(of, "label"):
                owner = "/".join((of.label, *inner))
            if "geometry" in place[1:-2]:
                shapes.append(((group, *place), str(place[2])))
                continue
            name, alias = getattr(of, "name", None) if group == "couplings" else None, ""
            if name is not None:
                owner, alias = "/".join((name, *inner)), named(owner, leaf)
            values.append(Entry((group, *place), None, owner, leaf, alias=alias))
    for keys, _ in jax.tree_util.tree_leaves_with_path(system.idle_shapes):
        place = tuple(_key(k) for k in keys)
        shapes.append((("idle_shapes", *place), str(place[0])))
    known = {entry.path for entry in values}
    return _with_components(system, [*values, *(_of_shape(*each, known) for each in shapes)])


def _of_shape(place: Place, name: str, known: set[str]) -> Entry:
    """The entry of a number of a shape; known: the paths of others."""
    leaf, full = str(place[-1]), f"shapes/{name}"
    if named(name, leaf) in known:
        return Entry(place, None, full, leaf)
    return Entry(place, None, name, leaf, alias=named(full, leaf))


def _with_components(system: System, values: Sequence[Entry]) -> list[Entry]:
    """The entries, and one for each component of those that have several."""
    known, found = {entry.path for entry in values}, []
    labels: dict[Place, tuple[str, ...]] = {}
    for entry in values:
        place = entry.place
        if place not in labels:
            shape = shape_of(system, place)[0 if entry.index is None else 1 :]
            own = place[0] != "bodies" and shape
            labels[place] = _transform(system, place).labels(entry.leaf, shape) if own else ()
        places = [(*place, Component(k)) for k in range(len(labels[place]))]
        found.append(replace(entry, components=tuple(places)) if places else entry)
        for part, label in zip(places, labels[place], strict=True):
            alias = entry.alias[: -len(entry.leaf)] + label if entry.alias else ""
            one = replace(entry, place=part, leaf=label, alias=alias)
            found += [] if one.path in known else [one]
    return found


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
    """The entries whose paths match the pattern, without those of which `_counts` says so.

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
        paths = [path for entry in known for path in (entry.path, entry.alias) if path]
        near = difflib.get_close_matches(pattern[:_LONGEST], paths, 1, cutoff=0)
        raise ValueError(
            f"{system.name}: no parameter matches {format_value(pattern)}; the nearest is "
            f"{near[0]!r}"
        )
    if any(pattern in (e.path, named(e.owner, e.leaf)) for e in matching):
        # The path of one number is not another's by its joint, if that has a name of its own.
        matching = [e for e in matching if e.alias != pattern]
    return [e for e in matching if e.path == pattern or _counts(system, e)] or matching


def _counts(system: System, entry: Entry) -> bool:
    """Whether patterns select a number: not one of a body without mass, but for its inertia.

    Nor one of a sensor of a robot file, which nothing is compared with unless it is asked for, nor
    of a shape that touches nothing. All other numbers of a traced system are selected.
    """
    if entry.place[0] == "idle_shapes":
        return False
    if entry.place[0] == "sensors":
        sensor: Any = system.sensors[int(str(entry.place[1]))]
        return not getattr(sensor, "from_file", False)
    b, k = system.bodies, entry.index
    if entry.place[0] != "bodies" or any(isinstance(a, Tracer) for a in (b.mass, b.inertia)):
        return True
    if np.asarray(b.mass)[k] != 0:
        return True
    turning = entry.leaf == "inertia" or entry.place in INERTIA
    return turning and bool(np.any(np.asarray(b.inertia)[k]))


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
    if entry.place[0] == "sensors" and entry.place[2] == "bias":
        sensor: Any = system.sensors[int(str(entry.place[1]))]
        return sensor.unit(system)
    t, declared = system.topology, about(system, entry.place).unit
    angular, _, linear = declared.partition(" or ")
    joint = entry.alias.rpartition("/")[0] or entry.owner
    if not linear or joint not in t.joints:
        return declared
    units = [UNITS[kind] for kind in t.kinds[t.joints.index(joint)]]
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
