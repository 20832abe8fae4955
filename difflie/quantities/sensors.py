"""Quantities that depend on the acceleration, and what sensors measure.

Inertial measurement units measure at a frame, force-torque sensors in a joint.
"""

from __future__ import annotations

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..constraints.motion import constrained_acceleration
from ..constraints.unilateral import Unilateral
from ..dynamics.forward import acceleration
from ..dynamics.kinematics import body_motions, body_twist_components, body_world_poses
from ..forces.actuators.acting import pushes, torques
from ..forces.passive import passive
from ..forces.points import world_wrenches
from ..groups.components import Vector
from ..spatial import Force, Inertia, Motion, Symmetric
from ..system.fields import number
from ..system.frame import Frame, as_frame
from ..system.kinematic_tree import Tree
from ..system.named_frames import placement
from ..system.shared import shared
from ..system.system import System
from ..system.validation import ModelError, format_value, nearest
from .effort import Effort, check_known
from .quantity import Labels, Quantity, xyz


class AccelerationQuantity(Quantity):
    """A quantity that depends on the acceleration a (nv,), in rad/s^2 or m/s^2, as well.

    A subclass defines `at`, its value where the acceleration was measured. Of a state alone,
    f(system, q, v, u, t), the acceleration is that of the motion under the command u and the forces
    of the system itself, in closed loops too. Raises ValueError for unilateral constraints, under
    which there may be impacts, and as `Effort` does for actuators with a memory.
    """

    @abc.abstractmethod
    def at(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        a: Float[Array, " nv"],
        u: Float[Array, " nu"] | None,
        t: jax.Array | float,
    ) -> Float[Array, "..."]:
        """Its value at a moment with this acceleration."""

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        u: Float[Array, " nu"] | None,
        t: jax.Array | float,
    ) -> Float[Array, "..."]:
        return self.at(system, q, v, _acceleration(system, q, v, u, t, self.name), u, t)


def _acceleration(
    system: System,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    u: Float[Array, " nu"] | None,
    t: jax.Array | float,
    name: str,
) -> Float[Array, " nv"]:
    """The acceleration (nv,) of a state under a command u; name: of what depends on it."""
    if any(isinstance(c, Unilateral) for c in system.constraints):
        raise ValueError(
            f"{system.name}: {name} depends on the acceleration, which has jumps at unilateral "
            "constraints; take these off, or put compliant contacts in their place"
        )
    return _of_motion(system, q, v, u, t)


@shared
def _of_motion(
    system: System, q: jax.Array, v: jax.Array, u: jax.Array | None, t: jax.Array | float
) -> jax.Array:
    tree = Tree.of(system)
    effort = jnp.asarray(Effort()(system, q, v, u, t), q.dtype) + passive(tree, q, v)
    if system.constraints:
        return constrained_acceleration(tree, q, v, effort)[0]
    return acceleration(tree, q, v, effort)


class Accelerometer(AccelerationQuantity):
    """The proper acceleration (3,) of the origin of a frame, in that frame, in m/s^2.

        R^T (d^2p/dt^2 - g),    (R, p) the pose of the frame in the world

    At rest it is the upward reaction to gravity. frame: a `Frame`, or the name of a body or of
    a named frame.
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
        twist, change = frame_motion(system, q, v, a, self.frame)
        # The derivative of the velocity's body-fixed components is not that of the velocity.
        return (change.linear + twist.angular.cross(twist.linear)).to_array()


class Gyroscope(Quantity):
    """The angular velocity (3,) of a frame in the world, in that frame, in rad/s.

    frame: a `Frame`, or the name of a body or of a named frame; its position has no effect.
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
        return of_frame(system, self.frame, twists, tree.zero_twist).angular.to_array()


def frame_motion(
    system: System, q: jax.Array, v: jax.Array, a: jax.Array, frame: Frame
) -> tuple[Motion, Motion]:
    """The twist of a frame and its derivative less gravity, both in the frame's axes."""
    tree = Tree.of(system)
    twists, changes = body_motions(tree, q, v, a)
    of_twist = of_frame(system, frame, twists, tree.zero_twist)
    return of_twist, of_frame(system, frame, changes, tree.base_acceleration)


