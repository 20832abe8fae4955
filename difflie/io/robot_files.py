"""What the readers of URDF, SDF and MJCF share: root elements, references, names and rotations."""

from __future__ import annotations

from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray

from ..system.validation import ModelError, format_value


def distinct(name: str, taken: Container[str]) -> str:
    """The name, with underscores appended until it is not among the taken ones."""
    while name in taken:
        name += "_"
    return name


def of_quaternion(quaternion: Sequence[float] | NDArray) -> NDArray:
    """The rotation matrix (3, 3) of a quaternion (4,) (w, x, y, z) of any length but zero."""
    w, x, y, z = np.asarray(quaternion, float) / np.linalg.norm(quaternion)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def of_rotation_vector(rotation: Sequence[float] | NDArray) -> NDArray:
    """The unit quaternion (4,) (w, x, y, z) of a rotation vector (3,) in rad."""
    vector = np.asarray(rotation, float)
    half = np.linalg.norm(vector) / 2
    return np.append(np.cos(half), np.sinc(half / np.pi) / 2 * vector)


def of_angles(rpy: Sequence[float] | NDArray) -> NDArray:
    """The rotation matrix (3, 3) of roll, pitch and yaw about the fixed x, y, z axes, in turn."""
    (cr, cp, cy), (sr, sp, sy) = np.cos(rpy), np.sin(rpy)
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def root_tag(path: Path) -> str | None:
    """The root element's tag; None where there is none, which the reader will report."""
    found: list[str] = []
    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda tag, attributes: found.append(tag)
    try:
        with path.open("rb") as file:
            while not found and (chunk := file.read(4096)):
                parser.Parse(chunk)
    except (OSError, expat.ExpatError, LookupError, ValueError):
        pass
    return found[0] if found else None


def refuse_other_files(parser: Any, path: Path) -> None:
    """Makes an expat parser raise `ModelError` where XML includes parts of other files.

    They are not read, and the file without them would describe another machine.
    """

    def refuse(what: str) -> None:
        raise ModelError(
            f"{path}:{parser.CurrentLineNumber}: {what} from another file, which is not read; put "
            "what it stands for into this one"
        )

    def doctype(name: str, system: str | None, public: str | None, inside: bool) -> None:
        if system is not None or public is not None:
            refuse("<!DOCTYPE> takes a document type")

    def entity(name: str, parameter: bool, value: str | None, *others: str | None) -> None:
        if value is None:
            refuse(f"<!ENTITY {plain(name)}> takes a part of the text")

    def skipped(name: str, parameter: bool) -> None:
        refuse(f"&{plain(name)}; stands for a part of the text")

    parser.StartDoctypeDeclHandler = doctype
    parser.EntityDeclHandler = entity
    parser.SkippedEntityHandler = skipped


def plain(name: str) -> str:
    """A name as messages show it, without quotes."""
    return format_value(name)[1:-1]
