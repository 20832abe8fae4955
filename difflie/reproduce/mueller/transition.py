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
X is a tangent at 0 in all eight. What composes exponentials (Crouch-Grossman, commutator-free) has
order 2 at most with (c) and (d).

In the paper (80) and (84) turn the step of (b) and (c) into the body frame, and (81) to (93)
compose rotation vectors by a formula with a pole at 2 pi; here the position is that of the group,
and quaternions are multiplied.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from ...groups import (
    Cayley,
    Chart,
    Euclidean,
    FlatProduct,
    Manifold,
    Pose,
    UnitQuaternion,
    quaternion,
)
from ...groups.components import checked


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

    def retract(self, y: ArrayLike, xi: ArrayLike) -> Array:
        return with_vector(self.manifold.retract(self._with_quaternion(y), xi))

    def difference(self, y0: ArrayLike, y1: ArrayLike) -> Array:
        return self.manifold.difference(self._with_quaternion(y0), self._with_quaternion(y1))

    def dexp_inv(self, theta: ArrayLike, xi: ArrayLike) -> Array:
        return self.manifold.dexp_inv(theta, xi)

    def magnitude(self, y: ArrayLike) -> Array:
        return self.manifold.magnitude(self._with_quaternion(y))

    def bracket(self, xi: ArrayLike, eta: ArrayLike) -> Array:
        return self.manifold.bracket(xi, eta)

    def in_chart(self, chart: Chart) -> RotationVector:
        return RotationVector(self.manifold.in_chart(chart))

    def _with_quaternion(self, y: ArrayLike) -> Array:
        return with_quaternion(checked(y, (self.point_size,), "manifold"))


def with_vector(point: Float[Array, " m"]) -> Float[Array, " n"]:
    """A point (n + 1,) that starts with a quaternion, with a rotation vector instead (n,)."""
    return jnp.concatenate((quaternion.log(point[:4]), point[4:]))


def with_quaternion(y: Float[Array, " m"]) -> Float[Array, " n"]:
    """A point (n - 1,) that starts with a rotation vector, with a quaternion instead (n,)."""
    return jnp.concatenate((quaternion.exp(y[:3]), y[3:]))


class Local(NamedTuple):
    """Local coordinates: their name, their group, and the steps that they take from poses (7,)."""

    name: str
    group: str
    manifold: Pose | FlatProduct


# The columns of the table.
LOCAL: dict[str, Local] = {
    "a": Local("screw, exp", "SE(3)", Pose()),
    "b": Local("rotation vector, exp", "SO(3)xR3", FlatProduct((UnitQuaternion(), Euclidean(3)))),
    "c": Local("Rodrigues, cay", "SO(3)xR3", FlatProduct((UnitQuaternion(Cayley()), Euclidean(3)))),
    "d": Local("ext. Rodrigues, cay", "SE(3)", Pose(Cayley())),
}

# The absolute coordinates of attitudes in its rows.
ATTITUDES = {"1": "quaternion", "2": "rotation vector"}

# The eight maps by their places in the table, "1a" to "2d".
TRANSITION_MAPS: dict[str, Manifold] = {
    **{f"1{column}": local.manifold for column, local in LOCAL.items()},
    **{f"2{column}": RotationVector(local.manifold) for column, local in LOCAL.items()},
}
