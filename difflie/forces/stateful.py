"""The protocol of parts with internal states, dz/dt = f(z, q, v, u).

Such a part lists its states in `states`, holds their values at the start of a motion in `z0`, and
has one law, which returns the force and dz/dt from what a law of its family gets and z.

States that follow the motion at once, as the rest of a spring that yields, have a `return_map` in
place of an equation to integrate. Its law is asked at the states that the map gives there, and each
time step ends with z' = return_map(q', z), whatever the method. dz/dt is for the books of energy.
"""

from __future__ import annotations

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..system.fields import number


class Stateful(eqx.Module):
    """A part with internal states, to derive from before `Actuator` or another class of a family.

    z0 (k,): the values of its k states where a motion begins, in their units; None is zero. Within
    a step it holds their present values, which its `z` reads. So a part that stores energy in them
    has a `potential` or `energy`, as others of its family have, that depends on self.z.
    """

    z0: jax.Array | None = eqx.field(
        converter=number(shape=None, optional=True), default=None, kw_only=True
    )

    @property
    @abc.abstractmethod
    def states(self) -> tuple[tuple[str, str], ...]:
        """The name and the unit of each state."""

    def return_map(self, *args: Any, **kwargs: Any) -> Float[Array, " k"]:
        """The states (k,) at a configuration, from those before, z (k,).

        Its arguments are those of the law without the velocities and the command: (x, z) of a
        `StatefulJointForce` or an actuator, (t, joints, x, z) of a `StatefulJointCoupling`,
        (frames, z) of a `StatefulCoupling`. It leaves a state alone that it has returned. By
        default z, and states are integrated.
        """
        return args[-1]

    @property
    def has_return_map(self) -> bool:
        """Whether its states follow the motion at once, by a `return_map` of its own."""
        return type(self).return_map is not Stateful.return_map

    @property
    def z(self) -> Float[Array, " k"]:
        """The values (k,) of its states."""
        return jnp.zeros(len(self.states)) if self.z0 is None else self.z0


def state_faults(element: Any) -> list[str]:
    """Why a part cannot have the states that it lists; empty if it can."""
    if not element.states:
        return []
    if not isinstance(element, Stateful):
        return [
            "it lists states and holds no z0; derive its class from dl.Stateful first, then from "
            "that of its family"
        ]
    wanted, shape = (len(element.states),), jnp.shape(element.z)
    if shape != wanted:
        names = ", ".join(name for name, _ in element.states)
        return [f"z0 has shape {shape}; give one number for each of its states {names}, {wanted}"]
    return []


def filled(element: Any) -> Any:
    """The part with zeros where its states have no value at the start."""
    if not element.states or element.z0 is not None:
        return element
    zeros = jnp.zeros(len(element.states))
    return eqx.tree_at(lambda e: e.z0, element, zeros, is_leaf=lambda x: x is None)