def of_frame(system: System, frame: Frame, bodies: Motion, world: Motion) -> Motion:
    """The motion of a frame, in its axes, from those of all bodies (nb,) and of the world."""
    body, inner = placement(system, frame, bodies.linear.x.dtype)
    if body is None:
        return inner.inverse_motion(world)
    b = system.body_names.index(body)
    return inner.inverse_motion(jax.tree.map(lambda a: a[b], bodies))


class JointWrench(AccelerationQuantity):
    """The wrench (6,) that the parent exerts on the body through its joint: moment, then force.

        F = sum over the bodies beyond the joint of I A - ad(V)^T I V - F_ext

    In N m and N, in the sensor's frame and about its origin. It contains what springs, friction and
    motors of the joint transmit; F_ext are the forces of couplings and actuators at points of these
    bodies. The inertia of rotors (armature) is not in it.

    joint: the name of the joint, which may be fixed, between the parent and the body. position (3,)
    in m and rotation (3,), a rotation vector in rad: the sensor's frame in that of this body, by
    default the same. Raises `ModelError` for an unknown joint, and for systems with constraints,
    whose reactions do not follow from the motion; and ValueError as `Effort` does where an actuator
    pushes along an axis.
    """

    joint: str = eqx.field(static=True)
    position: jax.Array = eqx.field(converter=number(unit="m", shape=(3,)), default=(0.0, 0.0, 0.0))
    rotation: jax.Array = eqx.field(
        converter=number(unit="rad", shape=(3,), kind="rotation"), default=(0.0, 0.0, 0.0)
    )

    @property
    def name(self) -> str:
        return f"wrench in {self.joint!r}"

    def labels(self, system: System) -> Labels:
        return (*xyz("N m", "moment "), *xyz("N", "force "))

    def at(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        a: Float[Array, " nv"],
        u: Float[Array, " nu"] | None,
        t: jax.Array | float,
    ) -> Float[Array, "6"]:
        b, tree = self._body(system), Tree.of(system)
        poses = body_world_poses(tree, q)
        needed = poses.force(_inertial(system, *body_motions(tree, q, v, a)))
        bodies, given = world_wrenches(tree, _at_points(tree, u, q, v), q, v)
        those = beyond(system, b)
        needed = jax.tree.map(lambda x: x[those[:-1]].sum(), needed)
        given = jax.tree.map(lambda x: x[those[bodies]].sum(), given)
        own = Frame(system.body_names[b], self.position, self.rotation)
        inner = jax.tree.map(lambda x: x.astype(q.dtype), own).pose
        return (
            (jax.tree.map(lambda x: x[b], poses) @ inner).inverse_force(needed - given).to_array()
        )

    def _body(self, system: System) -> int:
        """The body of the joint."""
        joints = system.topology.joints
        if self.joint not in joints:
            near = nearest(str(self.joint), joints)
            raise ModelError(f"{system.name}: no joint is named {format_value(self.joint)}{near}")
        if system.constraints:
            raise ModelError(
                f"{system.name}: {self.name} depends on the reactions of its constraints, which do "
                "not follow from the motion; measure machines without closed loops"
            )
        return joints.index(self.joint)


def _inertial(system: System, twist: Any, change: Any) -> Force:
    """I A - ad(V)^T I V (nb,) of every body, in its frame."""
    bodies = system.bodies
    inertia = Inertia.about_com(
        bodies.mass, Vector.from_array(bodies.com), Symmetric.from_array(bodies.inertia)
    )
    return inertia @ change + twist.cross_force(inertia @ twist)


def _at_points(tree: Tree, u: jax.Array | None, q: jax.Array, v: jax.Array) -> list[Any]:
    """The forces at points of bodies: of couplings, and of actuators that act there."""
    system = tree.system
    if all(a.in_coordinates for a in system.actuators):
        return list(system.couplings)
    check_known(system)
    given = torques(tree, jnp.zeros(system.nu, q.dtype) if u is None else u, q, v)
    return [*system.couplings, *pushes(system, given)]


def beyond(system: System, b: int) -> np.ndarray:
    """A mask (nb + 1,) of a body and its descendants; the last entry is the world."""
    parents = system.topology.parents
    those = np.zeros(len(parents) + 1, bool)
    for body, parent in enumerate(parents):
        those[body] = body == b or those[parent]
    return those
