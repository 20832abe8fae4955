"""Free motion."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import numpy as np

from ...groups import Pose, quaternion, se3
from ...groups.components import Vector
from .joint import Dof, Joint


@dataclass(frozen=True, kw_only=True)
class Free(Joint):
    """Free motion: quaternion and position (7,), body-fixed twist (angular, linear) (6,).

    q is (w, x, y, z) and the origin of the body frame in m, in the joint frame; v is the angular
    velocity in rad/s and the velocity of that origin in m/s, both in body axes. Arguments as of
    `Joint`.

    >>> body = dl.chain([dl.Body(name="body", joint=dl.Free(), mass=2.0, inertia=np.eye(3))])
    >>> body.neutral().tolist(), body.nv
    ([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], 6)
    """

    @property
    def manifold(self) -> Pose:
        return Pose()

    def transform(self, q: jax.Array) -> jax.Array:
        rotation = quaternion.to_matrix_components(q[0], Vector.from_array(q[1:4]))
        return se3.pose_array(rotation, Vector.from_array(q[4:]))

    def dofs(self) -> tuple[Dof, ...]:
        axes = np.eye(3).tolist()
        return tuple(Dof(kind, e) for kind in ("revolute", "prismatic") for e in axes)
