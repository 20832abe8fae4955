"""Constant forces, friction and damping at points of bodies."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..groups.components import Vector
from ..spatial import Transform
from ..system.fields import number
from .coupling import PointCoupling
from .path import Path, as_path
from .polynomials import higher_damper


class PointForce(PointCoupling):
    """A constant force (3,) in N, in world coordinates, at a point of a body.

    path: one pair (body, point (3,) in m in its frame). It counts as an input and not in `energy`.
    name: as of `Coupling`.
    """

    needs: ClassVar[str] = "one point"

    path: Path = eqx.field(converter=as_path)
    force: jax.Array = eqx.field(converter=number(unit="N", shape=(3,)))

    def forces(self, frames: Transform, velocities: Vector) -> Vector:
        return Vector.from_array(self.force[None])


class FollowerForce(PointCoupling):
    """A force (3,) in N that turns with the body it acts on, such as a thruster's.

    path: one pair (body, point (3,) in m in its frame); force in body coordinates. name: as of
    `Coupling`.
    """

    needs: ClassVar[str] = "one point"

    path: Path = eqx.field(converter=as_path)
    force: jax.Array = eqx.field(converter=number(unit="N", shape=(3,)))

    def on_bodies(self, path: Path, rotations: Float[Array, "n 3 3"]) -> FollowerForce:
        return replace(self, path=path, force=rotations[0] @ self.force)

    def forces(self, frames: Transform, velocities: Vector) -> Vector:
        return frames.rotation @ Vector.from_array(self.force[None])


class PointFriction(PointCoupling):
    """Coulomb friction against the velocity w of a point, along each axis of the world by itself.

        f_i = -friction tanh(w_i / friction_velocity),    i = x, y, z

    path: one pair (body, point (3,) in m in its frame). friction in N and friction_velocity in m/s
    are scalars. It is the `frictionloss` of MuJoCo's free joints, smoothed as `Joint.friction` is.
    It does not turn with the body, but does depend on the directions of the world's axes: motion
    along the diagonal of two axes meets 1.41 times the friction. It always dissipates. name: as of
    `Coupling`.
    """

    needs: ClassVar[str] = "one point"

    path: Path = eqx.field(converter=as_path)
    friction: jax.Array = eqx.field(converter=number(unit="N", nonnegative=True))
    friction_velocity: jax.Array = eqx.field(
        converter=number(unit="m/s", positive=True), default=1e-2, kw_only=True
    )

    def forces(self, frames: Transform, velocities: Vector) -> Vector:
        return jax.tree.map(
            lambda w: -self.friction * jnp.tanh(w / self.friction_velocity), velocities
        )


class PointDamping(PointCoupling):
    """Damping against the velocity w of a point, along each axis of the world by itself.

        f_i = -(c w_i |w_i| + d w_i^3),    i = x, y, z

    path: one pair (body, point (3,) in m in its frame). damping (2,): c in N s^2/m^2 and d in N
    s^3/m^3. As a `PointFriction`, it depends on the directions of the world's axes. It is the
    damping of higher order of MuJoCo's free joints. name: as of `Coupling`.
    """

    needs: ClassVar[str] = "one point"

    path: Path = eqx.field(converter=as_path)
    damping: jax.Array = eqx.field(converter=number(unit="N s^n/m^n", shape=(2,)))

    def forces(self, frames: Transform, velocities: Vector) -> Vector:
        return jax.tree.map(lambda w: -higher_damper(self.damping, w), velocities)
