"""Unilateral constraints: contacts and stops, which push and do not pull.

    g >= 0,   lambda_n >= 0,   g lambda_n = 0,        |lambda_t| <= mu lambda_n

At a closed gap g the multiplier decides: the contact stays closed while lambda_n is positive, and
sticks while the force is inside the Coulomb friction cone (Moreau 1988; Reuss 2002, conditional
constraints). On impact the normal velocity is reversed, times the coefficient of restitution.
"""

from __future__ import annotations

import abc
from typing import TypeVar

import equinox as eqx
import jax

from ..collision.distances.planes import balls_above
from ..collision.distances.spheres_and_capsules import balls
from ..collision.distances.witness import Witness, axis
from ..groups.components import Scalar, Vector, across
from ..spatial import Motion, Transform
from ..system.fields import number
from ..system.frame import Frame
from ..system.kinematic_tree import Tree
from ..system.system import System
from ..system.validation import ModelError
from .constraint import Constraint, CoordinateConstraint, FrameConstraint


class Unilateral(Constraint):
    """A gap that cannot become negative, with friction where it is closed.

    Its residual is the gap; its rates are those of the gap and of the tangential slip. friction ()
    is the coefficient mu; restitution () is that of Newton's impact law, e, from 0 to 1; both are
    leaves without unit.
    """

    friction: jax.Array = eqx.field(default=0.0, converter=number(nonnegative=True), kw_only=True)
    restitution: jax.Array = eqx.field(default=0.0, converter=number(least=0, most=1), kw_only=True)


class HardContact(Unilateral, FrameConstraint):
    """A contact between the surfaces of two bodies, with Coulomb friction.

    first, second: frames on the bodies. One gap in m; three rates in m/s: that of the gap, and the
    slip of the first body relative to the second along two tangents.
    """

    first: Frame
    second: Frame

    equations = "gap", "slip along x", "slip along y"

    @abc.abstractmethod
    def meeting(self, a: Transform, b: Transform) -> Witness:
        """The contact point of b with a, in the world."""

    def place(self, met: Witness) -> Vector:
        """Where both are touched."""
        return met.second

    def residual(self, a: Transform, b: Transform) -> list[Scalar]:
        return [self.meeting(a, b).gap]

    def rate(self, frames: tuple[Transform, ...], twists: tuple[Motion, ...]) -> list[Scalar]:
        contact = self.meeting(*frames)
        place = self.place(contact)
        u, w = (_velocity(f, t, place) for f, t in zip(frames, twists, strict=True))
        n, slip = contact.normal, u - w
        x, y = across(n)
        return [n.dot(slip), x.dot(slip), y.dot(slip)]


class PointOnPlane(HardContact):
    """The origin of the first frame above the x-y plane of the second.

    The gap is in m. friction and restitution: as of `Unilateral`.
    """

    def meeting(self, a: Transform, b: Transform) -> Witness:
        return balls_above(b.translation, _z(b), a.translation - b.translation, 0.0)


class SphereOnPlane(HardContact):
    """A sphere about the origin of the first frame above the x-y plane of the second.

    radius () in m, a leaf. friction and restitution: as of `Unilateral`.
    """

    radius: jax.Array = eqx.field(converter=number(unit="m", nonnegative=True))

    def meeting(self, a: Transform, b: Transform) -> Witness:
        return balls_above(b.translation, _z(b), a.translation - b.translation, self.radius)


class SphereOnSphere(HardContact):
    """Spheres about the origins of both frames, outside each other.

    radius () of the first and other_radius () of the second in m, leaves. friction and restitution:
    as of `Unilateral`.
    """

    radius: jax.Array = eqx.field(converter=number(unit="m", nonnegative=True))
    other_radius: jax.Array = eqx.field(converter=number(unit="m", nonnegative=True))

    def meeting(self, a: Transform, b: Transform) -> Witness:
        first, second = b.translation, a.translation
        # For coincident centres any direction will do.
        return balls(first, self.other_radius, second, self.radius, axis(2, first.x))

    def place(self, met: Witness) -> Vector:
        return met.middle


class HardStop(Unilateral, CoordinateConstraint):
    """A hard stop of a joint with one degree of freedom.

    joint: its name. lower or upper (): the lower or the upper limit of its coordinate in rad or m,
    a leaf. friction and restitution: as of `Unilateral`. Raises `ModelError` unless exactly one of
    lower and upper is given.
    """

    joint: str = eqx.field(static=True)
    lower: jax.Array | None = eqx.field(
        converter=number(unit="rad or m", optional=True), default=None
    )
    upper: jax.Array | None = eqx.field(
        converter=number(unit="rad or m", optional=True), default=None
    )

    def __post_init__(self) -> None:
        if (self.lower is None) == (self.upper is None):
            raise ModelError(f"HardStop ({self.joint!r}): give its lower or its upper coordinate")

    @property
    def joints(self) -> tuple[str, ...]:
        return (self.joint,)

    equations = ("gap",)

    def residual(self, x: Scalar) -> list[Scalar]:
        return [x - self.lower if self.upper is None else self.upper - x]


Model = TypeVar("Model", System, Tree)


def bilateral(model: Model) -> Model:
    """The same model without unilateral constraints, that is contacts and stops."""
    kept = tuple(c for c in model.constraints if not isinstance(c, Unilateral))
    return model.with_constraints(kept)


def unilateral(model: Model) -> Model:
    """The same model with its unilateral constraints only, that is contacts and stops."""
    kept = tuple(c for c in model.constraints if isinstance(c, Unilateral))
    return model.with_constraints(kept)


def _velocity(frame: Transform, twist: Motion, point: Vector) -> Vector:
    """The velocity in the world of the body's point that is at `point`."""
    r = frame.rotation
    arm = r.transposed_times(point - frame.translation)
    return r @ (twist.linear + twist.angular.cross(arm))


def _z(frame: Transform) -> Vector:
    r = frame.rotation
    return Vector(r.xz, r.yz, r.zz)
