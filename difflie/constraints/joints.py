"""Joints as constraints: what a joint between two bodies takes away from their motion.

With the frames of both bodies at the joint, E_1 and E_2 their attitudes (columns x, y, z) and
d = r_2 - r_1 what leads from one origin to the other, all in the world, a joint is made of

    point       d = 0                                               3 equations
    along i     e_1i . d = 0                                        1
    ortho ij    e_1i . e_2j = 0                                     1
    lock        vee((Q - Q^T) / 2) = 0,  Q = E_1^T E_2              3

`point` and `along` are in m, the others cosines and sines, without unit, so that multipliers are in
N and N m. The z axes are those of the joint. Wherever it holds the equations of a joint have full
rank. Some of them also hold where the frames are turned by a half revolution, which `misassembled`
tells. Haug 1989; Nikravesh 1988.
"""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from ..groups.components import Scalar, Vector
from ..spatial import Motion, Transform
from ..system.fields import number
from .bearing import Bearing
from .constraint import JointConstraint

_POINT = ("x of the point", "y of the point", "z of the point")
TILTS = ("tilt of the axis about y", "tilt of the axis about x")
OFFSETS = ("offset along x", "offset along y")
_LOCK = ("rotation about x", "rotation about y", "rotation about z")


class FixedConstraint(JointConstraint):
    """Both frames coincide: 6 equations."""

    equations = *_POINT, *_LOCK

    def residual(self, a: Transform, b: Transform) -> list[Scalar]:
        return [*point(a, b), *lock(a, b)]

    def misassembled(self, a: Transform, b: Transform) -> Bool[Array, ""]:
        return turned_over(a, b)


class RevoluteConstraint(Bearing):
    """Rotation about the common z axis: 5 equations."""

    equations = *_POINT, *TILTS

    def residual(self, a: Transform, b: Transform) -> list[Scalar]:
        return [*point(a, b), *parallel(a, b)]

    loads = (0, 1, 2)

    def slip(self, frames: tuple[Transform, Transform], twists: tuple[Motion, Motion]) -> Scalar:
        return turning(frames, twists).z

    def coordinate(self, a: Transform, b: Transform) -> Scalar:
        """The angle in rad, from -pi to pi."""
        cos, sin = axial_turn(a, b)
        return jnp.arctan2(sin, cos)

    def misassembled(self, a: Transform, b: Transform) -> Bool[Array, ""]:
        return reversed_axes(a, b)


class PrismaticConstraint(Bearing):
    """Translation along the common z axis: 5 equations."""

    equations = *_LOCK, *OFFSETS

    def residual(self, a: Transform, b: Transform) -> list[Scalar]:
        return [*lock(a, b), along(a, b, 0), along(a, b, 1)]

    loads = (3, 4)

    def slip(self, frames: tuple[Transform, Transform], twists: tuple[Motion, Motion]) -> Scalar:
        (a, b), (first, second) = frames, twists
        rate = b.rotation @ second.linear - a.rotation @ first.linear
        # The axis turns with the first body.
        carried = (a.rotation @ first.angular).cross(b.translation - a.translation)
        return _axis(a, 2).dot(rate - carried)

    def coordinate(self, a: Transform, b: Transform) -> Scalar:
        """The travel in m."""
        return along(a, b, 2)

    def misassembled(self, a: Transform, b: Transform) -> Bool[Array, ""]:
        return turned_over(a, b)


class TranslationConstraint(JointConstraint):
    """Translation in all directions, both attitudes the same: 3 equations."""

    equations = _LOCK

    def residual(self, a: Transform, b: Transform) -> list[Scalar]:
        return lock(a, b)

    def misassembled(self, a: Transform, b: Transform) -> Bool[Array, ""]:
        return turned_over(a, b)


