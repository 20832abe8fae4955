"""The Cayley map in place of the exponential, on attitudes and on poses.

tau(X) = cay(X/2) agrees with exp(X) up to O(X^3), needs neither sine nor series, and its derivative
is a polynomial; it never reaches a rotation by pi. As manifolds with `retract(y, X) = y tau(X)`
these serve every method that works in coordinates about a point, by `dexp_inv`: Runge-Kutta-
Munthe-Kaas methods with their exact inverse of dexp, Gauss methods, `LieVariational`. They do not
serve the methods that compose exponentials, of whose order tau keeps two.
Mueller, sections 5 and 6; Hairer, Lubich and Wanner 2006, IV.8.3.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from . import quaternion, se3, so3
from .components import Scalar, Vector, checked
from .manifold import FlatManifold, Pose, UnitQuaternion


class CayleyQuaternion(FlatManifold):
    """Attitudes: points are unit quaternions (4,), tangents body angular velocities (3,)."""

    point_size = 4
    tangent_size = 3

    def retract(self, y: jax.Array, xi: jax.Array) -> jax.Array:
        return quaternion.multiply(y, _quaternion(_half(xi)))

    def difference(self, y0: jax.Array, y1: jax.Array) -> jax.Array:
        turn = quaternion.multiply(quaternion.conjugate(y0), y1)
        return turn[1:] * (2 / turn[0])

    def dexp_inv(self, theta: jax.Array, xi: jax.Array) -> jax.Array:
        c, x = _half(theta), Vector.from_array(checked(xi, (3,), "manifold"))
        return (x + c.cross(x) + c * c.dot(x)).to_array()

    def magnitude(self, y: jax.Array) -> jax.Array:
        return UnitQuaternion().magnitude(y)

    def bracket(self, xi: jax.Array, eta: jax.Array) -> jax.Array:
        return UnitQuaternion().bracket(xi, eta)

    def adjoint(self, theta: jax.Array, xi: jax.Array) -> jax.Array:
        return (so3.cay_components(_half(theta)) @ Vector.from_array(xi)).to_array()


class CayleyPose(FlatManifold):
    """Poses, SE(3): points are (quaternion, position) (7,), tangents body twists (w, v) (6,)."""

    point_size = 7
    tangent_size = 6

    def retract(self, y: jax.Array, xi: jax.Array) -> jax.Array:
        y = checked(y, (7,), "manifold")
        w, v = se3.twist_components(xi)
        turn = quaternion.to_matrix_components(y[0], Vector.from_array(y[1:4]))
        step = turn @ (so3.half_one_plus_cay_components(w * 0.5) @ v)
        attitude = quaternion.multiply(y[:4], _quaternion(w * 0.5))
        return jnp.concatenate((attitude, y[4:] + step.to_array()))

    def difference(self, y0: jax.Array, y1: jax.Array) -> jax.Array:
        y0, y1 = checked(y0, (7,), "manifold"), checked(y1, (7,), "manifold")
        w = CayleyQuaternion().difference(y0[:4], y1[:4])
        turn = quaternion.to_matrix_components(y0[0], Vector.from_array(y0[1:4]))
        step = turn.transposed_times(Vector.from_array(y1[4:] - y0[4:]))
        return se3.twist_array(Vector.from_array(w), step - _half(w).cross(step))

    def dexp_inv(self, theta: jax.Array, xi: jax.Array) -> jax.Array:
        w, v = se3.twist_components(theta)
        a, b = se3.twist_components(xi)
        c = w * 0.5
        b = b + (v * 0.5).cross(a)
        return se3.twist_array(a + c.cross(a) + c * c.dot(a), b + c.cross(b))

    def magnitude(self, y: jax.Array) -> jax.Array:
        return Pose().magnitude(y)

    def bracket(self, xi: jax.Array, eta: jax.Array) -> jax.Array:
        return Pose().bracket(xi, eta)

    def adjoint(self, theta: jax.Array, xi: jax.Array) -> jax.Array:
        w, v = se3.twist_components(theta)
        a, b = se3.twist_components(xi)
        r = so3.cay_components(w * 0.5)
        a = r @ a
        step = so3.half_one_plus_cay_components(w * 0.5) @ v
        return se3.twist_array(a, r @ b + step.cross(a))


def _half(theta: jax.Array) -> Vector:
    return Vector.from_array(checked(theta, (3,), "manifold")) * 0.5


def _quaternion(c: Vector) -> jax.Array:
    """The unit quaternion (4,) of the rotation cay(c)."""
    whole: Scalar = jax.lax.rsqrt(1 + c.square())
    return jnp.concatenate((whole[None], (c * whole).to_array()))
