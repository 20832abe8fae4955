"""Friction in joints, in proportion to their reactions.

In a joint that slides at the rate s, under a reaction of size rho = |lambda|, the force

    f = -c rho s / sqrt(s^2 + s_0^2)

acts along its degree of freedom: Coulomb friction, smooth over the rate s_0. Friction changes the
reactions, so both are solved for together: lambda is linear in f, which leaves one equation rho =
|lambda(rho)| for each joint with friction. For redundant constraints the reactions are not unique,
and those of minimum norm are taken.
"""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..groups.components import Scalar
from ..solvers.newton import FixedPoint
from ..solvers.root import root
from ..spatial import Motion, Transform
from ..system.fields import number, number_faults
from ..system.frame import Frame
from ..system.kinematic_tree import Tree
from ..system.system import System
from .constraint import JointConstraint, VelocityConstraint


class Friction(eqx.Module):
    """Coulomb friction in a joint, in proportion to its reaction.

    coefficient c: the friction for a reaction of 1 N; in m for a revolute joint (coefficient of
    friction times bearing radius), without unit for a prismatic one. velocity s_0 in rad/s or m/s:
    the rate over which friction rises smoothly. Both are scalars; `constrain` raises `ModelError`
    unless they are positive.
    """

    coefficient: jax.Array = eqx.field(
        converter=number(unit="m or 1", positive=True, fix="without friction give none")
    )
    velocity: jax.Array = eqx.field(
        converter=number(unit="rad/s or m/s", positive=True, fix="it makes friction smooth"),
        default=1e-3,
    )

    def problems(self) -> list[str]:
        """The faults of its numbers, each with the fix."""
        return number_faults(self)


class Bearing(JointConstraint):
    """A joint with one degree of freedom, which may have friction."""

    friction: Friction | None = eqx.field(default=None, kw_only=True)

    loads: ClassVar[tuple[int, ...]]
    """The equations whose multipliers are the reaction, in N, that causes friction."""

    @abc.abstractmethod
    def slip(self, frames: tuple[Transform, Transform], twists: tuple[Motion, Motion]) -> Scalar:
        """The rate () of the joint in rad/s or m/s, linear in the twists of the frames."""

    def problems(self) -> list[str]:
        rubbing = [] if self.friction is None else self.friction.problems()
        return [*super().problems(), *(f"its friction: {fault}" for fault in rubbing)]


class Slip(VelocityConstraint):
    """The rate () of a joint along its own degree of freedom, rad/s or m/s, for its Jacobian."""

    joint: Bearing

    @property
    def frames(self) -> tuple[Frame, ...]:
        return self.joint.frames

    equations = ("slip",)

    def rate(self, frames: Any, twists: Any) -> list[Scalar]:
        return [self.joint.slip(frames, twists)]


def with_friction(system: System) -> list[tuple[int, Bearing]]:
    """The joints with friction, each with the index of its first equation."""
    constraints = system.constraints
    start = np.cumsum([0, *(c.size for c in constraints)]).tolist()
    return [
        (place, c)
        for place, c in zip(start, constraints, strict=False)
        if isinstance(c, Bearing) and c.friction is not None
    ]


def slips(tree: Tree) -> Tree:
    """The tree with the slips of the joints with friction in place of the constraints."""
    return tree.with_constraints(tuple(Slip(c) for _, c in with_friction(tree.system)))


def friction_forces(
    system: System, rates: Float[Array, " k"], free: Float[Array, " m"], unit: Float[Array, "k m"]
) -> Float[Array, " k"]:
    """The friction forces f (k,) in N or N m in the k joints with friction.

    rates (k,): s. free (m,): the multipliers without friction; unit (k, m): the change of these by
    a unit of each f. NaN where no solution is found.
    """
    joints = with_friction(system)
    laws = [c.friction for _, c in joints]
    coefficient = jnp.stack([law.coefficient for law in laws if law is not None])
    width = jnp.stack([law.velocity for law in laws if law is not None])
    slope = -coefficient * rates / jnp.sqrt(rates * rates + width * width)
    loads = [place + np.asarray(c.loads) for place, c in joints]

    def reactions(rho: jax.Array) -> jax.Array:
        found = free + jnp.sum(unit * (slope * rho)[:, None], axis=0)
        squares = jnp.stack([jnp.sum(found[rows] ** 2) for rows in loads])
        loaded = squares > 0
        return jnp.where(loaded, jnp.sqrt(jnp.where(loaded, squares, 1)), 0)

    guess = reactions(jnp.zeros_like(slope))
    rho, found = root(lambda x: x - reactions(x), guess, FixedPoint())
    return slope * jnp.where(found, rho, jnp.nan)
