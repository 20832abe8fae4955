"""Bodies that roll or glide on a plane: nonholonomic constraints.

With the twist (w, v) of the second frame relative to the first, in coordinates of the second.
Neimark and Fufaev 1972.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp

from ..groups.components import Scalar, Vector
from ..spatial import Motion, Transform
from ..system.fields import number
from ..system.frame import Frame
from .constraint import VelocityConstraint


class RollingDisk(VelocityConstraint):
    """A thin disk rolls without slipping on a plane: 1 equation of positions, 2 of velocities.

    plane: the frame whose plane z = 0 it rolls on, on the side of positive z. disk: the frame at
    its centre whose z axis is the disk's axis. radius a in m, a scalar. With the axis n and the
    centre r in the plane's frame, s = sqrt(n_x^2 + n_y^2), and u = -a (e_z - n_z n) / s from the
    centre to the contact point:

        r_z - a s = 0,    (R (v + w x R^T u))_x = 0,    (...)_y = 0

    For a disk that lies flat the contact point is undefined, and the equations are NaN.
    """

    plane: Frame
    disk: Frame
    radius: jax.Array = eqx.field(converter=number(unit="m", positive=True))

    equations = "height of the disk", "slip along x of the plane", "slip along y of the plane"

    @property
    def positions(self) -> int:
        return 1

    def residual(self, plane: Transform, disk: Transform) -> list[Scalar]:
        pose = relative_pose(plane, disk)
        r = pose.rotation
        return [pose.translation.z - self.radius * jnp.sqrt(r.xz * r.xz + r.yz * r.yz)]

    def rate(self, frames: tuple[Transform, ...], twists: tuple[Motion, ...]) -> list[Scalar]:
        pose = relative_pose(*frames)
        r, twist = pose.rotation, relative_twist(pose, *twists)
        n = Vector(r.xz, r.yz, r.zz)
        s = jnp.sqrt(n.x * n.x + n.y * n.y)
        zero = jnp.zeros_like(s)
        arm = (Vector(zero, zero, zero + 1) - n * n.z) * (-self.radius / s)
        slip = r @ (twist.linear + twist.angular.cross(r.transposed_times(arm)))
        return [slip.z, slip.x, slip.y]


class KnifeEdge(VelocityConstraint):
    """A blade does not glide sideways: v_y = 0, 1 equation of velocities.

    ground: a frame on the surface. blade: the frame at its contact point, x along it and y across.
    For the blade of a skate or sleigh, or a thin wheel that is kept upright.
    """

    ground: Frame
    blade: Frame

    equations = ("velocity across the blade",)

    def rate(self, frames: tuple[Transform, ...], twists: tuple[Motion, ...]) -> list[Scalar]:
        return [relative_twist(relative_pose(*frames), *twists).linear.y]


def relative_pose(first: Transform, second: Transform) -> Transform:
    """The pose of the second frame in the first, both () in the world."""
    r, d = first.rotation, second.translation - first.translation
    return Transform(r.transpose() @ second.rotation, r.transposed_times(d))


def relative_twist(pose: Transform, first: Motion, second: Motion) -> Motion:
    """The twist () of the second frame relative to the first, in coordinates of the second.

    pose: the second frame in the first. The twists are each in their own frame's coordinates.
    """
    return second + pose.inverse_motion(first) * -1.0
