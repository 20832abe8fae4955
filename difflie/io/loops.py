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

The keys are the arguments of the class: frames are tables, all others numbers and names.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import constraints
from ..constraints import Constraint, constrain
from ..system import ModelError, System
from ..system.validation import format_value
from .files import existing
from .tables import describable, typed_rows
from .toml import ConfigError, Faults, read_toml

TYPES: dict[str, type[Constraint]] = {
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
        faults.tell(
            f"{format_value(name)} does not belong into a file of loops; it has [[constraint]] only"
        )
    if not loops and not faults:
        faults.tell("there is no loop in it; add a table [[constraint]]")
    faults.end()
    return loops


def constraints_of(tables: dict[str, Any], faults: Faults) -> list[Constraint]:
    """The constraints that the tables [[constraint]] of a file describe.

    Reports unknown types and keys (with the nearest known one), missing keys, values of a wrong
    type, shape or size, and errors of the class itself.
    """
    return typed_rows(tables, "constraint", TYPES, "constraint", faults)


def closed(system: System, constraints: Sequence[Constraint], path: Path) -> System:
    """The system with constraints of a file; errors of `constrain` name the file and the table."""
    faults = Faults(path, ModelError)
    for i, constraint in enumerate(constraints):
        with faults.caught(f"constraint[{i}]", ModelError):
            system = constrain(system, constraint)
    faults.end()
    return system
