"""Pairs of links that do not touch, from an SRDF file, which MoveIt keeps beside a URDF file."""

from __future__ import annotations

import os
from pathlib import Path

from ..collision.pairs import Pair
from ..system.validation import ModelError
from .files import existing
from .robot_elements import root_element

# What says otherwise which links touch.
_OTHERS = "disable_default_collisions", "enable_collisions"


def read_disabled(path: str | os.PathLike[str]) -> list[Pair]:
    """The pairs of links of <disable_collisions> in an SRDF file, as `difflie.touching` takes them.

    All else of the file is about planning, and is not read. Raises `ModelError` with the line for a
    file that is no SRDF, a missing link1 or link2, and for <disable_default_collisions> and
    <enable_collisions>; FileNotFoundError where there is no such file.
    """
    path = Path(path)
    data = existing(path, "SRDF").read_bytes()
    robot = root_element(data, path) if data.strip() else None
    if robot is None or robot.tag != "robot":
        line = f"{path}:1" if robot is None else robot.source
        raise ModelError(f"{line}: this is no SRDF file; its root element is <robot>")
    for element in (e for e in robot.children if e.tag in _OTHERS):
        raise ModelError(
            f"{element.source}: only <disable_collisions> is read; list the pairs by these"
        )
    rows = robot.all("disable_collisions")
    return [(row.needed("link1"), row.needed("link2")) for row in rows]
