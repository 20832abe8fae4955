"""The local-global transition maps q' = tau(q, X) of Mueller, Table 1.

The absolute coordinates q of a rigid body are an attitude and the position r (3,) in world
coordinates, in m. The local coordinates X (6,), angular part first, start at 0 in every step:

    (1) the attitude is a unit quaternion: q (7,)
    (2) the attitude is a rotation vector in rad: q (6,)

    X and its map               group          r' - r             rate V
    (a) screw, exp              SE(3)          R dexp_x y         body twist (w, v)
    (b) rotation vector, exp    SO(3) x R^3    y                  mixed twist (w, dr/dt)
    (c) Rodrigues, cay          SO(3) x R^3    y                  mixed twist (w, dr/dt)
    (d) ext. Rodrigues, cay     SE(3)          R (I - x/2)^-1 y   body twist (w, v)

w is body-fixed in all of them; dr/dt is in world coordinates. With `retract` for tau and `dexp_inv`
for dX/dt = dpsi_{-X}^-1 V they are manifolds: a Munthe-Kaas method of any tableau is that tableau
on the local model. The Cayley coordinates are twice the (extended) Rodrigues parameters, so that
X is a tangent at 0 in all eight. Methods that compose exponentials (Crouch-Grossman,
commutator-free) have order 2 at most with (c) and (d).

The paper rotates the steps of (b) and (c) into the body frame in (80) and (84). It composes
rotation vectors in (81) to (93) by a formula with a pole at 2 pi. This file uses the position of
the group instead, and multiplies quaternions.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from . import quaternion
from .attitudes import UnitQuaternion
from .charts import Cayley, Chart
from .components import checked
from .manifold import Euclidean, Manifold
from .poses import Pose
from .products import FlatProduct


class RotationVector(Manifold):
    """A manifold whose points start with a rotation vector (3,) in place of a quaternion (4,).

    `retract` returns the shortest rotation vector of the attitude, at most pi rad long. It jumps
    where an attitude passes a rotation by pi from the identity.
    """

    manifold: UnitQuaternion | Pose | FlatProduct

    @property
    def point_size(self) -> int:
        return self.manifold.point_size - 1

    @property
    def tangent_size(self) -> int:
        return self.manifold.tangent_size

    def retract(self, y: ArrayLike, xi: ArrayLike) -> Float[Array, " {self.point_size}"]:
        moved = self.manifold.retract(self._with_quaternion(y), xi)
        return jnp.concatenate((quaternion.log(moved[:4]), moved[4:]))

    def difference(self, y0: ArrayLike, y1: ArrayLike) -> Float[Array, " {self.tangent_size}"]:
        return self.manifold.difference(self._with_quaternion(y0), self._with_quaternion(y1))

    def dexp_inv(self, theta: ArrayLike, xi: ArrayLike) -> Float[Array, " {self.tangent_size}"]:
        return self.manifold.dexp_inv(theta, xi)

    def magnitude(self, y: ArrayLike) -> Float[Array, " {self.tangent_size}"]:
        return self.manifold.magnitude(self._with_quaternion(y))

    def bracket(self, xi: ArrayLike, eta: ArrayLike) -> Float[Array, " {self.tangent_size}"]:
        return self.manifold.bracket(xi, eta)

    def in_chart(self, chart: Chart) -> RotationVector:
        return RotationVector(self.manifold.in_chart(chart))

    def _with_quaternion(self, y: ArrayLike) -> Float[Array, " {self.manifold.point_size}"]:
        y = checked(y, (self.point_size,), "manifold")
        return jnp.concatenate((quaternion.exp(y[:3]), y[3:]))


_LOCAL: dict[str, Pose | FlatProduct] = {
    "a": Pose(),
    "b": FlatProduct((UnitQuaternion(), Euclidean(3))),
    "c": FlatProduct((UnitQuaternion(Cayley()), Euclidean(3))),
    "d": Pose(Cayley()),
}

TRANSITION_MAPS: dict[str, Manifold] = {
    **{f"1{letter}": manifold for letter, manifold in _LOCAL.items()},
    **{f"2{letter}": RotationVector(manifold) for letter, manifold in _LOCAL.items()},
}
"""The eight maps by their places in the table, "1a" to "2d"."""
