"""Shared by the builders that read tables: checked numbers, names and parents of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .body import Body
from .fields import numbers
from .validation import ModelError, format_value, nearest


class Inertial(NamedTuple):
    """mass (n,) in kg, com (n, 3) in m and inertia (n, 3, 3) about the centre of mass in kg m^2."""

    mass: np.ndarray
    com: np.ndarray
    inertia: np.ndarray


def listed(value: Any) -> list[Any]:
    """The entries of an iterable that is not a string; empty for anything else."""
    return list(value) if np.iterable(value) and not isinstance(value, str) else []


def rows_of(table: Any, what: str, row: str) -> list[Any]:
    """The rows of a table; `row` is the form of a row, for the message.

    Raises `ModelError` if there is none.
    """
    rows = listed(table)
    if not rows:
        raise ModelError(f"{what} is {format_value(table)}; give a row {row} for each joint")
    return rows


def names_of(count: int, names: Sequence[str] | None, where: str) -> list[str]:
    """The names of the `count` bodies of a table; by default link1, link2, ...

    Raises `ModelError` for another number of names, and for names that are no strings.
    """
    if names is None:
        return [f"link{i + 1}" for i in range(count)]
    entries = listed(names)
    if len(entries) != count or not all(isinstance(n, str) for n in entries):
        raise ModelError(
            f"{where}: names is {format_value(names)}; give {count} names, one for the body of "
            "each row"
        )
    return entries


def parents_of(
    names: Sequence[str], parents: Sequence[str | None] | None, where: str
) -> list[str | None]:
    """The parents of the named bodies; by default each body's predecessor.

    Raises `ModelError` for another number of parents, and for a parent that is no body.
    """
    if parents is None:
        return [None, *names[:-1]]
    entries = listed(parents)
    if len(entries) != len(names):
        raise ModelError(
            f"{where}: parents is {format_value(parents)}; give {len(names)}, one for the body of "
            "each row: a body's name, or None for the world"
        )
    for i, parent in enumerate(entries):
        if parent is not None and parent not in names:
            hint = nearest(parent, names) if isinstance(parent, str) else ""
            raise ModelError(
                f"{where}: parents[{i}], of body {names[i]!r}, is {format_value(parent)}; give the "
                f"name of a body or None for the world{hint}"
            )
    return entries


def inertial_of(count: int, mass: Any, com: Any, inertia: Any, where: str) -> Inertial:
    """The inertial numbers of the n = `count` bodies of a table, shapes as in `Inertial`.

    None stands for zeros. Raises `ModelError` for another shape.
    """
    hint = f": one entry for the body of each of the {count} rows"
    values = {"mass": mass, "com": com, "inertia": inertia}
    shapes = {"mass": (count,), "com": (count, 3), "inertia": (count, 3, 3)}
    return Inertial(
        **{
            name: np.zeros(shapes[name])
            if value is None
            else numbers(value, f"{where}: {name}", shapes[name], hint=hint)
            for name, value in values.items()
        }
    )


def pose_of(value: Any, what: str) -> np.ndarray:
    """A pose (4, 4); its rotation is checked later, by `tree`.

    Raises `ModelError` for another shape or another last row than (0, 0, 0, 1).
    """
    pose = numbers(value, what, (4, 4))
    if not np.array_equal(pose[3], (0.0, 0.0, 0.0, 1.0)):
        raise ModelError(f"{what} has the last row {pose[3].tolist()}; a pose has 0, 0, 0, 1 there")
    return pose


def tool_body(pose: np.ndarray, parent: str) -> Body:
    """The body "tool": a massless frame, fixed at a pose (4, 4) in the parent's body frame."""
    return Body(name="tool", parent=parent, position=pose[:3, 3], rotation=pose[:3, :3])
