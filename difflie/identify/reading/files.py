"""Any log as columns: text (CSV), archives (npz), ROS bags and MCAP files, and data frames."""

from __future__ import annotations

import array
import collections
import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...io.results import BROKEN, LARGEST, TooLargeError, read_arrays
from ...system.installation import extra
from ...system.validation import format_value, nearest
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
    # Semicolons and tabs before commas, which may be decimal commas.
    cells = {c: next(csv.reader([lines[first]], delimiter=c)) for c in ";\t"}
    separator = next((c for c, several in cells.items() if len(several) > 1), ",")
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


SUFFIXES = ".mcap", ".db3", ".bag"
_TYPE = "sensor_msgs/msg/JointState"
# The arrays of a message, and how the columns of each begin.
_PARTS = {"position": "pos_", "velocity": "vel_", "effort": "eff_"}


def columns_of_bag(path: Path, topic: str | None = None) -> Columns:
    """The columns `time`, `pos_`, `vel_` and `eff_` with the name of each joint, in SI units.

    path: of a bag of ROS 2 (a folder, .mcap or .db3) or of ROS 1 (.bag). time in s, from the first
    message on, is that of the headers, or without any that at which messages were recorded. topic:
    that of the messages, needed where there are several. A message that does not name a joint has a
    gap in its columns. Raises DataError for what cannot be read, and where rosbags is not
    installed.
    """
    try:
        from rosbags.highlevel import AnyReader
        from rosbags.typesys import Stores, get_typestore
    except ImportError:
        raise DataError(
            f"{path}: bags are read by rosbags, which is not installed; {extra('bags')}"
        ) from None
    try:
        # For bags that do not contain the definitions of their messages.
        with AnyReader([path], default_typestore=get_typestore(Stores.LATEST)) as reader:
            meant = _topic(path, reader.connections, topic)
            found, size = [], 0
            for connection, stamp, data in reader.messages(meant):
                # Bags may be packed.
                size += len(data)
                _check_size(path, size)
                found.append((stamp, reader.deserialize(data, connection.msgtype)))
    except DataError:
        raise
    except Exception as error:  # rosbags, SQLite, yaml and zstd raise many types for a broken file
        raise DataError(
            f"{path}: this bag cannot be read: {error or type(error).__name__}; record it again, "
            "or mend it with `ros2 bag reindex`"
        ) from None
    if not found:
        raise DataError(f"{path}: the topic {format_value(meant[0].topic)} has no messages")
    return Columns(str(path), _arrays(path, found), sparse=True)


def _check_size(path: Path, size: int) -> None:
    """Raises DataError for more bytes than are read."""
    if size > LARGEST:
        raise DataError(
            f"{path}: its joint states have more than {LARGEST / 2**30:.3g} GiB; cut it into "
            "several bags"
        )


def _topic(path: Path, connections: list[Any], topic: str | None) -> list[Any]:
    """The connections of one topic of JointState."""
    known = sorted({c.topic for c in connections if c.msgtype == _TYPE})
    if not known:
        others = ", ".join(sorted({c.topic for c in connections})) or "none"
        raise DataError(f"{path}: no topic has messages of {_TYPE}; its topics are {others}")
    if topic is None and len(known) > 1:
        raise DataError(f"{path}: joint states are in {', '.join(known)}; give topic, one of them")
    chosen = known[0] if topic is None else topic
    if chosen not in known:
        raise DataError(
            f"{path}: there are no joint states in {format_value(chosen)}{nearest(chosen, known)}; "
            f"they are in {', '.join(known)}"
        )
    return [c for c in connections if c.topic == chosen and c.msgtype == _TYPE]


def _arrays(path: Path, messages: list[tuple[int, Any]]) -> dict[str, np.ndarray]:
    rows = len(messages)
    stamps = np.array([m.header.stamp.sec * 10**9 + m.header.stamp.nanosec for _, m in messages])
    if not stamps.all():
        stamps = np.array([stamp for stamp, _ in messages])
    columns = {"time": (stamps - stamps[0]) / 1e9}
    for k, (_, message) in enumerate(messages):
        for part, prefix in _PARTS.items():
            numbers = getattr(message, part)
            if len(numbers) not in (0, len(message.name)):
                raise DataError(
                    f"{path}: message {k + 1} has {len(message.name)} joints, but "
                    f"{len(numbers)} of {part}; record it again"
                )
            for name, number in zip(message.name, numbers, strict=False):
                key = f"{prefix}{name}"
                if key not in columns:
                    _check_size(path, 8 * rows * (len(columns) + 1))
                    columns[key] = np.full(rows, np.nan)
                columns[key][k] = number
    return columns


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
        if log.suffix in SUFFIXES or (log / "metadata.yaml").is_file():  # a folder of ROS 2
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
        return np.where(np.isnat(found), np.nan, durations / np.timedelta64(1, "s"))
    if found.dtype.kind in "iuf":
        return found
    try:
        # Of frames whose missing cells are no NaN.
        return np.asarray(column.astype(float), float)
    except (AttributeError, TypeError, ValueError):
        return found
