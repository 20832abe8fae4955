"""How far something is from its goal."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from ..groups import se3, so3
from ..system.fields import number
from ..system.frame import Frame, as_frame
from ..system.system import System
from ..system.validation import ModelError
from .frames import placed
from .quantity import Labels, Quantity, as_quantity, joined, xyz


class Deviation(Quantity):
    """A quantity (n,) or () less its goal, which is of the same shape, as an array (n,)."""

    quantity: Quantity = eqx.field(converter=as_quantity)
    goal: jax.Array = eqx.field(converter=number(shape=None), default=0.0)

    @property
    def name(self) -> str:
        return f"deviation of {self.quantity.name}"

    def labels(self, system: System) -> Labels:
        return self.quantity.labels(system)

    def __call__(
        self, system: System, q: jax.Array, v: jax.Array, u: jax.Array | None, t: jax.Array | float
    ) -> Float[Array, " n"]:
        value = jnp.atleast_1d(self.quantity(system, q, v, u, t))
        if jnp.issubdtype(value.dtype, jnp.inexact):
            return (value - self.goal.astype(value.dtype)).ravel()
        # Of whole numbers the goal may lie between two.
        return (value - self.goal).ravel()


def is_deviation(quantity: Quantity) -> bool:
    """Whether a quantity is how far something is from its goal."""
    kinds = Deviation, PoseDeviation, StateDeviation, ConfigurationDeviation
    return isinstance(quantity, kinds)


def as_pose(goal: ArrayLike | Frame) -> ArrayLike:
    """The pose (4, 4), in m, of a frame in the world; anything else as it is.

    Raises `ModelError` for a frame on a body.
    """
    if not isinstance(goal, Frame):
        return goal
    if goal.body is not None:
        raise ModelError(f"the goal is a frame on {goal}; leave out its body, it is in the world")
    return jnp.eye(4).at[:3, 3].set(goal.position).at[:3, :3].set(so3.exp(goal.rotation))


class PoseDeviation(Quantity):
    """log(goal^-1 T) (6,), with T the pose of a frame in the world: in rad, then in m.

    frame: a `Frame`, or the name of a body or of a named frame. goal (4, 4): a pose in the world.
    The norm does not depend on the choice of the world frame.
    """

    frame: Frame = eqx.field(converter=as_frame)
    goal: jax.Array = eqx.field(converter=number(unit="m", shape=(4, 4)))

    @property
    def name(self) -> str:
        return f"pose deviation of {self.frame}"

    def labels(self, system: System) -> Labels:
        return (*xyz("rad", "turn "), *xyz("m"))

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: jax.Array,
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, "6"]:
        (frame,) = placed(system, q, self.frame)
        rotation, translation = frame.rotation.to_array(), frame.translation.to_array()
        goal = self.goal.astype(q.dtype)
        turned, origin = goal[:3, :3].T, goal[:3, 3]
        seen = jnp.concatenate((turned @ rotation, (turned @ (translation - origin))[:, None]), 1)
        last = jnp.asarray([[0.0, 0.0, 0.0, 1.0]], q.dtype)
        return se3.log(jnp.concatenate((seen, last)))


class StateDeviation(Quantity):
    """The state less its goal (2 nv,): difference(q goal, q) in the tangent space, v - v goal.

    q (nq,); v (nv,), None for rest.
    """

    q: jax.Array = eqx.field(converter=number(unit="rad or m", shape=None))
    v: jax.Array | None = eqx.field(
        converter=number(unit="rad/s or m/s", shape=None, optional=True), default=None
    )

    @property
    def name(self) -> str:
        return "state deviation"

    def labels(self, system: System) -> Labels:
        rates = system.topology.velocity_labels
        return (*((f"q {name}", unit.removesuffix("/s")) for name, unit in rates), *rates)

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, " m"]:
        goal = self.q.astype(q.dtype)
        moved = system.topology.manifold.difference(goal, q)
        return joined(moved, v if self.v is None else v - self.v.astype(v.dtype))


class ConfigurationDeviation(Quantity):
    """difference(q goal, q) (nv,) in the tangent space, in rad or m; q (nq,)."""

    q: jax.Array = eqx.field(converter=number(unit="rad or m", shape=None))

    @property
    def name(self) -> str:
        return "configuration deviation"

    def labels(self, system: System) -> Labels:
        rates = system.topology.velocity_labels
        return tuple((name, unit.removesuffix("/s")) for name, unit in rates)

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: jax.Array,
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, " nv"]:
        return system.topology.manifold.difference(self.q.astype(q.dtype), q)
