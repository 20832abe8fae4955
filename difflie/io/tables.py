"""Tables of a file as dataclasses and modules: a table is a class, a key one of its fields.

The allowed values and the default of a key are declared at the field; see `kinds.py`. Conditions on
several values are declared in the class, too: `conditions` are functions of its fields, by their
names, and of the `folders` of `Faults`, which yield faults. A module reports them by its method
`problems`.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, astuple, dataclass, field
from pathlib import Path
from typing import Annotated, Any

from .. import collision
from ..collision import Shape
from ..deprecated import TYPES, type_of
from ..forces.actuators.actuator import Axis, as_axis
from ..forces.path import as_path
from ..system.fields import Number, number
from ..system.frame import Frame
from ..system.validation import ModelError, closest, format_value, nearest
from .kinds import STRING, Kind, kind_of, list_of
from .toml import ConfigError as ConfigError
from .toml import Faults

_Point = Annotated[list[float], number(unit="m", shape=(3,))]


@dataclass(frozen=True, kw_only=True)
class PointTable:
    """{body = "NAME", point = [x, y, z]}: a point (m) in the frame of a body, or of the world."""

    body: str | None = None
    point: _Point


@dataclass(frozen=True)
class FrameTable:
    """{body = "NAME", position = [x, y, z], axis = [x, y, z]}: a frame on a body or the world.

    position in m; axis: the direction of its z axis, of any length, or in its place rotation, a
    rotation vector in rad. See `difflie.Frame`.
    """

    body: str | None = None
    position: _Point = field(default_factory=lambda: [0.0, 0.0, 0.0])
    rotation: Annotated[list[float], number(unit="rad", shape=(3,))] | None = None
    axis: Annotated[list[float], number(shape=(3,))] | None = None


# By the type or converter of a field: the table for its values, and the function that reads it.
STANDS_FOR: dict[Any, tuple[Any, Callable[[Any], Any]]] = {
    Frame: (FrameTable, lambda table: Frame(*astuple(table))),
    as_path: (list[PointTable], lambda points: as_path([(p.body, p.point) for p in points])),
    as_axis: (Axis, as_axis),
}

SHAPES: dict[str, type[Shape]] = {
    name: cls
    for name, cls in vars(collision).items()
    if isinstance(cls, type) and issubclass(cls, Shape) and cls is not Shape
}


@dataclass(frozen=True, kw_only=True)
class Inline(Kind):
    """A table inside a table, or a list of tables, converted from instances of a class."""

    cls: type
    made: Callable[[Any], Any] = lambda read: read

    def inside(self, value: Any, where: str, faults: Faults) -> Any:
        before = len(faults)
        if isinstance(value, dict):
            found = read(self.cls, value, where, faults)
        else:
            found = [read(self.cls, v, f"{where}[{i}]", faults) for i, v in enumerate(value)]
        with faults.caught(where, ModelError):
            return self.made(found) if len(faults) == before else None


@dataclass(frozen=True, kw_only=True)
class InlineEntries(Inline):
    """A table with names of the user's as keys, and an inner table for each."""

    def inside(self, value: Any, where: str, faults: Faults) -> dict[str, Any]:
        found = {}
        for name, inner in value.items():
            place = f"{where}.{format_value(name)[1:-1]}"
            if isinstance(inner, dict):
                found[name] = super().inside(inner, place, faults)
            else:
                faults.add(f"{place} is {format_value(inner)}; it must be {self.one}")
        return found


@dataclass(frozen=True, kw_only=True)
class TypedInline(Inline):
    """A table inside a table, whose key `type` names its class: a shape."""

    def inside(self, value: Any, where: str, faults: Faults) -> Any:
        return read_typed(SHAPES, value, where, "shape", faults)


@dataclass(frozen=True)
class Key:
    """A key of a table: its field, whether it is required, and its kind of value."""

    field: str
    needed: bool
    kind: Kind


@functools.cache
def keys_of(cls: type) -> dict[str, Key]:
    """The keys of a table that describes an instance of a dataclass or module.

    A field with another key has it in its metadata, as "key". Raises `ConfigError` for a class with
    a required field that a file cannot hold.
    """
    keys = {}
    for f in dataclasses.fields(cls):
        needed = f.default is MISSING and f.default_factory is MISSING
        kind = value_kind(cls, f)
        if f.init and kind is not None:
            keys[f.metadata.get("key", f.name)] = Key(f.name, needed, kind)
        elif f.init and needed:
            hint = f.type if isinstance(f.type, str) else inspect.formatannotation(f.type)
            raise ConfigError(
                f"{cls.__name__}: a file cannot say its field {f.name!r} of the type {hint}; give "
                "it a default, or a converter dl.number()"
            )
    return keys


