"""Poses of SDF files: <pose>x y z roll pitch yaw</pose> as matrices."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ...system import ModelError
from ...system.validation import format_value
from ..robot_elements import Element
from ..robot_files import of_angles, of_quaternion

_FLAGS = {"true": True, "1": True, "false": False, "0": False}


def matrix(pose: Element | None) -> NDArray:
    """The matrix (4, 4) of a <pose>, the identity without one; its relative_to is not read."""
    placed = np.eye(4)
    if pose is None or not pose.words():
        return placed
    form = pose.get("rotation_format") or "euler_rpy"
    degrees = pose.get("degrees") or "false"
    if degrees not in _FLAGS:
        raise ModelError(f"{pose.source}: degrees is {format_value(degrees)}; write true or false")
    if form == "euler_rpy":
        *position, roll, pitch, yaw = pose.values(6)
        unit = math.pi / 180 if _FLAGS[degrees] else 1.0
        if any((roll, pitch, yaw)):
            placed[:3, :3] = of_angles([unit * roll, unit * pitch, unit * yaw])
    elif form == "quat_xyzw":
        *position, x, y, z, w = pose.values(7)
        if math.hypot(x, y, z, w) == 0:
            raise ModelError(f"{pose.source}: the quaternion is zero; give it a direction")
        placed[:3, :3] = of_quaternion([w, x, y, z])
    else:
        raise ModelError(
            f"{pose.source}: rotation_format is {format_value(form)}; it must be euler_rpy or "
            "quat_xyzw"
        )
    placed[:3, 3] = position
    return placed


def inverse(pose: NDArray) -> NDArray:
    """The inverse (4, 4) of a pose (4, 4)."""
    back = np.eye(4)
    back[:3, :3] = pose[:3, :3].T
    back[:3, 3] = -pose[:3, :3].T @ pose[:3, 3]
    return back
