"""Any log as columns: text (CSV), archives (npz), ROS bags and MCAP files, and data frames."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...io.results import BROKEN, TooLargeError, read_arrays
from ...system.validation import format_value
from .bags import columns_of_bag, is_bag
from .columns import Columns, DataError
from .text import columns_of_text


class Table(Protocol):
    """A data frame, such as of pandas: anything with columns of numbers by name."""

    @property
    def columns(self) -> Iterable[Any]: ...

    def __getitem__(self, name: Any, /) -> Any: ...


def read_columns(
    log: Path | Table, names: Sequence[str] | None = None, topic: str | None = None
) -> Columns:
    """All columns of a log.

    log: a CSV file, an npz file with an array (n,) for each column, a bag, or a data frame. names:
    the columns of a CSV file without a header. topic: that of the joint states of a bag, needed
    where there are several. See `columns_of_text` and `columns_of_bag`. Raises DataError for what
    cannot be read, naming the line.
    """
    if not isinstance(log, Path):
        return _frame(log)
    try:
        if not log.exists():
            raise DataError(f"{log}: there is no such file")
        if is_bag(log):
            return columns_of_bag(log, topic)
        if log.is_dir():
            raise DataError(f"{log}: this is a folder; give a file, or the folder of a ROS 2 bag")
        if log.suffix == ".npz":
            return _archive(log)
        with log.open(encoding="utf-8-sig", newline="") as lines:
            return columns_of_text(log, lines.readlines(), names)
    except UnicodeDecodeError as error:
        raise DataError(
            f"{log}: the byte {error.object[error.start]:#04x} is not UTF-8; save the file as "
            "text in UTF-8"
        ) from None
    except csv.Error as error:
        raise DataError(f"{log}: this is not CSV: {error}; write a row of cells a line") from None
    except OSError as error:
        raise DataError(f"{log}: this cannot be read: {error.strerror or error}") from None


def _archive(path: Path) -> Columns:
    try:
        values = read_arrays(path)
    except TooLargeError as error:
        raise DataError(f"{path}: {error}") from None
    except BROKEN as error:
        raise DataError(
            f"{path}: this is no archive of arrays of numbers ({type(error).__name__}); write it "
            "with numpy.savez"
        ) from None
    return Columns(str(path), values)


def _frame(frame: Table) -> Columns:
    names = [str(name) for name in frame.columns]
    for name in {name for name in names if names.count(name) > 1}:
        raise DataError(
            f"data frame: there are several columns {format_value(name)}; name them apart"
        )
    return Columns(
        "data frame",
        {str(name): _numbers(frame[name]) for name in frame.columns},
    )


def _numbers(column: Any) -> NDArray:
    """A column of a frame as an array; times of day and durations in s, missing cells as NaN."""
    found = np.asarray(column)
    if found.dtype.kind in "mM":
        durations = found - found[:1] if found.dtype.kind == "M" else found
        seconds = durations / np.timedelta64(1, "s")
        return np.where(np.isnat(found), np.nan, seconds)
    if found.dtype.kind in "iuf":
        return found
    try:
        # Of frames whose missing cells are no NaN.
        return np.asarray(column.astype(float), float)
    except (AttributeError, TypeError, ValueError):
        return found
