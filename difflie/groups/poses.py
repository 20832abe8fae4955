"""The manifold of poses: SE(3), as a quaternion with a position or as homogeneous matrices."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from . import quaternion, se3, so3
from .attitudes import QUATERNION_LABELS, length_defect, length_fault
from .charts import Chart, Exponential
from .components import Scalar, Vector, checked
from .manifold import FlatManifold, Manifold


class Pose(FlatManifold):
    """Poses, SE(3): points are (quaternion, position) (7,), tangents body twists (w, v) (6,)."""

    chart: Chart = eqx.field(static=True, default=Exponential())

    point_size = 7
    tangent_size = 6

    @property
    def labels(self) -> tuple[tuple[str, str], ...]:
        return *QUATERNION_LABELS, ("x", "m"), ("y", "m"), ("z", "m")

    def identity(self) -> np.ndarray:
        return np.eye(self.point_size)[0]

    def defect(self, y: jax.Array) -> jax.Array:
        return length_defect(y)

    def fault(self, y: np.ndarray) -> tuple[str, int, str]:
        return length_fault(y)

    def retract(self, y: ArrayLike, xi: ArrayLike) -> Float[Array, "7"]:
        p0, p, r = _pose_parts(y)
        w, v = se3.twist_components(xi)
        step = quaternion.to_matrix_components(p0, p) @ self.chart.translation(w, v)
        turned = quaternion.multiply_components(p0, p, *self.chart.turn(w))
        n0, n = quaternion.normalized_components(*turned)
        return jnp.concatenate((n0[None], n.to_array(), (r + step).to_array()))

    def difference(self, y0: ArrayLike, y1: ArrayLike) -> Float[Array, "6"]:
        p0, p, r0 = _pose_parts(y0)
        s0, s, r1 = _pose_parts(y1)
        w = self.chart.turn_inverse(*quaternion.multiply_components(p0, -p, s0, s))
        step = quaternion.to_matrix_components(p0, p).transposed_times(r1 - r0)
        return se3.twist_array(w, self.chart.translation_inverse(w, step))

    def dexp_inv(self, theta: ArrayLike, xi: ArrayLike) -> Float[Array, "6"]:
        w, v = se3.twist_components(theta)
        a, b = se3.twist_components(xi)
        return se3.twist_array(*self.chart.twist_rate(w, v, a, b))

    def magnitude(self, y: jax.Array) -> Float[Array, "6"]:
        return _pose_size(y[4:])

    def bracket(self, xi: ArrayLike, eta: ArrayLike) -> Float[Array, "6"]:
        return _bracket_of_twists(xi, eta)

    def in_chart(self, chart: Chart) -> Pose:
        return Pose(chart)

    def adjoint(self, theta: ArrayLike, xi: ArrayLike) -> Float[Array, "6"]:
        w, v = se3.twist_components(theta)
        a, b = se3.twist_components(xi)
        r = self.chart.rotation(w)
        a = r @ a
        return se3.twist_array(a, r @ b + self.chart.translation(w, v).cross(a))

    def halfway(self, theta: ArrayLike, xi: ArrayLike) -> Float[Array, "6"]:
        # The pose as a dual quaternion p + e q, e^2 = 0: the formula of `UnitQuaternion` holds.
        w, v = se3.twist_components(theta)
        a, b = se3.twist_components(xi)
        p0, p = self.chart.turn(w)
        step = self.chart.translation(w, v) * 0.5
        q0, q = -step.dot(p), step * p0 + step.cross(p)
        c = p * (1 / (1 + p0))
        d = (q - c * q0) * (1 / (1 + p0))
        return se3.twist_array((a - c.cross(a)) * 0.5, (b - c.cross(b) - d.cross(a)) * 0.5)


class SE3(Manifold):
    """Homogeneous matrices: points (4, 4), tangents body twists (w, v) (6,)."""

    def retract(self, y: ArrayLike, xi: ArrayLike) -> Float[Array, "4 4"]:
        r, p = se3.pose_components(y)
        w, v = se3.twist_components(xi)
        step = se3.exp_translation_components(w, v)
        turned = so3.orthonormalized_components(r @ so3.exp_components(w))
        return se3.pose_array(turned, p + r @ step)

    def difference(self, y0: ArrayLike, y1: ArrayLike) -> Float[Array, "6"]:
        r0, p0 = se3.pose_components(y0)
        r1, p1 = se3.pose_components(y1)
        w = so3.log_components(r0.transpose() @ r1)
        step = r0.transposed_times(p1 - p0)
        return se3.twist_array(w, so3.dexp_inv_components(w) @ step)

    def dexp_inv(self, theta: ArrayLike, xi: ArrayLike) -> Float[Array, "6"]:
        return Pose().dexp_inv(theta, xi)

    def magnitude(self, y: jax.Array) -> Float[Array, "6"]:
        return _pose_size(y[:3, 3])

    def bracket(self, xi: ArrayLike, eta: ArrayLike) -> Float[Array, "6"]:
        return _bracket_of_twists(xi, eta)


def _pose_size(position: Float[Array, "3"]) -> Float[Array, "6"]:
    distance = jnp.sqrt(jnp.sum(position**2))
    return jnp.concatenate((jnp.ones(3, position.dtype), jnp.full(3, distance)))


def _bracket_of_twists(xi: ArrayLike, eta: ArrayLike) -> Float[Array, "6"]:
    w, v = se3.twist_components(xi)
    a, b = se3.twist_components(eta)
    return se3.twist_array(w.cross(a), w.cross(b) + v.cross(a))


def _pose_parts(y: ArrayLike) -> tuple[Scalar, Vector, Vector]:
    """The scalar and the vector part of the quaternion, and the position."""
    y = checked(y, (7,), "manifold")
    return y[0], Vector.from_array(y[1:4]), Vector.from_array(y[4:])
