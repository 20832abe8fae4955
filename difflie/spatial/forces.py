"""Wrenches and momenta."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from ..groups.components import Componentwise, Scalar, Vector, components


@components
@dataclass(frozen=True, slots=True)
class Force(Componentwise):
    """A wrench or a momentum (6,): moment (N m or N m s) first, then force (N or N s)."""

    moment: Vector
    force: Vector

    @staticmethod
    def zero(o: Scalar) -> Force:
        """The zero wrench; o is a zero of the components' shape."""
        return Force(Vector(o, o, o), Vector(o, o, o))

    @staticmethod
    def from_array(a: jax.Array) -> Force:
        """The components of an array (..., 6), moment first."""
        return Force(Vector.from_array(a[..., :3]), Vector.from_array(a[..., 3:]))

    def to_array(self) -> jax.Array:
        """The array (..., 6), moment first."""
        return jnp.concatenate((self.moment.to_array(), self.force.to_array()), axis=-1)
