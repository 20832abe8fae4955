"""What an inertial measurement unit measures."""

from __future__ import annotations

import equinox as eqx
import jax
from jaxtyping import Array, Float

from ..dynamics.kinematics import body_motions, body_twist_components
from ..spatial import Motion
from ..system.frame import Frame, as_frame
from ..system.kinematic_tree import Tree
from ..system.system import System
from .acceleration import AccelerationQuantity
from .frames import check_frames
from .quantity import Labels, Quantity, xyz


class Accelerometer(AccelerationQuantity):
    """The proper acceleration (3,) of the origin of a frame, in that frame, in m/s^2.

        R^T (d^2p/dt^2 - g),    (R, p) the pose of the frame in the world

    At rest it is the upward reaction to gravity. frame: a `Frame`, or the name of a body for its
    own frame.
    """

    frame: Frame = eqx.field(converter=as_frame)

    @property
    def name(self) -> str:
        return f"acceleration of {self.frame}"

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
        tree = Tree.of(system)
        worlds = tree.zero_twist, tree.base_acceleration
        pairs = zip(body_motions(tree, q, v, a), worlds, strict=True)
        twist, change = (_of_frame(system, self.frame, *pair) for pair in pairs)
        # The derivative of the velocity's body-fixed components is not that of the velocity.
        return (change.linear + twist.angular.cross(twist.linear)).to_array()


class Gyroscope(Quantity):
    """The angular velocity (3,) of a frame in the world, in that frame, in rad/s.

    frame: a `Frame`, or the name of a body for its own frame; its position has no effect.
    """

    frame: Frame = eqx.field(converter=as_frame)

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
        tree = Tree.of(system)
        twists = body_twist_components(tree, q, v)
        return _of_frame(system, self.frame, twists, tree.zero_twist).angular.to_array()


def _of_frame(system: System, frame: Frame, bodies: Motion, world: Motion) -> Motion:
    """The motion of a frame, in its axes, from those of all bodies (nb,) and of the world."""
    check_frames(system, frame)
    inner = jax.tree.map(lambda a: a.astype(bodies.linear.x.dtype), frame).pose
    if frame.body is None:
        return inner.inverse_motion(world)
    b = system.body_names.index(frame.body)
    return inner.inverse_motion(jax.tree.map(lambda a: a[b], bodies))
