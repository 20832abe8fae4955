"""Forces and constraints described in TOML, as tables whose keys are the fields of a class.

The table of a force has the name of its class:

    [[torsional_spring]]              # difflie.TorsionalSpring; one such table for each
    path = [
      {body = "upper arm", point = [0.1, 0.0, 0.0]},
      {point = [0.0, 0.0, 1.0]},      # of the world
    ]
    axis = [0.0, 0.0, 1.0]
    stiffness = 20.0                  # in SI units, as the field declares
    name = "balancer"                 # or none; its numbers have paths "balancer/stiffness"

    [[thruster]]                      # difflie.Thruster, along an axis of a body
    axis = {body = "hull", position = [0.0, 0.0, -0.3], direction = [0.0, 0.0, 1.0]}
    max_thrust = 20.0

    [[drive]]                         # difflie.Drive, one at each of two joints
    joint = ["hip", "knee"]
    load_friction = 0.1

    [[coupling]]                      # of a class of one's own; [[actuator]] likewise
    type = "drag:Drag"                # class Drag of drag.py beside this file, or of any module
    path = [{body = "hull", point = [0.0, 0.0, 0.0]}]
    area = 0.3

A constraint closes a loop of a robot whose file describes a tree; `type` is its class:

    [[constraint]]                    # one such table for each
    type = "SphericalConstraint"                # a class of difflie.constraints
    first = {body = "rod", position = [0.3, 0.0, 0.0]}        # m; the rest as of `Frame`:
    second = {position = [1.0, 0.0, 0.2], axis = [0, 1, 0]}   # axis or rotation (rad); the world

    [[constraint]]
    type = "Polynomial"
    driven = "left_finger"
    driver = "right_finger"
    coefficients = [0.0, -1.0]

To read a file with a type of one's own runs the Python code of that module, so the readers of files
refuse it unless allow_code is True.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from .. import constraints, forces
from ..constraints import Constraint, constrain
from ..forces import Actuator, Coupling, JointCoupling
from ..system.system import System
from ..system.validation import ModelError, format_value, nearest
from .files import existing
from .modules import imported
from .tables import (
    add_unknown_keys,
    describable,
    keys_of,
    read,
    read_keys,
    rows_by_place,
    typed_rows,
)
from .toml import ConfigError, Faults, read_toml

Force = Coupling | JointCoupling | Actuator
_BASES = Coupling, JointCoupling, Actuator


def _concrete(cls: Any) -> bool:
    return inspect.isclass(cls) and issubclass(cls, _BASES) and not inspect.isabstract(cls)


CLASSES: dict[str, type] = {
    name: cls for name, cls in vars(forces).items() if _concrete(cls) and describable(cls)
}
# Where a name of a class has another word: PointForce, PIDServo.
_WORD = re.compile("(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# The classes of each table. Where there are several the keys decide.
TABLES: dict[str, tuple[type, ...]] = {
    **{_WORD.sub("_", name).lower(): (cls,) for name, cls in CLASSES.items()},
    "contact": (forces.PlaneContact, forces.SphereContact),
    "rope": (forces.Rope, forces.SmoothRope),
    "tension_damper": (forces.TensionDamper, forces.SmoothTensionDamper),
}
OWN = "coupling", "actuator"


def couplings_of(tables: dict[str, Any], faults: Faults, allow_code: bool) -> dict[str, Force]:
    """The forces that the tables of a file describe, by "spring[0]" and the like.

    allow_code: whether a module that a table names may be imported. Reports unknown and missing
    keys (with the nearest known one), values that do not suit their field, and types that are no
    class of a force.
    """
    found: dict[str, Force] = {}
    for name in [name for name in tables if name in TABLES or name in OWN]:
        for where, row in rows_by_place(tables, name, faults).items():
            with faults.caught("", ConfigError):
                if name in OWN:
                    cls, row = _named(row, faults.path, where, allow_code)
                else:
                    cls, row = _meant(TABLES[name], row, where, faults)
                found[where] = read(cls, row, where, faults, f"[{where}]")
    return found


def coupled(system: System, couplings: dict[str, Force], path: Path) -> System:
    """The system with the forces of a file; errors of `attach` name the file and the table."""
    faults = Faults(path)
    for where, coupling in couplings.items():
        with faults.caught(where, ModelError):
            system = forces.attach(system, coupling)
    faults.end()
    return system


def _meant(
    classes: Sequence[type], row: dict[str, Any], where: str, faults: Faults
) -> tuple[type, dict[str, Any]]:
    """The class, among several, that has the keys of a table; and the table's known keys.

    Raises `ConfigError` where the keys suit none of them, or several.
    """
    if len(classes) == 1:
        return classes[0], row
    keys = [keys_of(cls) for cls in classes]
    every = {name: key for own in keys for name, key in own.items()}
    add_unknown_keys(row, every, lambda name: f"[{where}] has no key {format_value(name)}", faults)
    row = {name: value for name, value in row.items() if name in every}
    marks = [[name for name in own if sum(name in other for other in keys) == 1] for own in keys]
    given = [[name for name in own if name in row] for own in marks]
    needed = [[name for name in own if every[name].needed] for own in marks]
    meant = [k for k, own in enumerate(given) if own]
    if len(meant) == 1 or (not meant and not all(needed)):
        return classes[meant[0] if meant else 0], row
    common = {name: key for name, key in keys[0].items() if name not in marks[0]}
    shared = {name: value for name, value in row.items() if name in common}
    read_keys(common, shared, where, faults, f"[{where}]")
    options = [
        f"{format_value(names[0])} of {cls.__name__}"
        for cls, names in zip(classes, given if meant else needed, strict=True)
        if names
    ]
    if meant:
        raise ConfigError(f"[{where}] has the keys {' and '.join(options)}; leave one out")
    either = " or ".join(f"the key {option}" for option in options)
    raise ConfigError(f"[{where}] needs either {either}")


def _named(
    row: dict[str, Any], path: Path, where: str, allow_code: bool
) -> tuple[type, dict[str, Any]]:
    """The class that the key `type` names, "module:Class" or one of difflie, and the other keys."""
    kind = row.get("type")
    if not isinstance(kind, str):
        known = ", ".join(CLASSES)
        raise ConfigError(f"[{where}] needs the key 'type': \"module:Class\", or {known}")
    rest = {key: value for key, value in row.items() if key != "type"}
    module, colon, name = kind.partition(":")
    if colon:
        found = imported(module, path, f"{where}.type", allow_code)
        return _class_of(found, name, f"{where}.type"), rest
    if kind in CLASSES:
        return CLASSES[kind], rest
    hint = nearest(kind, CLASSES) or '; write "module:Class" for one of your own'
    raise ConfigError(f"{where}.type: difflie has no force {format_value(kind)}{hint}")


def _class_of(module: ModuleType, name: str, where: str) -> type:
    known = [k for k, v in vars(module).items() if _concrete(v) and v.__module__ == module.__name__]
    cls = getattr(module, name, None)
    if not inspect.isclass(cls):
        hint = nearest(name, known) or f"; it has {', '.join(known) or 'no forces'}"
        raise ConfigError(
            f"{where}: the module {module.__name__} has no class {format_value(name)}{hint}"
        )
    if not issubclass(cls, _BASES):
        raise ConfigError(
            f"{where}: {name} is no force; derive it from dl.Coupling, dl.JointForce or dl.Actuator"
        )
    missing = sorted(getattr(cls, "__abstractmethods__", ()))
    if missing:
        raise ConfigError(f"{where}: {name} lacks the method {', '.join(missing)}; define it")
    return cls


CONSTRAINTS: dict[str, type[Constraint]] = {
    name: cls
    for name, cls in vars(constraints).items()
    if isinstance(cls, type) and issubclass(cls, Constraint) and describable(cls)
}


def read_loops(path: str | os.PathLike[str]) -> list[Constraint]:
    """The constraints in a TOML file of tables [[constraint]] only.

    Raises `ModelError` with a line for each fault, which names the file, the key and the fix;
    FileNotFoundError where there is no such file.
    """
    path = existing(path, "TOML")
    try:
        tables = read_toml(path)
    except ConfigError as error:
        raise ModelError(str(error)) from None
    faults = Faults(path, ModelError)
    loops = constraints_of(tables, faults)
    for name in tables.keys() - {"constraint"}:
        faults.add(
            f"{format_value(name)} does not belong into a file of loops; it has [[constraint]] only"
        )
    if not loops and not faults:
        faults.add("there is no loop in it; add a table [[constraint]]")
    faults.end()
    return loops


def constraints_of(tables: dict[str, Any], faults: Faults) -> list[Constraint]:
    """The constraints that the tables [[constraint]] of a file describe.

    Reports unknown types and keys (with the nearest known one), missing keys, values of a wrong
    type, shape or size, and errors of the class itself.
    """
    return typed_rows(tables, "constraint", CONSTRAINTS, "constraint", faults)


def closed(system: System, constraints: Sequence[Constraint], path: Path) -> System:
    """The system with constraints of a file; errors of `constrain` name the file and the table."""
    faults = Faults(path, ModelError)
    for i, constraint in enumerate(constraints):
        with faults.caught(f"constraint[{i}]", ModelError):
            system = constrain(system, constraint)
    faults.end()
    return system
