"""How frames on bodies move, and what sensors on them measure of it."""

from __future__ import annotations

import equinox as eqx
import jax
from jaxtyping import Array, Float

from ..dynamics.kinematics import body_twist_components
from ..groups.components import Vector
from ..spatial import Motion
from ..system.fields import number
from ..system.frame import Frame, as_frame
from ..system.kinematic_tree import Tree
from ..system.system import System
from .frames import placed
from .quantity import Labels, Quantity, xyz
from .sensors import AccelerationQuantity, Accelerometer, frame_motion, of_frame


def _twist(system: System, q: jax.Array, v: jax.Array, frame: Frame) -> Motion:
    """The twist of a frame in the world, in its own axes."""
    tree = Tree.of(system)
    return of_frame(system, frame, body_twist_components(tree, q, v), tree.zero_twist)


class LinearVelocity(Quantity):
    """The velocity (3,) of the origin of a frame, in m/s.

        R_ref^T (v - v_ref - w_ref x (p - p_ref))

    frame, reference: a `Frame`, or the name of a body or of a named frame. The velocity is that
    seen from the reference frame, in its axes, by default the world's. For the velocity in the
    frame's own axes use `Velocimeter`.
    """

    frame: Frame = eqx.field(converter=as_frame)
    reference: Frame = eqx.field(converter=as_frame, default=None)

    @property
    def name(self) -> str:
        return f"velocity of {self.frame}"

    def labels(self, system: System) -> Labels:
        return xyz("m/s")

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, "3"]:
        frame, reference = placed(system, q, self.frame, self.reference)
        own, other = (_twist(system, q, v, f) for f in (self.frame, self.reference))
        arm = reference.rotation.transposed_times(frame.translation - reference.translation)
        seen = reference.rotation.transposed_times(frame.rotation @ own.linear)
        return (seen - other.linear - other.angular.cross(arm)).to_array()


class AngularVelocity(Quantity):
    """The angular velocity (3,) of a frame relative to a reference frame, in rad/s.

    frame, reference: as of `LinearVelocity`. It is in the axes of the reference frame, by default
    the world's. For the angular velocity in the frame's own axes use `Gyroscope`.
    """

    frame: Frame = eqx.field(converter=as_frame)
    reference: Frame = eqx.field(converter=as_frame, default=None)

    @property
    def name(self) -> str:
        return f"angular velocity of {self.frame}"

    def labels(self, system: System) -> Labels:
        return xyz("rad/s")

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, "3"]:
        frame, reference = placed(system, q, self.frame, self.reference)
        own, other = (_twist(system, q, v, f) for f in (self.frame, self.reference))
        seen = reference.rotation.transposed_times(frame.rotation @ own.angular)
        return (seen - other.angular).to_array()


class Velocimeter(Quantity):
    """The velocity (3,) of the origin of a frame in the world, in the frame's axes, in m/s.

    frame: a `Frame`, or the name of a body or of a named frame.
    """

    frame: Frame = eqx.field(converter=as_frame)

    @property
    def name(self) -> str:
        return f"own velocity of {self.frame}"

    def labels(self, system: System) -> Labels:
        return xyz("m/s")

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, "3"]:
        return _twist(system, q, v, self.frame).linear.to_array()


class Magnetometer(Quantity):
    """A uniform field (3,) of the world in the axes of a frame, in T.

    frame: a `Frame`, or the name of a body or of a named frame; field (3,): in world coordinates.
    """

    frame: Frame = eqx.field(converter=as_frame)
    field: jax.Array = eqx.field(converter=number(unit="T", shape=(3,)))

    @property
    def name(self) -> str:
        return f"magnetic field at {self.frame}"

    def labels(self, system: System) -> Labels:
        return xyz("T")

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: jax.Array,
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, "3"]:
        (frame,) = placed(system, q, self.frame)
        return frame.rotation.transposed_times(Vector.from_array(self.field)).to_array()


class ProperAcceleration(AccelerationQuantity):
    """The acceleration (3,) of the origin of a frame less gravity, in world axes, in m/s^2.

        d^2p/dt^2 - g

    It is what `Accelerometer` has in the frame's axes. frame: a `Frame`, or the name of a body or
    of a named frame.
    """

    frame: Frame = eqx.field(converter=as_frame)

    @property
    def name(self) -> str:
        return f"proper acceleration of {self.frame}"

    def labels(self, system: System) -> Labels:
        return xyz("m/s^2")

    def at(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        a: Float[Array, " nv"],
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, "3"]:
        (frame,) = placed(system, q, self.frame)
        own = Accelerometer(self.frame).at(system, q, v, a, u, t)
        return (frame.rotation @ Vector.from_array(own)).to_array()


class AngularAcceleration(AccelerationQuantity):
    """The angular acceleration (3,) of a frame in the world, in world axes, in rad/s^2.

    frame: a `Frame`, or the name of a body or of a named frame.
    """

    frame: Frame = eqx.field(converter=as_frame)

    @property
    def name(self) -> str:
        return f"angular acceleration of {self.frame}"

    def labels(self, system: System) -> Labels:
        return xyz("rad/s^2")

    def at(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        a: Float[Array, " nv"],
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, "3"]:
        (frame,) = placed(system, q, self.frame)
        _, change = frame_motion(system, q, v, a, self.frame)
        return (frame.rotation @ change.angular).to_array()
