"""One value written into all numbers of a system that a path selects, as sweeps do."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ..system.checks import impossible_inertias
from ..system.fields import Number
from ..system.system import System
from ..system.validation import format_value
from .paths import (
    INERTIA,
    INERTIAL,
    Component,
    Entry,
    Places,
    about,
    is_angle,
    read,
    select,
    shape_of,
    write,
)


@dataclasses.dataclass(frozen=True)
class Assignment:
    """A number, or with `factor` a factor, for all the entries that a path selects.

    fields: their declarations; values: those of the machine; origin: the machine.
    """

    path: str
    entries: tuple[Entry, ...]
    factor: bool
    fields: tuple[Number, ...]
    values: tuple[np.ndarray, ...]
    origin: System

    def written(self, system: System, value: jax.Array) -> System:
        """The system with the value () in these places."""
        for entry in self.entries:
            places = _places(entry)
            old = read(system, places, self.origin)
            new = old * value if self.factor else _filled(old, value)
            system = write(system, places, new, self.origin)
        return system

    def fault(self, value: float) -> str:
        """What is wrong with a value, with the fix; empty for nothing."""
        if self.factor and not np.isfinite(value):
            return f"the factor of {self.path} is {value}; it must be finite"
        for entry, field, old in zip(self.entries, self.fields, self.values, strict=True):
            new = old * value if self.factor else np.full(old.shape, value)
            said = field.fault(entry.path, new[0]) if field.kind == "plain" else ""
            said = said or self._fault_of_whole(entry, new)
            if self.factor and field.kind != "plain" and value <= 0:
                said = f"the factor of {entry.path} is {value:g}; it must be positive"
            if said:
                return said
        return ""

    def _fault_of_whole(self, entry: Entry, new: np.ndarray) -> str:
        """What is wrong with the matrix of which one entry is new (1,)."""
        whole = (
            about(self.origin, entry.place[:-1]) if isinstance(entry.place[-1], Component) else None
        )
        if whole is None or whole.kind != "semidefinite":
            return ""
        with jax.ensure_compile_time_eval():
            places = _places(dataclasses.replace(entry, place=entry.place[:-1]))
            made = write(self.origin, _places(entry), jnp.asarray(new), self.origin)
            return whole.fault(entry.path, np.asarray(read(made, places))[0])

    @property
    def unit(self) -> str:
        """The SI unit; "" for factors and where it differs."""
        units = {field.unit for field in self.fields}
        return "" if self.factor or len(units) > 1 else units.pop()


def assignment(system: System, path: str, factor: bool = False) -> Assignment:
    """The assignment of one value to all that a path or pattern selects.

    Raises ValueError for a path that selects nothing, with the nearest one, and for values that are
    no single numbers, which only a factor can change, or angles, which none can.
    """
    entries = tuple(select(system, path))
    if any(entry.place == INERTIAL for entry in entries):
        raise ValueError(
            f"{system.name}: {format_value(path)} is a mass, a centre of mass and an inertia; vary "
            "mass, com_x, I_xx and the others, or inertia by a factor"
        )
    for entry in entries:
        shape = shape_of(system, entry.place)
        single = shape if entry.index is None else shape[1:]
        if single and not factor:
            raise ValueError(
                f"{system.name}: {format_value(entry.path)} has shape {single} and is no single "
                "number; vary it by a factor"
            )
        if factor and is_angle(system, entry):
            raise ValueError(
                f"{system.name}: {format_value(entry.path)} is an angle from the direction that "
                "the system has, zero there, which no factor changes; give angles in rad"
            )
    fields = tuple(about(system, entry.place) for entry in entries)
    with jax.ensure_compile_time_eval():
        values = tuple(np.asarray(read(system, _places(entry))) for entry in entries)
    return Assignment(path, entries, factor, fields, values, system)


def inconsistent_inertias(
    system: System, assignments: Sequence[Assignment], rows: NDArray
) -> dict[int, str]:
    """Which rows (k, n) of values of n assignments give a body an inertia that none has, and why.

    Of bodies of whose inertias single entries are assigned. As where bodies are built, each
    principal moment must be at most the sum of the others.
    """
    touched = {e.index: e.owner for a in assignments for e in a.entries if e.place in INERTIA}
    found: dict[int, str] = {}
    for body, name in touched.items():
        with jax.ensure_compile_time_eval():
            given = np.asarray(system.bodies.inertia[body], float)
        inertia = np.broadcast_to((given + given.T) / 2, (len(rows), 3, 3)).copy()
        for assigned, values in zip(assignments, rows.T, strict=True):
            for place in (e.place for e in assigned.entries if e.index == body):
                if place == ("bodies", "inertia"):
                    inertia *= values[:, None, None]
                elif place in INERTIA:
                    i, j = INERTIA[place]
                    new = inertia[:, i, j] * values if assigned.factor else values
                    inertia[:, i, j] = inertia[:, j, i] = new
        for k, fault in impossible_inertias(inertia).items():
            found.setdefault(k, f"{name}: {fault}")
    return found


def _places(entry: Entry) -> Places:
    return ((entry.place, () if entry.index is None else (entry.index,)),)


def _filled(old: jax.Array, value: jax.Array) -> jax.Array:
    return jnp.broadcast_to(jnp.asarray(value, old.dtype), old.shape)
