"""The state and the command themselves, and how far the joints are from their limits."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..forces.path import inverse, root
from ..groups import quaternion
from ..system.fields import number
from ..system.joints import Spherical
from ..system.kinematic_tree import Tree
from ..system.system import System
from ..system.validation import ModelError, format_value, nearest
from .quantity import Labels, Quantity


class Coordinates(Quantity):
    """The configuration q (nq,), in rad, m, or the entries of unit quaternions."""

    @property
    def name(self) -> str:
        return "q"

    def labels(self, system: System) -> Labels:
        return system.topology.coordinate_labels

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: jax.Array,
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, " nq"]:
        return q


class Velocities(Quantity):
    """The velocity v (nv,), in rad/s or m/s."""

    @property
    def name(self) -> str:
        return "v"

    def labels(self, system: System) -> Labels:
        return system.topology.velocity_labels

    def __call__(
        self,
        system: System,
        q: jax.Array,
        v: Float[Array, " nv"],
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, " nv"]:
        return v


def _joint(system: System, name: str) -> int:
    """The body of a joint with entries in q and v; raises `ModelError` for another name."""
    if name not in system.joint_names:
        near = nearest(str(name), system.joint_names)
        raise ModelError(
            f"{system.name}: no joint that moves by itself is named {format_value(name)}{near}"
        )
    return system.topology.joints.index(name)


class JointPosition(Quantity):
    """The coordinates (k,) of a joint, in rad, m, or the entries of a unit quaternion.

    joint: its name. Raises `ModelError` for an unknown one, with the nearest.
    """

    joint: str = eqx.field(static=True)

    @property
    def name(self) -> str:
        return f"position of {self.joint!r}"

    def labels(self, system: System) -> Labels:
        start, end = system.topology.coordinate_start[_joint(system, self.joint) :][:2]
        return system.topology.coordinate_labels[start:end]

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: jax.Array,
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, " k"]:
        start, end = system.topology.coordinate_start[_joint(system, self.joint) :][:2]
        return q[start:end]


class JointVelocity(Quantity):
    """The velocities (k,) of a joint, in rad/s or m/s; joint: as of `JointPosition`."""

    joint: str = eqx.field(static=True)

    @property
    def name(self) -> str:
        return f"velocity of {self.joint!r}"

    def labels(self, system: System) -> Labels:
        start, end = system.topology.velocity_start[_joint(system, self.joint) :][:2]
        return system.topology.velocity_labels[start:end]

    def __call__(
        self,
        system: System,
        q: jax.Array,
        v: Float[Array, " nv"],
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, " k"]:
        start, end = system.topology.velocity_start[_joint(system, self.joint) :][:2]
        return v[start:end]


class Time(Quantity):
    """The time (), in s."""

    @property
    def name(self) -> str:
        return "time"

    def labels(self, system: System) -> Labels:
        return (("t", "s"),)

    def __call__(
        self,
        system: System,
        q: jax.Array,
        v: jax.Array,
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, ""]:
        return jnp.asarray(t, q.dtype)


class LimitMargin(Quantity):
    """The distance of each degree of freedom to its nearer position limit (n_dofs,), in rad or m.

    Negative beyond the limit; infinite without limits, and for joints without plain coordinates.
    Mimic joints are included. Midway between both limits the derivative is zero, the mean of both
    sides.
    """

    @property
    def name(self) -> str:
        return "limit left"

    def labels(self, system: System) -> Labels:
        t = system.topology
        return tuple(
            (t.joints[b] + (f"[{i}]" if len(kinds) > 1 else ""), "m" if k == "prismatic" else "rad")
            for b, kinds in enumerate(t.kinds)
            for i, k in enumerate(kinds)
        )

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: jax.Array,
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, " n_dofs"]:
        joints, has_coordinate = system.joints, system.topology.dof_coordinate >= 0
        x = Tree.of(system).coordinates(q)
        left = jnp.minimum(x - joints.lower, joints.upper - x)
        return jnp.where(has_coordinate, left, jnp.inf)


class Overrun(Quantity):
    """How far a joint is beyond its position limits: () in rad or m, negative, 0 within them.

    joint: the name of one with one degree of freedom and a coordinate. rate: whether to read the
    rate of it, in rad/s or m/s, which is 0 within the limits. They are MuJoCo's `jointlimitpos` and
    `jointlimitvel`. Raises `ModelError` as `JointPosition` does.
    """

    joint: str = eqx.field(static=True)
    rate: bool = eqx.field(static=True, default=False)

    @property
    def name(self) -> str:
        return f"{'rate of the ' if self.rate else ''}overrun of {self.joint!r}"

    def labels(self, system: System) -> Labels:
        kind = JointVelocity if self.rate else JointPosition
        ((_, unit),) = kind(self.joint).labels(system)
        return ((self.name, unit),)

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, ""]:
        x, k = JointPosition(self.joint)(system, q, v, u, t)[0], _dof(system, self.joint)
        below, above = x - system.joints.lower[k], system.joints.upper[k] - x
        if not self.rate:
            return jnp.where(below < 0, below, jnp.where(above < 0, above, 0))
        speed = JointVelocity(self.joint)(system, q, v, u, t)[0]
        return jnp.where(below < 0, speed, jnp.where(above < 0, -speed, 0))


class RotationOverrun(Quantity):
    """How far a spherical joint is turned beyond a limit: angle - |theta| () in rad, 0 within it.

    theta is the rotation vector of the joint, in rad. joint: its name; angle in rad, the largest
    |theta| within the limit, a scalar. rate: whether to read the rate of it, in rad/s, which is 0
    within the limit. They are MuJoCo's `jointlimitpos` and `jointlimitvel` of ball joints. Raises
    `ModelError` as `JointPosition` does, and for a joint of another type.
    """

    joint: str = eqx.field(static=True)
    angle: jax.Array = eqx.field(converter=number(unit="rad", nonnegative=True))
    rate: bool = eqx.field(static=True, default=False)

    @property
    def name(self) -> str:
        return f"{'rate of the ' if self.rate else ''}overrun of {self.joint!r}"

    def labels(self, system: System) -> Labels:
        if not isinstance(system.topology.types[_joint(system, self.joint)], Spherical):
            raise ModelError(
                f"{system.name}: the joint {self.joint!r} is not spherical; take dq.Overrun"
            )
        return ((self.name, "rad/s" if self.rate else "rad"),)

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, ""]:
        theta = quaternion.log(JointPosition(self.joint)(system, q, v, u, t))
        turned = root(jnp.sum(theta * theta))
        value = self.angle - turned
        if self.rate:
            turning = jnp.sum(theta * JointVelocity(self.joint)(system, q, v, u, t))
            value = -turning * inverse(turned)
        return jnp.where(turned > self.angle, value, 0)


def _dof(system: System, joint: str) -> int:
    return int(system.topology.dof_start[_joint(system, joint)])


class Command(Quantity):
    """The command u (nu,), in the units of the actuators."""

    @property
    def name(self) -> str:
        return "u"

    def labels(self, system: System) -> Labels:
        return ()

    def __call__(
        self,
        system: System,
        q: jax.Array,
        v: jax.Array,
        u: Float[Array, " nu"],
        t: jax.Array | float,
    ) -> Float[Array, " nu"]:
        return u
