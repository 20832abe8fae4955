"""Torsional springs between two bodies, about an axis of the first."""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..groups import quaternion
from ..groups.components import Scalar, Vector
from ..spatial import Force, Motion, Transform
from ..system.fields import number
from .bushing import both, pair
from .coupling import Coupling
from .path import Path, as_path, inverse, root


class TorsionalSpring(Coupling):
    """A torsional spring and damper between two bodies, about an axis n of the first.

    The angle phi is the twist about n of the second body's orientation relative to the first: with
    the quaternion (c, p) of R_1^T R_2 and s = n . p

        phi = 2 atan2(s, c),    U = k (phi - phi_0)^2 / 2
        moment on the second body = -(k (phi - phi_0) + d dphi/dt) g

    where g is the gradient of phi, which is n where the second body has turned about n only
    (Dobrowolski 2015, swing-twist decomposition). No force acts.

    path: two pairs (body, point (3,) in m in its frame), body None for the world; only the bodies
    matter. axis n (3,), of any length, in the first body's frame. stiffness k in N m/rad, damping d
    in N m s/rad, rest_angle phi_0 in rad, scalars. |phi - phi_0| is at most pi, where the moment
    jumps. Where the second body has reversed n, the twist is undefined and the moment zero. At a
    joint use stiffness and spring_reference of `Joint`, for any number of turns.
    """

    needs: ClassVar[str] = "two points"

    path: Path = eqx.field(converter=as_path)
    axis: jax.Array = eqx.field(converter=number(shape=(3,), kind="direction"))
    stiffness: jax.Array = eqx.field(converter=number(unit="N m/rad", nonnegative=True))
    rest_angle: jax.Array = eqx.field(converter=number(unit="rad"), default=0.0, kw_only=True)
    damping: jax.Array = eqx.field(
        converter=number(unit="N m s/rad", nonnegative=True), default=0.0, kw_only=True
    )

    def energy(self, frames: Transform) -> Float[Array, ""]:
        """U () in J with the points at these frames (2,) in the world."""
        angle, _ = self._twist(frames)
        return self.stiffness * angle * angle / 2

    def wrenches(self, frames: Transform, twists: Motion) -> Force:
        angle, slope = self._twist(frames)
        (first, _), (t1, t2) = both(frames), both(twists)
        slope = first.rotation @ slope
        rate = slope.dot(t2.angular - t1.angular)
        moment = slope * -(self.stiffness * angle + self.damping * rate)
        none = jax.tree.map(jnp.zeros_like, moment)
        return pair(Force(-moment, none), Force(moment, none))

    def _twist(self, frames: Transform) -> tuple[Scalar, Vector]:
        """phi - phi_0 in rad, and g in the first body's axes."""
        first, second = both(frames)
        n = Vector.from_array(self.axis)
        n = n * inverse(root(n.square()))
        c, p = quaternion.from_matrix_components(first.rotation.transpose() @ second.rotation)
        s = n.dot(p)
        square = c * c + s * s
        exists = square > jnp.finfo(square.dtype).eps ** 2
        slope = ((n * c + p.cross(n)) * c + p * s) * jnp.where(
            exists, 1 / jnp.where(exists, square, 1), 0
        )
        half = self.rest_angle / 2
        cos, sin = jnp.cos(half), jnp.sin(half)
        c, s = c * cos + s * sin, s * cos - c * sin
        back = c < 0
        c, s = jnp.where(back, -c, c), jnp.where(back, -s, s)
        angle = 2 * jnp.arctan2(jnp.where(exists, s, 0), jnp.where(exists, c, 1))
        return angle, slope
