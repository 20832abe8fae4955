"""Mean, deviation and percentiles of an output over the rows of a sweep, and which do not count."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..system.validation import format_value, nearest
from .variants import STATUS

if TYPE_CHECKING:
    import xarray

# A number, or an array (...) of the shape of one row.
Value = Any
PERCENTILES = 5.0, 50.0, 95.0
# So many values of a column with several entries are in memory at once.
_AT_ONCE = 2**22
# Rows that are done, with a value that is not finite: a NaN has a status of its own.
INFINITE = "infinite"
_NAMED = 6


@dataclasses.dataclass(frozen=True)
class Statistics:
    """Statistics of one output over the rows of a sweep that are done and finite.

    output, unit: of the column. rows: how many rows count. left_out: the indices (k,) of those that
    do not, by their status ("refused", "not finite", "pending", ...), and by "infinite" for rows
    that are done with an infinite value; empty where all count. mean, deviation, least, greatest,
    in the output's unit; least_row, greatest_row: the indices of the rows with these, -1 for none.
    percentiles: by their number, percentiles[50.0] is the median. All values are numbers, or arrays
    (...) of the shape of one row; NaN where no row counts, and the deviation also where only one
    does.
    """

    output: str
    unit: str
    rows: int
    left_out: Mapping[str, NDArray]
    mean: Value
    deviation: Value
    least: Value
    greatest: Value
    least_row: Value
    greatest_row: Value
    percentiles: Mapping[float, Value]

    @property
    def left_out_text(self) -> str:
        """How many rows do not count, and which: "2 refused (rows 3, 7)"; "" for none."""
        return rows_text(self.left_out)

    def __str__(self) -> str:
        """Of an output of one number all of it in a sentence; of others what they are of."""
        rows = f"{self.rows} {'row' if self.rows == 1 else 'rows'}"
        of = f"{self.output} of {rows}"
        if self.left_out:
            of += f", without {self.left_out_text}"
        if np.ndim(self.mean):
            return f"{of}: statistics of {np.shape(self.mean)} entries"
        values = {"mean": self.mean, "deviation": self.deviation, "least": self.least}
        values |= {f"{p:g} %": x for p, x in self.percentiles.items()}
        values |= {"greatest": self.greatest}
        said = ", ".join(f"{name} {value:.6g}" for name, value in values.items())
        return f"{of}: {said} {self.unit}".rstrip()


def statistics(
    table: xarray.Dataset, output: str, percentiles: Sequence[float] = PERCENTILES
) -> Statistics:
    """Mean, standard deviation and percentiles of a column of a table that `sweep` returns.

    output: a column of real numbers, or a number of the design, with one entry in each row or
    several, (k, ...), such as q of every saved step: then each entry has its own. All are in its
    unit. percentiles: between 0 and 100, linear between the values of two rows. The deviation
    divides by the number of rows less one.

    Only rows that are done, with finite values in all entries, count; the others are in `left_out`,
    by the reason and with their indices. All rows count the same: where a design is drawn these are
    estimates for the distributions of its numbers, and on a grid they are of the grid. Of a large
    column some entries at a time are read, in all rows.

    Raises ValueError for an output that is not there, with the nearest one, or is no real number,
    and for percentiles beyond 0 and 100.
    """
    wanted = [_percentile(p) for p in percentiles]
    column, status = _column(table, output), np.asarray(table["status"].values)
    counts = status == "done"
    counts &= np.concatenate([np.isfinite(part).all(axis=1) for part in _row_parts(column)])
    left_out = {word: np.flatnonzero(status == word) for word in (*STATUS[1:], "pending")}
    left_out[INFINITE] = np.flatnonzero((status == "done") & ~counts)
    left_out = {word: rows for word, rows in left_out.items() if rows.size}
    there = np.flatnonzero(counts)
    parts = [_of_entries(part[there], wanted) for part in _entry_parts(column)]
    moments, ends, levels = (
        [_shaped(x, column.shape[1:]) for x in np.concatenate(found, axis=1)]
        for found in zip(*parts, strict=True)
    )
    least_row, greatest_row = (_row(there, k) for k in ends)
    return Statistics(
        output=output,
        unit=str(column.attrs.get("units", "")),
        rows=len(there),
        left_out=left_out,
        mean=moments[0],
        deviation=moments[1],
        least=moments[2],
        greatest=moments[3],
        least_row=least_row,
        greatest_row=greatest_row,
        percentiles=dict(zip(wanted, levels, strict=True)),
    )


def _of_entries(y: NDArray, wanted: Sequence[float]) -> tuple[NDArray, NDArray, NDArray]:
    """Of values (rows, n): mean, deviation and ends (4, n); where these are (2, n); percentiles."""
    rows, n = y.shape
    if not rows:
        return np.full((4, n), np.nan), np.full((2, n), -1), np.full((len(wanted), n), np.nan)
    deviation = y.std(axis=0, ddof=1) if rows > 1 else np.full(n, np.nan)
    moments = np.stack((y.mean(axis=0), deviation, y.min(axis=0), y.max(axis=0)))
    ends = np.stack((y.argmin(axis=0), y.argmax(axis=0)))
    return moments, ends, np.quantile(y, np.asarray(wanted) / 100, axis=0)


def _row_parts(column: xarray.DataArray, entries: slice | None = None) -> Iterator[NDArray]:
    """The values (k, n) of some rows at a time; entries: of the first axis of a row, or all."""
    size = max(1, _AT_ONCE // max(1, int(np.prod(column.shape[1:]))))
    for first in range(0, column.shape[0], size):
        rows = slice(first, first + size)
        part = column[rows] if entries is None else column[rows, entries]
        yield np.asarray(part.values, float).reshape(part.shape[0], -1)


def _entry_parts(column: xarray.DataArray) -> Iterator[NDArray]:
    """The values (rows, n) of some entries at a time, in all rows."""
    rows, *shape = column.shape
    if not shape:
        yield np.asarray(column.values, float)[:, None]
        return
    size = max(1, _AT_ONCE // max(1, rows * int(np.prod(shape[1:]))))
    for first in range(0, max(shape[0], 1), size):
        # Not all rows in one reading, which would unpack all entries of all chunks at once.
        yield np.concatenate(list(_row_parts(column, slice(first, first + size))))


def _shaped(values: NDArray, shape: tuple[int, ...]) -> Value:
    """Values (n,) in the shape of a row, as a number where that is ()."""
    return values.reshape(shape) if shape else values[0].item()


def _row(there: NDArray, k: Value) -> Value:
    """The index of a row, or of rows (...), in the table; -1 for none."""
    rows = there[k] if there.size else k
    return rows if np.ndim(rows) else int(rows)


def _column(table: xarray.Dataset, output: str) -> xarray.DataArray:
    known = [str(name) for name in table.variables if name not in ("status", "variant")]
    if output not in known:
        raise ValueError(f"the table has no column {format_value(output)}{nearest(output, known)}")
    column = table[output]
    if column.dtype.kind not in "fiub":
        raise ValueError(f"{output} is {column.dtype}; statistics are of real numbers")
    return column


def _percentile(p: float) -> float:
    if isinstance(p, bool) or not isinstance(p, int | float | np.number) or not 0 <= p <= 100:
        raise ValueError(f"a percentile is {format_value(p)}; give numbers from 0 to 100")
    return float(p)


def rows_text(left_out: Mapping[str, NDArray]) -> str:
    """How many rows there are by their words, and the first of them."""
    said = []
    for word, rows in left_out.items():
        more = f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
        named = f"{'row' if len(rows) == 1 else 'rows'} {', '.join(map(str, rows[:_NAMED]))}"
        said.append(f"{len(rows)} {word} ({named}{more})")
    return ", ".join(said)
