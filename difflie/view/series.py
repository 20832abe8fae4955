"""Named arrays over a common axis, checked before they are drawn, and cut where they break off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..quantities import Curve


class Series(NamedTuple):
    """x (m,); columns: arrays (m,) by name; notes: sentences on what is not finite."""

    x: NDArray
    columns: dict[str, NDArray]
    notes: tuple[str, ...] = ()


def series(what: str, x: Any, columns: Mapping[str, Any], across: str = "t") -> Series:
    """Columns over time, each up to its first value that is not finite, and NaN from there on.

    what: the name of the picture, across: that of x, for messages. Raises ValueError for columns
    that are no numbers, of another shape than x, or all without a finite value, and for none.
    """
    x, arrays = _checked(what, x, columns, across)
    notes = []
    for name, column in arrays.items():
        bad = np.flatnonzero(~np.isfinite(column))
        if bad.size:
            first = int(bad[0])
            where = f"from {across} = {x[first]:.6g} on, drawn up to there"
            notes.append(f"{name}: not finite {where if first else 'from the start, not drawn'}.")
            arrays[name] = np.where(np.arange(len(x)) < first, column, np.nan)
    _check_something(what, arrays)
    return Series(x, arrays, tuple(notes))


def points(what: str, x: Any, columns: Mapping[str, Any], across: str) -> Series:
    """Columns over any x, without the values that are not finite; otherwise as `series`."""
    x, arrays = _checked(what, x, columns, across)
    notes = []
    for name, column in arrays.items():
        there = np.isfinite(column)
        if not there.all():
            notes.append(
                f"{name}: {np.sum(~there)} of {len(x)} values are not finite and left out."
            )
            arrays[name] = np.where(there, column, np.nan)
    _check_something(what, arrays)
    return Series(x, arrays, tuple(notes))


def whole(curve: Curve, every: bool = False) -> tuple[Curve, tuple[str, ...]]:
    """A curve (m, n), cut as by `series`, and the notes on it.

    Entries without any finite value, such as what is left of limits that are none, are left out
    without a note, unless every=True.
    """
    values = numbers(curve.name, "values", curve.values)
    if values.ndim != 2 or values.shape[1] != len(curve.labels):
        raise ValueError(
            f"{curve.name}: the values have shape {values.shape}, and there are "
            f"{len(curve.labels)} names; give a column for each name"
        )
    there = np.isfinite(values).any(axis=0)
    if not values.size:
        raise ValueError(
            f"{curve.name}: the values have shape {values.shape}, so there is nothing to draw; "
            "give at least one row and one column"
        )
    if not there.any():
        raise ValueError(f"{curve.name}: no value is finite, so there is nothing to draw")
    kept = np.flatnonzero(there | every)
    labels = tuple(curve.labels[k] for k in kept)
    # Numbered, as two entries may have one name.
    cut = series(curve.name, curve.t, {f"{k} {curve.labels[k][0]}": values[:, k] for k in kept})
    notes = tuple(f"{curve.name} {note.split(' ', 1)[1]}" for note in cut.notes)
    return Curve(curve.name, cut.x, np.stack([*cut.columns.values()], axis=1), labels), notes


def numbers(what: str, name: str, value: Any) -> NDArray:
    """A value as an array of real numbers; raises ValueError for anything else."""
    try:
        if not np.iscomplexobj(value):
            return np.asarray(value, float)
    except (TypeError, ValueError):
        pass
    raise ValueError(f"{what}: {name} is no array of real numbers; give one")


def _checked(
    what: str, x: Any, columns: Mapping[str, Any], across: str
) -> tuple[NDArray, dict[str, NDArray]]:
    x = numbers(what, across, x)
    if x.ndim != 1 or not x.size or not np.isfinite(x).all():
        raise ValueError(
            f"{what}: {across} has shape {x.shape}"
            + (" and values that are not finite" if not np.isfinite(x).all() else "")
            + "; give one row of finite numbers"
        )
    arrays = {name: numbers(what, name, column) for name, column in columns.items()}
    if not arrays:
        raise ValueError(f"{what}: there is nothing to draw; give arrays by name")
    for name, column in arrays.items():
        if column.shape != x.shape:
            raise ValueError(
                f"{what}: {name} has shape {column.shape}, and {across} {x.shape}; give one "
                f"number for each value of {across}"
            )
    return x, arrays


def _check_something(what: str, arrays: Mapping[str, NDArray]) -> None:
    if not any(np.isfinite(column).any() for column in arrays.values()):
        raise ValueError(
            f"{what}: no value of {', '.join(arrays)} is finite, so there is nothing to draw"
        )
