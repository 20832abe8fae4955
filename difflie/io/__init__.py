"""Files: robots are read from URDF."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ..system import System
from ..system.builders import STANDARD_GRAVITY
from .urdf import read_urdf as read_urdf

_URDF = (".urdf", ".xml", ".xacro", "")


def load(
    path: str | os.PathLike[str],
    *,
    base: str = "fixed",
    gravity: Sequence[float] = STANDARD_GRAVITY,
) -> System:
    """The `System` a robot file describes: URDF, in a file .urdf or .xml.

    base: "fixed" fastens the root link to the world, "free" lets it move on a free joint. gravity
    (3,) in m/s^2, world coordinates. Warns and raises as `read_urdf` does, and raises ValueError
    for a file of another kind.
    """
    path = Path(path)
    if path.suffix.lower() not in _URDF and not path.is_dir():
        raise ValueError(
            f"{path}: a file {path.suffix} is not supported; "
            "supported is URDF, in a file .urdf or .xml with the root element <robot>"
        )
    return read_urdf(path, base=base, gravity=gravity)
