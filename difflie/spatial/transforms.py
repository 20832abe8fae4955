"""Poses, and how motions and forces change frame."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from ..groups import se3, so3
from ..groups.components import Matrix, Vector, components
from .vectors import Force, Motion


@components
@dataclass(frozen=True, slots=True)
class Transform:
    """A pose (R, p) in m: x_outer = R x_inner + p."""

    rotation: Matrix
    translation: Vector

    def __matmul__(self, o: Transform) -> Transform:
        return Transform(
            self.rotation @ o.rotation, self.rotation @ o.translation + self.translation
        )

    def inverse_motion(self, m: Motion) -> Motion:
        """Ad^-1 m: a motion given in the outer frame, expressed in the inner frame."""
        r = self.rotation
        return Motion(
            r.transposed_times(m.angular),
            r.transposed_times(m.linear - self.translation.cross(m.angular)),
        )

    def motion(self, m: Motion) -> Motion:
        """Ad m: a motion given in the inner frame, expressed in the outer frame."""
        angular = self.rotation @ m.angular
        return Motion(angular, self.rotation @ m.linear + self.translation.cross(angular))

    def force(self, f: Force) -> Force:
        """Ad^-T f: a wrench given in the inner frame, expressed in the outer frame."""
        force = self.rotation @ f.force
        return Force(self.rotation @ f.moment + self.translation.cross(force), force)

    def inverse_force(self, f: Force) -> Force:
        """Ad^T f: a wrench given in the outer frame, expressed in the inner frame."""
        r = self.rotation
        return Force(
            r.transposed_times(f.moment - self.translation.cross(f.force)),
            r.transposed_times(f.force),
        )

    def inverse(self) -> Transform:
        return Transform(
            self.rotation.transpose(), -self.rotation.transposed_times(self.translation)
        )

    @staticmethod
    def exp(m: Motion) -> Transform:
        """exp(m): the displacement by the constant twist m in unit time."""
        w = m.angular
        return Transform(so3.exp_components(w), se3.exp_translation_components(w, m.linear))

    def to_array(self) -> jax.Array:
        """The homogeneous matrices (..., 4, 4)."""
        r, p = self.rotation.to_array(), self.translation.to_array()
        top = jnp.concatenate((r, p[..., None]), axis=-1)
        last = jnp.asarray([0.0, 0.0, 0.0, 1.0], top.dtype)
        bottom = jnp.broadcast_to(last, (*top.shape[:-2], 1, 4))
        return jnp.concatenate((top, bottom), axis=-2)