class CylindricalConstraint(JointConstraint):
    """Rotation about and translation along the common z axis: 4 equations."""

    equations = *TILTS, *OFFSETS

    def residual(self, a: Transform, b: Transform) -> list[Scalar]:
        return [*parallel(a, b), along(a, b, 0), along(a, b, 1)]

    def misassembled(self, a: Transform, b: Transform) -> Bool[Array, ""]:
        return reversed_axes(a, b)


class SphericalConstraint(JointConstraint):
    """Rotation about the common origin, a ball joint: 3 equations."""

    equations = _POINT

    def residual(self, a: Transform, b: Transform) -> list[Scalar]:
        return point(a, b)


class UniversalConstraint(JointConstraint):
    """Rotation about the x axis of the first frame and the y axis of the second: 4 equations.

    angle between both axes in rad, a scalar: a right angle if not given.
    """

    angle: jax.Array = eqx.field(converter=number(unit="rad"), default=math.pi / 2)

    equations = *_POINT, "angle between the axes"

    def residual(self, a: Transform, b: Transform) -> list[Scalar]:
        return [*point(a, b), ortho(a, b, 0, 1) - jnp.cos(self.angle)]


class PlanarConstraint(JointConstraint):
    """Motion in the plane normal to the first frame's z axis: 3 equations."""

    equations = "tilt of the plane about y", "tilt of the plane about x", "offset along z"

    def residual(self, a: Transform, b: Transform) -> list[Scalar]:
        return [*parallel(a, b), along(a, b, 2)]

    def misassembled(self, a: Transform, b: Transform) -> Bool[Array, ""]:
        return reversed_axes(a, b)


def point(a: Transform, b: Transform) -> list[Scalar]:
    """The origins coincide: 3 lengths in m, world axes."""
    d = b.translation - a.translation
    return [d.x, d.y, d.z]


def along(a: Transform, b: Transform, i: int) -> Scalar:
    """The origin of b has no offset along axis i of a: a length in m."""
    return _axis(a, i).dot(b.translation - a.translation)


def ortho(a: Transform, b: Transform, i: int, j: int) -> Scalar:
    """Axis i of a is orthogonal to axis j of b: the cosine between them."""
    return _axis(a, i).dot(_axis(b, j))


def parallel(a: Transform, b: Transform) -> list[Scalar]:
    """The z axes are parallel: 2 cosines."""
    return [ortho(a, b, 0, 2), ortho(a, b, 1, 2)]


def lock(a: Transform, b: Transform) -> list[Scalar]:
    """Both have the same attitude: the sine of the turn times its axis (3,)."""
    axial = (a.rotation.transpose() @ b.rotation).axial() * 0.5
    return [axial.x, axial.y, axial.z]


def axial_turn(a: Transform, b: Transform) -> tuple[Scalar, Scalar]:
    """The cosine and sine of the rotation about the z axes where these are parallel."""
    cos = (ortho(a, b, 0, 0) + ortho(a, b, 1, 1)) * 0.5
    return cos, (ortho(a, b, 1, 0) - ortho(a, b, 0, 1)) * 0.5


def reversed_axes(a: Transform, b: Transform) -> Bool[Array, ""]:
    """Whether the z axes point against each other, a boolean ()."""
    return _axis(a, 2).dot(_axis(b, 2)) < 0


def turned_over(a: Transform, b: Transform) -> Bool[Array, ""]:
    """Whether an attitude is nearer to a half revolution of the other than to it, boolean ()."""
    x, y, z = (_axis(a, i).dot(_axis(b, i)) for i in range(3))
    return x + y + z < 1


def turning(frames: tuple[Transform, Transform], twists: tuple[Motion, Motion]) -> Vector:
    """The angular velocity in rad/s of the second frame against the first, in its axes."""
    (a, b), (first, second) = frames, twists
    return a.rotation.transposed_times(b.rotation @ second.angular) - first.angular


def _axis(frame: Transform, i: int) -> Vector:
    r = frame.rotation
    return (Vector(r.xx, r.yx, r.zx), Vector(r.xy, r.yy, r.zy), Vector(r.xz, r.yz, r.zz))[i]
