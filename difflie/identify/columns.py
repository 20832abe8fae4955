"""Files of measurements: CSV and npz, with a column of numbers for each quantity."""

from __future__ import annotations

import array
import collections
import csv
import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..system.validation import InputError, nearest, shown

_HINT = "; write numbers with a decimal point"


class DataError(InputError):
    """Unusable measurements; the message names the file, the column and the fix."""


@dataclasses.dataclass(frozen=True)
class Columns:
    """The columns of a file by name, each (n,), and the place of each row in the file.

    For an archive all its arrays, not only columns. lines (n,): the line numbers of a text file,
    the first being 1; None for an archive, whose rows are counted from 1.
    """

    path: Path
    values: dict[str, NDArray]
    lines: NDArray | None = None

    def __getitem__(self, name: str) -> NDArray:
        """The column (n,); raises DataError, with the nearest name, for an unknown one."""
        if name not in self.values:
            near = nearest(name, list(self.values))
            raise DataError(f"{self.path}: there is no column {shown(name)}{near}")
        found = self.values[name]
        if found.ndim != 1 or found.dtype.kind not in "iuf":
            raise DataError(
                f"{self.path}: the array {shown(name)} has shape {found.shape} and type "
                f"{found.dtype}; give one of real numbers (n,) for each column"
            )
        return found.astype(float)

    def place(self, row: int) -> str:
        """The place of a row in the file, for messages."""
        return f"row {row + 1}" if self.lines is None else f"line {self.lines[row]}"

    def times(self, name: str) -> NDArray:
        """The column (n,) in s; raises DataError where times are missing or do not increase."""
        t = self[name]
        for k in np.flatnonzero(~np.isfinite(t))[:1]:
            raise DataError(
                f"{self.path}: {self.place(k)}, column {name!r}: the time is {t[k]}; take that "
                "row out"
            )
        for k in np.flatnonzero(np.diff(t) <= 0)[:1]:
            raise DataError(
                f"{self.path}: {self.place(k + 1)}, column {name!r}: {t[k + 1]} s is not after "
                f"the {t[k]} s of {self.place(k)}; sort the rows, and take those out that are "
                "there twice"
            )
        return t

    def scaled(self, names: Sequence[str], scale: float) -> NDArray:
        """Columns side by side (n, k), times a factor; raises DataError for infinite numbers."""
        parts = [self[name] for name in names]
        if len({len(part) for part in parts}) > 1:
            lengths = ", ".join(str(len(part)) for part in parts)
            raise DataError(f"{self.path}: {list(names)} have {lengths} rows; give as many of each")
        with np.errstate(over="ignore"):
            found = np.stack(parts, axis=1) * scale
        for k, j in np.argwhere(np.isinf(found))[:1]:
            raise DataError(
                f"{self.path}: {self.place(k)}, column {names[int(j)]!r}: the number is "
                f"{parts[int(j)][k]}, in SI units {found[k, j]}; leave the cell empty where "
                "nothing was measured"
            )
        return found


def read_columns(path: Path, names: Sequence[str] | None = None) -> Columns:
    """All columns of a CSV file, or of an npz file with an array (n,) for each.

    names: those of a CSV file without a header. Cells are separated by commas, semicolons or tabs,
    may be quoted, and are numbers with a decimal point; empty ones are NaN. Lines that begin with #
    are comments; a header in a comment, as NumPy writes it, is recognised. Raises DataError for an
    unreadable file, naming the line.
    """
    try:
        if not path.is_file():
            raise DataError(f"{path}: there is no such file")
        if path.suffix == ".npz":
            return _archive(path)
        with path.open(encoding="utf-8-sig", newline="") as lines:
            return _text(path, lines.readlines(), names)
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}: the byte {error.object[error.start]:#04x} is not UTF-8; save the file as "
            "text in UTF-8"
        ) from None
    except csv.Error as error:
        raise DataError(f"{path}: this is not CSV: {error}; write a row of cells a line") from None
    except OSError as error:
        raise DataError(f"{path}: this cannot be read: {error.strerror or error}") from None


def _archive(path: Path) -> Columns:
    try:
        with np.load(path) as arrays:
            values = {name: np.asarray(arrays[name]) for name in arrays.files}
    except Exception as error:  # NumPy, zipfile and zlib raise many types for a broken file
        raise DataError(
            f"{path}: this is no archive of arrays of numbers ({type(error).__name__}); write it "
            "with numpy.savez"
        ) from None
    return Columns(path, values)


def _text(path: Path, lines: Sequence[str], names: Sequence[str] | None) -> Columns:
    comment = [line.lstrip().startswith("#") for line in lines]
    first = next((k for k, line in enumerate(lines) if line.strip() and not comment[k]), None)
    nothing = DataError(f"{path}: there are no rows; give a header and a row for each time")
    if first is None:
        raise nothing
    separator = _separator(lines[first])
    # Comments are kept as empty lines, so that line numbers are those of the file.
    bare = ("\n" if is_comment else line for line, is_comment in zip(lines, comment, strict=True))
    reader = csv.reader(bare, delimiter=separator, skipinitialspace=True)
    rows = ((reader.line_num, row) for row in reader if len(row) > 1 or any(map(str.strip, row)))
    if names is None:
        names = _header(lines, first, separator)
        if names is None:
            _, cells = next(rows, (0, []))
            if not cells:
                raise nothing
            names = [name.strip() for name in cells]
    for name, count in collections.Counter(names).items():
        if count > 1:
            raise DataError(f"{path}: there are {count} columns {shown(name)}; name them apart")
    numbers, places = array.array("d"), array.array("q")
    for line, row in rows:
        if len(row) != len(names):
            raise DataError(
                f"{path}: line {line} has {len(row)} cells, but the header {len(names)}"
            )
        for name, cell in zip(names, row, strict=True):
            number = _number(cell)
            if number is None:
                raise DataError(
                    f"{path}: line {line}, column {shown(name)}: {shown(cell)} is not a number"
                    f"{_HINT if ',' in cell else ''}"
                )
            numbers.append(number)
        places.append(line)
    values = np.array(numbers).reshape(len(places), len(names))
    return Columns(path, dict(zip(names, values.T, strict=True)), np.array(places))


def _separator(line: str) -> str:
    """Semicolons and tabs before commas, which may be decimal commas."""
    return next((c for c in ";\t" if len(next(csv.reader([line], delimiter=c))) > 1), ",")


def _header(lines: Sequence[str], first: int, separator: str) -> list[str] | None:
    """The names in the last comment before the first row, if that row has numbers already."""
    cells = next(csv.reader([lines[first]], delimiter=separator, skipinitialspace=True))
    if first == 0 or any(_number(cell) is None for cell in cells):
        return None
    said = lines[first - 1].strip().removeprefix("#")
    names = next(csv.reader([said], delimiter=separator, skipinitialspace=True), [])
    return [name.strip() for name in names] if len(names) == len(cells) else None


def _number(cell: str) -> float | None:
    """NaN for an empty cell, None for one that is no number."""
    cell = cell.strip()
    try:
        # float() accepts underscores between digits.
        return None if "_" in cell else float(cell or "nan")
    except ValueError:
        return None