def describable(cls: Any) -> bool:
    """Whether a table can describe instances of a class."""
    if not dataclasses.is_dataclass(cls) or inspect.isabstract(cls):
        return False
    try:
        keys_of(typing.cast(type, cls))
    except ConfigError:
        return False
    return True


def value_kind(cls: type, f: dataclasses.Field) -> Kind | None:
    """The kind of the values of a field; None where a file cannot hold them."""
    hint, converter = f.type, f.metadata.get("converter")
    if isinstance(hint, str):
        home = next(c for c in cls.__mro__ if f.name in inspect.get_annotations(c))
        try:
            hint = eval(hint, vars(sys.modules[home.__module__]))
        except (NameError, AttributeError, TypeError):
            hint = None  # a name that is imported for type checkers only
    if isinstance(converter, Number):
        hint = Annotated[hint, converter]
    plain = kind_of(hint)
    if plain is not None:
        return plain
    if typing.get_origin(hint) is Annotated:
        hint = typing.get_args(hint)[1]
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        hint, *others = (h for h in typing.get_args(hint) if h is not types.NoneType)
        hint = None if others else hint
    named = typing.get_origin(hint) is dict
    hint = typing.get_args(hint)[1] if named else hint
    if hint is Shape:
        words = "a table {type = ..., frame = ...}", "tables {type = ..., frame = ...}"
        return TypedInline(*words, lambda v: isinstance(v, dict), cls=Shape)
    hint, made = STANDS_FOR.get(converter, STANDS_FOR.get(hint, (hint, lambda read: read)))
    many = typing.get_origin(hint) in (list, tuple)
    cls = typing.get_args(hint)[0] if many else hint
    return (
        _inline(cls, many, made, InlineEntries if named else Inline) if describable(cls) else None
    )


def _inline(
    cls: type, many: bool, made: Callable[[Any], Any], inline: type[Inline] = Inline
) -> Inline:
    words = f"{{{', '.join(f'{name} = ...' for name in keys_of(cls))}}}"
    kind = Kind(f"a table {words}", f"tables {words}", lambda v: isinstance(v, dict))
    kind = list_of(kind) if many else kind
    return inline(kind.one, kind.many, kind.fits, cls=cls, made=made)


def read(cls: type, given: dict[str, Any], where: str, faults: Faults, title: str = "") -> Any:
    """An instance of a dataclass or module from a table; None if the table has faults.

    where: the path of the table, with which the names of its keys begin; title: its name in
    messages on unknown and missing keys. Reports unknown keys, with the nearest known one, missing
    keys, values that do not suit their fields, and errors of the class itself.
    """
    before, values, made = len(faults), {}, None
    with faults.caught(where, ConfigError):
        values, wrong = read_keys(keys_of(cls), given, where, faults, title)
        _check_conditions(cls, values, wrong, f"{where}.", faults)
    with faults.caught(where, ValueError, TypeError):
        made = cls(**values) if len(faults) == before else None
    faults.add(*(f"{where}: {fault}" for fault in getattr(made, "problems", list)()))
    return made


def read_keys(
    keys: dict[str, Key], given: dict[str, Any], where: str, faults: Faults, title: str = ""
) -> tuple[dict[str, Any], set[str]]:
    """The values of keys, by field name, and the names of the fields that have faults."""
    title = title or where
    meant = add_unknown_keys(
        given, keys, lambda name: f"{title} has no key {format_value(name)}", faults
    )
    values, wrong = {}, set()
    for name, key in keys.items():
        before = len(faults)
        if name in given:
            values[key.field] = key.kind.read(given[name], f"{where}.{name}", faults)
        elif key.needed and name not in meant:
            faults.add(f"{title} lacks the key {format_value(name)}")
        if len(faults) > before or name in meant:
            wrong.add(key.field)
    return values, wrong


def add_unknown_keys(
    given: Iterable[str], known: Iterable[str], said: Callable[[str], str], faults: Faults
) -> set[str]:
    """Tells names that are not known, with the nearest known one; returns these."""
    unknown = [name for name in given if name not in known]
    faults.add(*(f"{said(name)}{nearest(name, known)}" for name in unknown))
    return {near for near in (closest(name, known) for name in unknown) if near}


def _check_conditions(
    cls: type, values: dict[str, Any], wrong: set[str], where: str, faults: Faults
) -> None:
    """Reports faults of several values together, except where one alone has faults."""
    conditions = getattr(cls, "conditions", ())
    made = cls(**{**dict.fromkeys(wrong), **values}) if conditions else None
    for condition in conditions:
        names = inspect.signature(condition).parameters
        if wrong.isdisjoint(names):
            given = {"folders": faults.folders, **vars(made)}
            faults.add(*(f"{where}{fault}" for fault in condition(*(given[n] for n in names))))


