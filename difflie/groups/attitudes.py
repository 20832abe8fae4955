"""The manifold of attitudes: SO(3), as unit quaternions or as rotation matrices."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from . import quaternion, so3
from .charts import Chart, Exponential
from .components import Matrix, Scalar, Vector, checked
from .manifold import FlatManifold, Manifold

QUATERNION_LABELS = tuple((letter, "1") for letter in "wijk")


class UnitQuaternion(FlatManifold):
    """Attitudes: points are unit quaternions (4,), tangents body angular velocities (3,)."""

    chart: Chart = eqx.field(static=True, default=Exponential())

    point_size = 4
    tangent_size = 3

    @property
    def labels(self) -> tuple[tuple[str, str], ...]:
        return QUATERNION_LABELS

    def identity(self) -> np.ndarray:
        return np.eye(self.point_size)[0]

    def defect(self, y: jax.Array) -> jax.Array:
        return length_defect(y)

    def fault(self, y: np.ndarray) -> tuple[str, int, str]:
        return length_fault(y)

    def retract(self, y: ArrayLike, xi: ArrayLike) -> Float[Array, "4"]:
        p0, p = _quaternion_parts(y)
        turned = quaternion.multiply_components(p0, p, *self.chart.turn(_vector(xi)))
        n0, n = quaternion.normalized_components(*turned)
        return jnp.stack((n0, n.x, n.y, n.z))

    def difference(self, y0: ArrayLike, y1: ArrayLike) -> Float[Array, "3"]:
        p0, p = _quaternion_parts(y0)
        turn = quaternion.multiply_components(p0, -p, *_quaternion_parts(y1))
        return self.chart.turn_inverse(*turn).to_array()

    def dexp_inv(self, theta: ArrayLike, xi: ArrayLike) -> Float[Array, "3"]:
        return self.chart.rate(_vector(theta), _vector(xi)).to_array()

    def magnitude(self, y: jax.Array) -> Float[Array, "3"]:
        return jnp.ones(3, y.dtype)

    def bracket(self, xi: ArrayLike, eta: ArrayLike) -> Float[Array, "3"]:
        return _vector(xi).cross(_vector(eta)).to_array()

    def in_chart(self, chart: Chart) -> UnitQuaternion:
        return UnitQuaternion(chart)

    def adjoint(self, theta: ArrayLike, xi: ArrayLike) -> Float[Array, "3"]:
        return (self.chart.rotation(_vector(theta)) @ _vector(xi)).to_array()

    def halfway(self, theta: ArrayLike, xi: ArrayLike) -> Float[Array, "3"]:
        p0, p = self.chart.turn(_vector(theta))
        c, x = p * (1 / (1 + p0)), _vector(xi)  # tan(t / 4) along the axis of the turn by t
        return ((x - c.cross(x)) * 0.5).to_array()


class SO3(Manifold):
    """Rotation matrices: points (3, 3), tangents body angular velocities (3,)."""

    def retract(self, y: ArrayLike, xi: ArrayLike) -> Float[Array, "3 3"]:
        step = so3.exp_components(_vector(xi))
        return so3.orthonormalized_components(_rotation(y) @ step).to_array()

    def difference(self, y0: ArrayLike, y1: ArrayLike) -> Float[Array, "3"]:
        return so3.log_components(_rotation(y0).transpose() @ _rotation(y1)).to_array()

    def dexp_inv(self, theta: ArrayLike, xi: ArrayLike) -> Float[Array, "3"]:
        return UnitQuaternion().dexp_inv(theta, xi)

    def magnitude(self, y: jax.Array) -> Float[Array, "3"]:
        return jnp.ones(3, y.dtype)

    def bracket(self, xi: ArrayLike, eta: ArrayLike) -> Float[Array, "3"]:
        return _vector(xi).cross(_vector(eta)).to_array()


def length_defect(y: jax.Array) -> jax.Array:
    """| |p| - 1 |, a scalar, of the quaternion p = y[:4] of a point y (point_size,)."""
    return jnp.abs(jnp.sqrt(jnp.sum(y[:4] ** 2)) - 1)


def length_fault(y: np.ndarray) -> tuple[str, int, str]:
    """`FlatManifold.fault` of a point (point_size,) whose quaternion y[:4] is not a unit one."""
    length = float(np.linalg.norm(y[:4]))
    return "quaternion", 4, f"has length {length:.6g}; divide it by its length (order w, x, y, z)"


def _vector(a: ArrayLike) -> Vector:
    return Vector.from_array(checked(a, (3,), "manifold"))


def _rotation(a: ArrayLike) -> Matrix:
    return Matrix.from_array(checked(a, (3, 3), "manifold"))


def _quaternion_parts(y: ArrayLike) -> tuple[Scalar, Vector]:
    y = checked(y, (4,), "manifold")
    return y[0], Vector.from_array(y[1:])
