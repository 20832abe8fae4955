"""Spatial vectors: twists and spatial accelerations, wrenches and momenta."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from ..groups import quaternion, se3, so3
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


@components
@dataclass(frozen=True, slots=True)
class Motion(Componentwise):
    """A twist or a spatial acceleration (6,), angular part first.

    Units: rad/s and m/s, or rad/s^2 and m/s^2.
    """

    angular: Vector
    linear: Vector

    def cross(self, o: Motion) -> Motion:
        """ad_self o, the Lie bracket (spatial cross product of motions)."""
        return Motion(
            self.angular.cross(o.angular),
            self.angular.cross(o.linear) + self.linear.cross(o.angular),
        )

    def cross_force(self, f: Force) -> Force:
        """-ad_self^T f: the rate of change of a wrench fixed in a frame that moves with self."""
        return Force(
            self.angular.cross(f.moment) + self.linear.cross(f.force), self.angular.cross(f.force)
        )

    # The methods of `Screw`: a motion can stand for a screw axis of any direction.

    def times(self, rate: Scalar) -> Motion:
        """self * rate."""
        return self * rate

    def add_to(self, m: Motion) -> Motion:
        """m + self."""
        return m + self

    def bracket(self, m: Motion) -> Motion:
        """ad_m self."""
        return m.cross(self)

    def column(self, i: Any) -> Force:
        """i @ self: the wrench of a unit acceleration along self, i an `ArticulatedInertia`."""
        return i @ self

    def dot(self, f: Force) -> Scalar:
        """The power of a wrench on this twist (W)."""
        return self.angular.dot(f.moment) + self.linear.dot(f.force)

    def then(self, o: Motion) -> Motion:
        """log(exp(self) exp(o)), of least rotation, to the relative precision of both.

        The logarithm of a product of matrices would lose what is small compared with 1.
        """
        a, b = self.angular, o.angular
        turned = quaternion.exp_components(a)
        w = quaternion.log_components(
            *quaternion.multiply_components(*turned, *quaternion.exp_components(b))
        )
        moved = quaternion.to_matrix_components(*turned) @ se3.exp_translation_components(
            b, o.linear
        )
        moved = se3.exp_translation_components(a, self.linear) + moved
        return Motion(w, so3.dexp_inv_components(w) @ moved)

    @staticmethod
    def zero(o: Scalar) -> Motion:
        """Zero motion; o is a zero of the components' shape."""
        return Motion(Vector(o, o, o), Vector(o, o, o))

    @staticmethod
    def from_array(a: jax.Array) -> Motion:
        """The components of an array (..., 6), angular part first."""
        return Motion(Vector.from_array(a[..., :3]), Vector.from_array(a[..., 3:]))

    def to_array(self) -> jax.Array:
        """The array (..., 6), angular part first."""
        return jnp.concatenate((self.angular.to_array(), self.linear.to_array()), axis=-1)
