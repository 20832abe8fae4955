"""Shapes, and which of them touch, as tables of configuration files.

[shapes.floor]                    # one such table for each shape; type: its class
type = "Plane"

[shapes.bumper]
type = "Box"
frame = {body = "cart", position = [0.2, 0.0, 0.1]}
half_sizes = [0.01, 0.1, 0.05]

[[touching]]                      # as `difflie.touching`
first = "floor"
second = "*foot*"
friction = 0.6
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from ..collision import Shape
from ..forces.shapes_in_contact import DEFAULTS, touching
from ..system.fields import number
from ..system.system import System
from ..system.validation import ModelError
from .tables import SHAPES, read, read_typed, rows_by_place
from .toml import ConfigError, Faults


@dataclass(frozen=True)
class TouchingTable:
    """[[touching]]: shapes that touch, as by `difflie.touching`.

    first, second: patterns for names of shapes; without: pairs of patterns that do not touch, and
    disabled: pairs of bodies of which none do. The
    numbers are those of all these pairs; stiffness in N/m, dissipation in s/m, spinning, rolling
    and margin in m.
    """

    first: str = "*"
    second: str = "*"
    without: list[list[str]] = field(default_factory=list)
    disabled: list[list[str]] = field(default_factory=list)
    stiffness: Annotated[float | None, number(unit="N/m", nonnegative=True)] = None
    dissipation: Annotated[float, number(unit="s/m", nonnegative=True)] = DEFAULTS["dissipation"]
    friction: Annotated[float, number(nonnegative=True)] = DEFAULTS["friction"]
    spinning: Annotated[float, number(unit="m", nonnegative=True)] = 0.0
    rolling: Annotated[float, number(unit="m", nonnegative=True)] = 0.0
    margin: Annotated[float, number(unit="m")] = 0.0


def shapes_of(tables: dict[str, Any], faults: Faults) -> dict[str, Shape]:
    """The shapes of the tables [shapes.NAME]; reports as `read_typed`."""
    given = tables.get("shapes", {})
    if not isinstance(given, dict):
        faults.add("[shapes] must be a table of tables, [shapes.NAME]")
        return {}
    found = {}
    for name, row in given.items():
        if not isinstance(row, dict):
            faults.add(f"shapes.{name} must be a table, [shapes.{name}]")
            continue
        found[name] = read_typed(SHAPES, row, f"shapes.{name}", "shape", faults)
    return found


def touching_of(tables: dict[str, Any], faults: Faults) -> list[TouchingTable]:
    """The tables [[touching]]; reports unknown keys and wrong values."""
    rows = rows_by_place(tables, "touching", faults)
    for place, row in rows.items():
        for key in ("without", "disabled"):
            pairs = row.get(key, [])
            if isinstance(pairs, list) and any(isinstance(p, list) and len(p) != 2 for p in pairs):
                faults.add(f'{place}.{key} has pairs of names; write [["floor", "hand"]]')
    return [read(TouchingTable, row, place, faults, f"[{place}]") for place, row in rows.items()]


def with_tables(
    system: System, shapes: dict[str, Shape], contacts: list[TouchingTable], path: Path
) -> System:
    """The system with the shapes and contacts of a file, whose errors name it and the table."""
    try:
        system = system.with_shapes(shapes)
    except ModelError as error:
        raise ConfigError(f"{path}: shapes: {error}") from None
    for k, table in enumerate(contacts):
        numbers = {name: getattr(table, name) for name in DEFAULTS}
        pairs = {key: [(a, b) for a, b in getattr(table, key)] for key in ("without", "disabled")}
        try:
            system = touching(system, table.first, table.second, **pairs, **numbers)
        except ValueError as error:
            raise ConfigError(f"{path}: touching[{k}]: {error}") from None
    return system
