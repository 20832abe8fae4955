"""ROS bags and MCAP files: the messages sensor_msgs/JointState of a topic, as columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ...io.results import LARGEST
from ...system.installation import extra
from ...system.validation import format_value, nearest
from .columns import Columns, DataError

SUFFIXES = ".mcap", ".db3", ".bag"
_TYPE = "sensor_msgs/msg/JointState"
# The arrays of a message, and how the columns of each begin.
_PARTS = {"position": "pos_", "velocity": "vel_", "effort": "eff_"}


def is_bag(path: Path) -> bool:
    """Whether a path is that of a bag: a file, or a folder with the metadata of ROS 2."""
    return path.suffix in SUFFIXES or (path / "metadata.yaml").is_file()


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
