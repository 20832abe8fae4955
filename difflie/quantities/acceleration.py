"""Quantities that depend on the acceleration."""

from __future__ import annotations

import abc

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..constraints.motion import constrained_acceleration
from ..constraints.unilateral import Unilateral
from ..dynamics.forward import acceleration
from ..forces.passive import passive
from ..system.kinematic_tree import Tree
from ..system.system import System
from .effort import Effort
from .quantity import Quantity


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
        return self.at(system, q, v, _acceleration(self.name, system, q, v, u, t), u, t)


def _acceleration(
    name: str,
    system: System,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    u: Float[Array, " nu"] | None,
    t: jax.Array | float,
) -> Float[Array, " nv"]:
    """The acceleration (nv,) of a state under a command u."""
    if any(isinstance(c, Unilateral) for c in system.constraints):
        raise ValueError(
            f"{system.name}: {name} depends on the acceleration, which has jumps at unilateral "
            "constraints; take these off, or put compliant contacts in their place"
        )
    tree = Tree.of(system)
    effort = jnp.asarray(Effort()(system, q, v, u, t), q.dtype) + passive(tree, q, v)
    if system.constraints:
        return constrained_acceleration(tree, q, v, effort)[0]
    return acceleration(tree, q, v, effort)