def rows_of(tables: dict[str, Any], name: str, faults: Faults) -> list[dict[str, Any]]:
    """The tables [[name]] among those of a file; reports anything else under this name."""
    rows = tables.get(name, [])
    if isinstance(rows, list) and all(isinstance(row, dict) for row in rows):
        return rows
    faults.add(f"{name} must be a list of tables: write [[{name}]]")
    return []


def rows_by_place(tables: dict[str, Any], name: str, faults: Faults) -> dict[str, dict[str, Any]]:
    """The tables [[name]] by "name[0]" and so on; reports as `rows_of`.

    One whose `joint` is a list of names stands for one of each, "name[0] (elbow)".
    """
    found = {}
    for i, row in enumerate(rows_of(tables, name, faults)):
        joints = row.get("joint")
        if isinstance(joints, list) and joints and all(isinstance(j, str) for j in joints):
            found |= {f"{name}[{i}] ({joint})": {**row, "joint": joint} for joint in joints}
        else:
            found[f"{name}[{i}]"] = row
    return found


def typed_rows(
    tables: dict[str, Any], name: str, types: Mapping[str, type], what: str, faults: Faults
) -> list[Any]:
    """The instances that the tables [[name]] describe, see `read_typed`."""
    rows = enumerate(rows_of(tables, name, faults))
    return [read_typed(types, row, f"{name}[{i}]", what, faults) for i, row in rows]


def read_typed(
    types: Mapping[str, type], given: dict[str, Any], where: str, what: str, faults: Faults
) -> Any:
    """An instance of the class that the key `type` names, its fields the other keys.

    what: such things in messages. Reports an unknown type, with the nearest known one, and as
    `read` does; None if the table has faults.
    """
    if "type" not in given:
        return faults.add(f"{where} lacks the key 'type': one of {', '.join(types)}")
    rest = {key: value for key, value in given.items() if key != "type"}
    kind = STRING.read(given["type"], f"{where}.type", faults)
    if kind not in types and TYPES.get(kind or "") in types:
        kind = type_of(kind)
    if kind in types:
        return read(types[kind], rest, where, faults, f"{where}: {kind}")
    if kind is not None:
        hint = nearest(kind.title(), types) or f"; known are {', '.join(types)}"
        faults.add(f"{where}: there is no type {format_value(kind)} of {what}{hint}")
    return None


def read_file(
    cls: type, tables: dict[str, Any], faults: Faults, others: Iterable[str], **parts: Any
) -> Any:
    """A whole file as an instance of a class, whose fields are tables [name] and lists [[name]].

    Those with a default may be left out. parts: fields that are read elsewhere; others: the names
    of their tables. Raises the error of `faults` with all faults: those reported before, unknown
    tables (with the nearest one), and those of the known tables.
    """
    fields = [f for f in dataclasses.fields(cls) if f.name not in parts]
    kinds = {f.name: value_kind(cls, f) for f in fields}
    needed = {f.name for f in fields if f.default is MISSING and f.default_factory is MISSING}
    known = [*kinds, *others]
    meant = add_unknown_keys(tables, known, lambda name: f"there is no table [{name}]", faults)
    wrong = meant & kinds.keys()
    for name, kind in kinds.items():
        before = len(faults)
        if name in tables or (name in needed and name not in wrong):
            parts[name] = _part(typing.cast(Inline, kind), tables, name, faults)
        if len(faults) > before:
            wrong.add(name)
    _check_conditions(cls, parts, wrong, "", faults)
    faults.end()
    return cls(**parts)


def _part(kind: Inline, tables: dict[str, Any], name: str, faults: Faults) -> Any:
    """The instance for a table [name], or those for [[name]], at least one."""
    if kind.fits([]):
        rows = enumerate(rows_of(tables, name, faults))
        made = [read(kind.cls, row, f"{name}[{i}]", faults, f"[{name}[{i}]]") for i, row in rows]
        if tables.get(name, []) == []:
            faults.add(f"there is no [[{name}]]; give one or more")
        return made
    table = tables.get(name, {})
    if isinstance(table, dict):
        return read(kind.cls, table, name, faults, f"[{name}]")
    faults.add(f"{name} must be a table: write [{name}]")
    return None


def instance(cls: type, given: dict[str, Any], path: Path, name: str) -> Any:
    """As `read`, of one table [name] of the file at a path; raises `ConfigError`."""
    faults = Faults(path)
    made = read(cls, given, name, faults, f"[{name}]")
    faults.end()
    return made
