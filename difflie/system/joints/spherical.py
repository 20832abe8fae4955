"""A ball joint."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from ...groups import UnitQuaternion, quaternion, se3
from ...groups.components import Vector
from .joint import Dof, Joint


@dataclass(frozen=True, kw_only=True)
class Spherical(Joint):
    """A ball joint: unit quaternion (4,), body-fixed angular velocity (3,) in rad/s.

    q is (w, x, y, z), the body frame's orientation in the joint frame. Arguments as of `Joint`.

    >>> top = dl.chain([dl.Body(name="top", joint=dl.Spherical(), mass=1.0, inertia=np.eye(3))])
    >>> top.neutral().tolist(), top.nv
    ([1.0, 0.0, 0.0, 0.0], 3)
    """

    @property
    def manifold(self) -> UnitQuaternion:
        return UnitQuaternion()

    def transform(self, q: jax.Array) -> jax.Array:
        rotation = quaternion.to_matrix_components(q[0], Vector.from_array(q[1:]))
        return se3.pose_array(rotation, Vector(*[jnp.zeros_like(q[0])] * 3))

    def dofs(self) -> tuple[Dof, ...]:
        return tuple(Dof("revolute", e) for e in np.eye(3).tolist())
