"""Text with a row of cells in each line (CSV), as columns."""

from __future__ import annotations

import array
import collections
import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ...system.validation import format_value
from .columns import Columns, DataError

_HINT = "; write numbers with a decimal point"


def columns_of_text(
    path: Path, lines: Sequence[str], names: Sequence[str] | None = None
) -> Columns:
    """The columns in the lines of a file; names: those of one without a header.

    Cells are separated by commas, semicolons or tabs, may be quoted, and are numbers with a decimal
    point; empty ones are NaN. Lines that begin with # are comments; a header in a comment, as NumPy
    writes it, is recognised. Raises DataError that names the line.
    """
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
            raise DataError(
                f"{path}: there are {count} columns {format_value(name)}; name them apart"
            )
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
                    f"{path}: line {line}, column {format_value(name)}: {format_value(cell)} is "
                    f"not a number{_HINT if ',' in cell else ''}"
                )
            numbers.append(number)
        places.append(line)
    values = np.array(numbers).reshape(len(places), len(names))
    return Columns(str(path), dict(zip(names, values.T, strict=True)), np.array(places))


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
