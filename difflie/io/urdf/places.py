"""Where things are in a URDF file: origins, and the files of meshes."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...system import ModelError
from ..files import present
from ..robot_elements import Element
from ..robot_files import of_angles, of_quaternion
from ..unread import Notes


def origin_of(element: Element, notes: Notes) -> tuple[list[float], NDArray]:
    """The position (3,) in m and the rotation of an element's <origin>; zero without one.

    The rotation is a vector (3,) where it is about one axis of rpy, for which it is exact, else a
    matrix (3, 3).
    """
    zero = [0.0, 0.0, 0.0]
    origin = element.child("origin")
    if origin is None:
        return zero, np.zeros(3)
    position = origin.numbers("xyz", 3, zero)
    if origin.get("quat_xyzw") is not None:
        return position, _quaternion(origin, notes)
    rpy = np.array(origin.numbers("rpy", 3, zero))
    if np.count_nonzero(rpy) > 1 and np.abs(rpy).max() > 2 * np.pi:
        notes["rpy beyond 2 pi, which looks like degrees; radians are needed"].append(origin.line)
    return position, rpy if np.count_nonzero(rpy) < 2 else of_angles(rpy)


def _quaternion(origin: Element, notes: Notes) -> NDArray:
    """The rotation matrix (3, 3) of quat_xyzw, which URDF has since its version 1.1."""
    if origin.get("rpy") is not None:
        raise ModelError(f"{origin.source}: it has rpy and quat_xyzw; leave one of them out")
    x, y, z, w = origin.numbers("quat_xyzw", 4)
    length = math.hypot(x, y, z, w)
    if length == 0:
        raise ModelError(f"{origin.source}: quat_xyzw is zero; give it a direction")
    if abs(length - 1) > 1e-3:  # less is rounding
        notes["quat_xyzw not of unit length, normalised"].append(origin.line)
    return of_quaternion([w, x, y, z])


def matrix_of(rotation: NDArray) -> NDArray:
    """The rotation matrix (3, 3) of a rotation as `origin_of` returns it."""
    return of_angles(rotation) if rotation.ndim == 1 else rotation


# More names are only counted.
_MOST = 8


def missing_meshes(robot: Element, folder: Path) -> str:
    """A remark with the names of the meshes that are not there, "" if there are none.

    A path is relative to the folder of the file. package://NAME/PATH is sought as NAME/PATH in this
    folder and in those above it, as robots' descriptions are laid out.
    """
    meshes = (e.attributes.get("filename", "") for e in robot.walk() if e.tag == "mesh")
    at = folder.absolute()
    names = [Path(m).name for m in dict.fromkeys(meshes) if m and not present(mesh_file(m, at))]
    if not names:
        return ""
    others = len(names) - _MOST
    more = f" and {others} more" if others > 0 else ""
    return f"meshes that are missing, and skipped: {', '.join(names[:_MOST])}{more}"


def mesh_file(mesh: str, folder: Path) -> Path:
    """The path of a mesh, which need not be there; an absolute path stays as it is."""
    scheme, _, place = mesh.rpartition("://")
    if scheme in ("", "file"):
        return folder / place
    places = [above / place for above in (folder, *folder.parents)]
    return next(filter(present, places), places[0])


def numbers_text(values: ArrayLike) -> str:
    """All digits of a number or array."""
    return " ".join(repr(float(x)) for x in np.ravel(values))


def roll_pitch_yaw(rotation: NDArray) -> NDArray:
    """The angles (3,) about the fixed x, y and z axes, in turn, of a rotation vector (3,).

    With the yaw taken first the others are exact to rounding also at a pitch of 90 degrees.
    """
    if np.count_nonzero(rotation) < 2:
        return rotation
    angle = np.linalg.norm(rotation)
    x, y, z = rotation / angle
    hat = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    r = np.eye(3) + np.sin(angle) * hat + 2 * np.sin(angle / 2) ** 2 * hat @ hat
    yaw = np.arctan2(r[1, 0], r[0, 0])
    c, s = np.cos(yaw), np.sin(yaw)
    pitch = np.arctan2(-r[2, 0], c * r[0, 0] + s * r[1, 0])
    roll = np.arctan2(s * r[0, 2] - c * r[1, 2], c * r[1, 1] - s * r[0, 1])
    return np.array([roll, pitch, yaw])
