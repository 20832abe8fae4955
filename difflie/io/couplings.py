"""Forces described in TOML: a table has the name of a class, and its keys are the class's fields.

    [[torsional_spring]]              # difflie.TorsionalSpring; one such table for each
    path = [
      {body = "upper arm", point = [0.1, 0.0, 0.0]},
      {point = [0.0, 0.0, 1.0]},      # of the world
    ]
    axis = [0.0, 0.0, 1.0]
    stiffness = 20.0                  # in SI units, as the field declares

    [[thruster]]                      # difflie.Thruster, along an axis of a body
    axis = {body = "hull", position = [0.0, 0.0, -0.3], direction = [0.0, 0.0, 1.0]}
    max_thrust = 20.0

    [[coupling]]                      # of a class of one's own; [[actuator]] likewise
    type = "drag:Drag"                # class Drag of drag.py beside this file, or of any module
    path = [{body = "hull", point = [0.0, 0.0, 0.0]}]
    area = 0.3

To read a file with such a type runs the Python code of that module.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from .. import forces
from ..forces import Actuator, Coupling, JointCoupling
from ..system.system import System
from ..system.validation import ModelError, nearest, shown
from .tables import ConfigError, fields_of, instance, rows_of

Force = Coupling | JointCoupling | Actuator
_BASES = Coupling, JointCoupling, Actuator


def _concrete(cls: Any) -> bool:
    return inspect.isclass(cls) and issubclass(cls, _BASES) and not inspect.isabstract(cls)


CLASSES: dict[str, type] = {name: cls for name, cls in vars(forces).items() if _concrete(cls)}
# The classes of each table. Where there are several the keys tell which is meant.
TABLES: dict[str, tuple[type, ...]] = {
    **{re.sub("(?<=.)([A-Z])", r"_\1", name).lower(): (cls,) for name, cls in CLASSES.items()},
    "contact": (forces.PlaneContact, forces.SphereContact),
    "rope": (forces.Rope, forces.SmoothRope),
    "tension_damper": (forces.TensionDamper, forces.SmoothTensionDamper),
}
OWN = "coupling", "actuator"


def couplings_of(tables: dict[str, Any], path: Path) -> dict[str, Force]:
    """Takes the tables of forces out of those of a file: "spring[0]" and what it describes.

    Raises `ConfigError` for an unknown or missing key (with the nearest known one), a value that is
    not what the field declares, and a type that is no class of a force.
    """
    found: dict[str, Force] = {}
    for name in [name for name in tables if name in TABLES or name in OWN]:
        for i, row in enumerate(rows_of(tables.pop(name), name, path)):
            where = f"{name}[{i}]"
            if name in OWN:
                cls, row = _named(row, path, where)
            else:
                cls = _meant(TABLES[name], row, path, where)
            found[where] = instance(cls, row, path, where)
    return found


def coupled(system: System, couplings: dict[str, Force], path: Path) -> System:
    """The system with the forces of a file; errors of `attach` name the file and the table."""
    for where, coupling in couplings.items():
        try:
            system = forces.attach(system, coupling)
        except ModelError as error:
            raise ConfigError(f"{path}: {where}: {error}") from None
    return system


def _meant(classes: Sequence[type], row: dict[str, Any], path: Path, where: str) -> type:
    """Of several classes the one that has the keys."""
    keys = [fields_of(cls) for cls in classes]
    every = {key: None for own in keys for key in own}
    unknown = [key for key in row if key not in every]
    if len(classes) == 1 or unknown:
        for key in unknown:
            raise ConfigError(f"{path}: [{where}] has no key {shown(key)}{nearest(key, every)}")
        return classes[0]
    common = {key for key in every if all(own.get(key, False) for own in keys)}
    for key in every:
        if key in common and key not in row:
            raise ConfigError(f"{path}: [{where}] lacks the key {shown(key)}")
    marks = [[k for k in own if sum(k in other for other in keys) == 1] for own in keys]
    said = {cls: [k for k in own if k in row] for cls, own in zip(classes, marks, strict=True)}
    meant = [cls for cls, given in said.items() if given]
    if len(meant) > 1:
        both = " and ".join(f"{shown(said[cls][0])} of {cls.__name__}" for cls in meant)
        raise ConfigError(f"{path}: [{where}] has the keys {both}; leave one out")
    needed = [[k for k in mark if own[k]] for own, mark in zip(keys, marks, strict=True)]
    if not meant and all(needed):
        either = " or ".join(
            f"the key {shown(own[0])} of {cls.__name__}"
            for cls, own in zip(classes, needed, strict=True)
        )
        raise ConfigError(f"{path}: [{where}] needs either {either}")
    return meant[0] if meant else classes[0]


def _named(row: dict[str, Any], path: Path, where: str) -> tuple[type, dict[str, Any]]:
    """The class that the key `type` names, "module:Class" or one of difflie, and the other keys."""
    kind = row.get("type")
    if not isinstance(kind, str):
        known = ", ".join(CLASSES)
        raise ConfigError(f"{path}: [{where}] needs the key 'type': \"module:Class\", or {known}")
    rest = {key: value for key, value in row.items() if key != "type"}
    module, colon, name = kind.partition(":")
    if not colon:
        if kind not in CLASSES:
            hint = nearest(kind, CLASSES) or '; write "module:Class" for one of your own'
            raise ConfigError(f"{path}: {where}.type: difflie has no force {shown(kind)}{hint}")
        return CLASSES[kind], rest
    cls = _class_of(_imported(module, path, where), name, f"{path}: {where}.type")
    return cls, rest


def _imported(module: str, path: Path, where: str) -> ModuleType:
    """The module of this name; one beside the file comes first."""
    start = f"{path}: {where}.type"
    if not all(part.isidentifier() for part in module.split(".")):
        raise ConfigError(f"{start}: {shown(module)} is no name of a module; write module:Class")
    folder = str(path.parent.resolve())
    sys.path.insert(0, folder)
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and f"{module}.".startswith(f"{error.name}."):
            raise ConfigError(
                f"{start}: there is no module {shown(module)}; put {module.split('.')[0]}.py into "
                f"the folder {folder}, or install it"
            ) from None
        raise ConfigError(f"{start}: the module {shown(module)} needs: {error}") from error
    except Exception as error:
        raise ConfigError(
            f"{start}: the module {shown(module)} cannot be imported: {type(error).__name__}: "
            f"{error}; correct it"
        ) from error
    finally:
        sys.path.remove(folder)


def _class_of(module: ModuleType, name: str, where: str) -> type:
    known = [k for k, v in vars(module).items() if _concrete(v) and v.__module__ == module.__name__]
    cls = getattr(module, name, None)
    if not inspect.isclass(cls):
        hint = nearest(name, known) or f"; it has {', '.join(known) or 'no forces'}"
        raise ConfigError(f"{where}: the module {module.__name__} has no class {shown(name)}{hint}")
    if not issubclass(cls, _BASES):
        raise ConfigError(
            f"{where}: {name} is no force; derive it from dl.Coupling, dl.JointForce or dl.Actuator"
        )
    missing = sorted(getattr(cls, "__abstractmethods__", ()))
    if missing:
        raise ConfigError(f"{where}: {name} lacks the method {', '.join(missing)}; define it")
    return cls
