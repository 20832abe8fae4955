"""Constant forces at points of bodies."""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
import jax

from ..groups.components import Vector
from ..spatial import Transform
from ..system.fields import number
from .coupling import PointCoupling
from .path import Path, as_path


class PointForce(PointCoupling):
    """A constant force (3,) in N, in world coordinates, at a point of a body.

    path: one pair (body, point (3,) in m in its frame). It counts as an input and not in `energy`.
    """

    needs: ClassVar[str] = "one point"

    path: Path = eqx.field(converter=as_path)
    force: jax.Array = eqx.field(converter=number(unit="N", shape=(3,)))

    def forces(self, frames: Transform, velocities: Vector) -> Vector:
        return Vector.from_array(self.force[None])


class FollowerForce(PointCoupling):
    """A force (3,) in N that turns with the body it acts on, such as a thruster's.

    path: one pair (body, point (3,) in m in its frame); force in body coordinates.
    """

    needs: ClassVar[str] = "one point"

    path: Path = eqx.field(converter=as_path)
    force: jax.Array = eqx.field(converter=number(unit="N", shape=(3,)))

    def forces(self, frames: Transform, velocities: Vector) -> Vector:
        return frames.rotation @ Vector.from_array(self.force[None])
