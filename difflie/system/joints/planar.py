"""Motion in a plane."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from .joint import Axis, Dof
from .series import Series, check_directions


@dataclass(frozen=True, kw_only=True)
class Planar(Series):
    """Motion in the plane normal to `normal`: x, y (m) in the joint frame, then the angle (rad).

    Velocities are the derivatives of these coordinates. For the normal (0, 0, 1) the plane's x and
    y are those of the joint frame; for another they are turned with it by the least rotation.
    normal (3,): its direction in the joint frame. Other arguments as of `Joint`.
    """

    normal: Axis = (0.0, 0.0, 1.0)

    def dofs(self) -> tuple[Dof, ...]:
        x, y = plane(np.asarray(self.normal, float))
        return (Dof("prismatic", x), Dof("prismatic", y), Dof("revolute", self.normal))

    def about(self, axes: np.ndarray, pitch: np.ndarray) -> Self:
        joint = replace(self, normal=axes[2])
        own = np.array([d.axis for d in joint.dofs()])
        check_directions(axes, own, "of a plane with the normal in its third row")
        return joint


def plane(normal: np.ndarray) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The images of x and y under the smallest rotation that takes z to the normal (3,).

    For the normal -z, which many such rotations reach, the rotation is about x.
    """
    length = np.linalg.norm(normal)
    x, y, z = (float(c) for c in normal / (length if length > 0 else 1.0))
    across = x * x + y * y
    if z < 0 and across == 0:
        return (1.0, 0.0, 0.0), (0.0, -1.0, 0.0)
    a = 1 / (1 + z) if z >= 0 else (1 - z) / across
    return (1 - x * x * a, -x * y * a, -x), (-x * y * a, 1 - y * y * a, -y)
