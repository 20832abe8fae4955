"""Constraints described in TOML: what closes the loops of a robot whose file describes a tree.

    [[constraint]]                    # one such table for each
    type = "SphericalConstraint"                # a class of difflie.constraints
    first = {body = "rod", position = [0.3, 0.0, 0.0]}        # m; the rest as of `Frame`:
    second = {position = [1.0, 0.0, 0.2], axis = [0, 1, 0]}   # axis or rotation (rad); the world

    [[constraint]]
    type = "Polynomial"
    driven = "left_finger"
    driver = "right_finger"
    coefficients = [0.0, -1.0]

The keys are the arguments of the class: frames are tables, the rest numbers and names.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax.numpy as jnp

from .. import constraints
from ..constraints import Constraint, Frame, Friction, constrain
from ..system import ModelError, System
from ..system.validation import nearest, shown
from .files import existing
from .tables import ConfigError, read_tables

_FRICTION = ("coefficient", "velocity")
_FRAME = ("body", "position", "rotation", "axis")
# What a key must be, by the annotation of the argument.
_NUMBERS = ("a number, or a list of numbers", lambda v: _is_numbers(v))
_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "Frame": (
        'a frame {body = "NAME", position = [x, y, z], axis = [x, y, z]}, with rotation in place '
        "of axis, of the world without body",
        lambda v: isinstance(v, dict),
    ),
    "str": ("a string", lambda v: isinstance(v, str)),
    "str | None": ("a string", lambda v: isinstance(v, str)),
    "Sequence[str]": (
        "a list of strings",
        lambda v: isinstance(v, list) and all(isinstance(x, str) for x in v),
    ),
    "Friction | None": (
        "friction {coefficient = c}, or with a velocity, both numbers",
        lambda v: isinstance(v, dict) and all(_is_numbers(x) for x in v.values()),
    ),
    "jax.Array": _NUMBERS,
    "jax.Array | None": _NUMBERS,
    "Any": _NUMBERS,
}


def _arguments(cls: type[Constraint]) -> dict[str, inspect.Parameter]:
    return dict(list(inspect.signature(cls.__init__).parameters.items())[1:])


def _describable(cls: Any) -> bool:
    """Whether a class is a constraint that frames, numbers and names describe."""
    if not (inspect.isclass(cls) and issubclass(cls, Constraint)) or inspect.isabstract(cls):
        return False
    return all(str(a.annotation) in _KINDS for a in _arguments(cls).values())


TYPES: dict[str, type[Constraint]] = {
    name: cls for name, cls in vars(constraints).items() if _describable(cls)
}


def read_loops(path: str | os.PathLike[str]) -> list[Constraint]:
    """The constraints of a TOML file that has nothing but tables [[constraint]].

    Raises `ModelError` that names the file, the table and the fix; FileNotFoundError where there
    is no such file.
    """
    path = existing(path, "TOML")
    try:
        tables = read_tables(path)
    except ConfigError as error:
        raise ModelError(str(error)) from None
    for name in tables:
        if name != "constraint":
            raise ModelError(
                f"{path}: {shown(name)} does not belong into a file of loops; it has "
                "[[constraint]] only"
            )
    found = constraints_of(tables.get("constraint", []), path)
    if not found:
        raise ModelError(f"{path}: there is no loop in it; add a table [[constraint]]")
    return found


def constraints_of(tables: Any, path: Path) -> list[Constraint]:
    """The constraints that tables [[constraint]] of a TOML file describe.

    Raises `ModelError` for an unknown type or key (with the nearest known one), a missing key, a
    value of a wrong type or shape, and a frame with both an axis and a rotation.
    """
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ModelError(f"{path}: constraint must be a list of tables: write [[constraint]]")
    return [_constraint(table, f"{path}: constraint[{i}]") for i, table in enumerate(tables)]


def closed(system: System, constraints: Sequence[Constraint], path: Path) -> System:
    """The system with constraints of a file; errors of `constrain` name the file and the table."""
    for i, constraint in enumerate(constraints):
        try:
            system = constrain(system, constraint)
        except ModelError as error:
            raise ModelError(f"{path}: constraint[{i}]: {error}") from None
    return system


def _constraint(table: dict[str, Any], where: str) -> Constraint:
    if "type" not in table:
        raise ModelError(f"{where} lacks the key 'type': one of {', '.join(TYPES)}")
    kind = table["type"]
    if not isinstance(kind, str) or kind not in TYPES:
        hint = nearest(str(kind).title(), TYPES) or f"; known are {', '.join(TYPES)}"
        raise ModelError(f"{where}: there is no type {shown(kind)} of constraint{hint}")
    cls = TYPES[kind]
    arguments = _arguments(cls)
    for key in table:
        if key != "type" and key not in arguments:
            raise ModelError(f"{where}: {kind} has no key {shown(key)}{nearest(key, arguments)}")
    values = {}
    for name, argument in arguments.items():
        if name in table:
            values[name] = _value(table[name], str(argument.annotation), f"{where}.{name}")
        elif argument.default is inspect.Parameter.empty:
            raise ModelError(f"{where}: {kind} lacks the key {shown(name)}")
    try:
        return cls(**values)
    except ValueError as error:
        raise ModelError(f"{where}: {error}") from None


def _value(given: Any, annotation: str, where: str) -> Any:
    kind, check = _KINDS[annotation]
    if not check(given):
        raise ModelError(f"{where} is {shown(given)}; it must be {kind}")
    if annotation == "Frame":
        return _frame(given, where)
    if annotation == "Friction | None":
        return _friction(given, where)
    return jnp.asarray(given, float) if _KINDS[annotation] is _NUMBERS else given


def _frame(table: dict[str, Any], where: str) -> Frame:
    for key, value in table.items():
        if key not in _FRAME:
            raise ModelError(f"{where}: a frame has no key {shown(key)}{nearest(key, _FRAME)}")
        is_right = isinstance(value, str) if key == "body" else _is_numbers(value)
        if not is_right:
            needed = "a string" if key == "body" else "a list of three numbers"
            raise ModelError(f"{where}.{key} is {shown(value)}; it must be {needed}")
    try:
        return Frame(**table)
    except ModelError as error:
        raise ModelError(f"{where}: {error}") from None


def _friction(table: dict[str, Any], where: str) -> Friction:
    for key in table:
        if key not in _FRICTION:
            raise ModelError(f"{where}: friction has no key {shown(key)}{nearest(key, _FRICTION)}")
    if "coefficient" not in table:
        raise ModelError(f"{where}: friction lacks the key 'coefficient'")
    return Friction(**table)


def _is_numbers(value: Any) -> bool:
    values = value if isinstance(value, list) else [value]
    return all(isinstance(x, int | float) and not isinstance(x, bool) for x in values)
