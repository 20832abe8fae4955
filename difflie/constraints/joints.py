"""Joints as constraints between frames on two bodies, the screw and a massless rod among them.

With the frames of both bodies at the joint, E_1 and E_2 their orientations (columns x, y, z) and d
= r_2 - r_1 the vector between the origins, all in the world, a joint consists of

    point       d = 0                                               3 equations
    along i     e_1i . d = 0                                        1
    ortho ij    e_1i . e_2j = 0                                     1
    lock        vee((Q - Q^T) / 2) = 0,  Q = E_1^T E_2              3

`point` and `along` are in m; the others are cosines and sines, without unit, so that multipliers
are in N and N m. The joint axis is z. The equations of a joint have full rank wherever it is
assembled. Some of them also hold with the frames half a revolution apart, which `misassembled`
detects. Haug 1989; Nikravesh 1988.
"""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool

from ..groups.components import Scalar, Vector
from ..spatial import Motion, Transform
from ..system.fields import number
from .constraint import JointConstraint
from .friction import Bearing

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
        transported = (a.rotation @ first.angular).cross(b.translation - a.translation)
        return _axis(a, 2).dot(rate - transported)

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

    angle between both axes in rad, a scalar; by default a right angle.
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
    """The vector between the origins, 3 lengths () in m, world axes: zero where they coincide."""
    d = b.translation - a.translation
    return [d.x, d.y, d.z]


def along(a: Transform, b: Transform, i: int) -> Scalar:
    """The offset () in m of the origin of b along axis i of a."""
    return _axis(a, i).dot(b.translation - a.translation)


def ortho(a: Transform, b: Transform, i: int, j: int) -> Scalar:
    """The cosine () between axis i of a and axis j of b: zero where they are orthogonal."""
    return _axis(a, i).dot(_axis(b, j))


def parallel(a: Transform, b: Transform) -> list[Scalar]:
    """2 cosines (), zero where the z axes are parallel."""
    return [ortho(a, b, 0, 2), ortho(a, b, 1, 2)]


def lock(a: Transform, b: Transform) -> list[Scalar]:
    """sin(angle) times the axis of the relative rotation (3,): zero for equal orientations."""
    axial = (a.rotation.transpose() @ b.rotation).axial() * 0.5
    return [axial.x, axial.y, axial.z]


def axial_turn(a: Transform, b: Transform) -> tuple[Scalar, Scalar]:
    """The cosine and sine () of the rotation about z, for frames with parallel z axes."""
    cos = (ortho(a, b, 0, 0) + ortho(a, b, 1, 1)) * 0.5
    return cos, (ortho(a, b, 1, 0) - ortho(a, b, 0, 1)) * 0.5


def reversed_axes(a: Transform, b: Transform) -> Bool[Array, ""]:
    """Whether the z axes point in opposite directions, a boolean ()."""
    return _axis(a, 2).dot(_axis(b, 2)) < 0


def turned_over(a: Transform, b: Transform) -> Bool[Array, ""]:
    """Whether the relative rotation is nearer to half a revolution than to none, boolean ()."""
    x, y, z = (_axis(a, i).dot(_axis(b, i)) for i in range(3))
    return x + y + z < 1


def turning(frames: tuple[Transform, Transform], twists: tuple[Motion, Motion]) -> Vector:
    """The angular velocity (), in rad/s, of the second frame relative to the first, in its axes."""
    (a, b), (first, second) = frames, twists
    return a.rotation.transposed_times(b.rotation @ second.angular) - first.angular


def _axis(frame: Transform, i: int) -> Vector:
    r = frame.rotation
    return (Vector(r.xx, r.yx, r.zx), Vector(r.xy, r.yy, r.zy), Vector(r.xz, r.yz, r.zz))[i]


class HelicalConstraint(JointConstraint):
    """Rotation about the common z axis by x, which moves the second frame by pitch x: 5 equations.

    pitch p in m/rad, a scalar, not zero. With the travel d along the axis the last equation is p
    sin(d / p - x) = 0. It holds over any number of turns, since the travel counts them. It also
    holds half a revolution off the thread, which `misassembled` detects. From a guess `assemble`
    finds the nearest turn of the thread.
    """

    pitch: jax.Array = eqx.field(converter=number(unit="m/rad"))

    equations = *TILTS, *OFFSETS, "travel along the thread"

    def residual(self, a: Transform, b: Transform) -> list[Scalar]:
        cos, sin = axial_turn(a, b)
        x = self.coordinate(a, b)
        slip = self.pitch * (jnp.sin(x) * cos - jnp.cos(x) * sin)
        return [*parallel(a, b), along(a, b, 0), along(a, b, 1), slip]

    def coordinate(self, a: Transform, b: Transform) -> Scalar:
        """The angle in rad, not wrapped."""
        return along(a, b, 2) / self.pitch

    def misassembled(self, a: Transform, b: Transform) -> Bool[Array, ""]:
        cos, sin = axial_turn(a, b)
        x = self.coordinate(a, b)
        return reversed_axes(a, b) | (jnp.cos(x) * cos + jnp.sin(x) * sin < 0)

    def problems(self) -> list[str]:
        known = not isinstance(self.pitch, Tracer)
        zero = known and not np.any(self.pitch)
        return [
            *super().problems(),
            *(["its pitch is zero; take RevoluteConstraint"] if zero else []),
        ]


class Distance(JointConstraint):
    """The origins of both frames stay at the distance `length` L in m, a scalar: 1 equation.

    With the vector d between the origins it is (d . d - L^2) / (2 L) = 0, which is smooth
    everywhere; where it holds its multiplier is the force in the rod, positive in compression.
    """

    length: jax.Array = eqx.field(
        converter=number(
            unit="m", positive=True, fix="for coinciding points take SphericalConstraint"
        )
    )

    equations = ("distance",)

    def residual(self, a: Transform, b: Transform) -> list[Scalar]:
        d, length = b.translation - a.translation, self.length
        return [(d.square() - length * length) / (2 * length)]
