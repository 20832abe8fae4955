"""Configuration manifolds, as an integrator sees them.

Every manifold here is a Lie group written as points (flat arrays, or tuples of them), with flat
tangent vectors in its Lie algebra, left-trivialised (body-fixed): along a motion y(t) with rate
xi(t) holds dy/dt = y . hat(xi).

Steps are taken in local coordinates psi: exp, and on `UnitQuaternion` and `Pose` any `Chart`. What
rounding takes a point off its manifold, every step takes back: the errors of products, tiny as they
are, would collect in one direction. So derivatives with respect to a point, in its coordinates, are
along the manifold.
"""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from . import quaternion, se3, so3
from .charts import Chart, Exponential
from .components import Matrix, Scalar, Vector, checked

_QUATERNION = tuple((letter, "1") for letter in "wijk")


class Manifold(eqx.Module):
    """What an integrator may ask of a configuration space; points are y, tangents xi, eta, theta.

    Their shapes are in the docstring of each manifold. Lengths are in m and turns in rad.
    """

    @abc.abstractmethod
    def retract(self, y: Any, xi: Any) -> Any:
        """y . psi(xi); with psi = exp the point reached from y at the rate xi in unit time."""

    @abc.abstractmethod
    def difference(self, y0: Any, y1: Any) -> Any:
        """The xi of least rotation with retract(y0, xi) = y1."""

    @abc.abstractmethod
    def dexp_inv(self, theta: Any, xi: Any) -> Any:
        """dpsi_{-theta}^-1 xi: d theta/dt when y0 . psi(theta(t)) moves with the rate xi."""

    @abc.abstractmethod
    def magnitude(self, y: Any) -> Any:
        """What an error, a tangent at y, is relative to: coordinates, and 1 rad for attitudes."""

    @abc.abstractmethod
    def bracket(self, xi: Any, eta: Any) -> Any:
        """The Lie bracket [xi, eta] = ad_xi eta of two tangents."""

    def in_chart(self, chart: Chart) -> Manifold:
        """The same points and tangents with other local coordinates.

        Raises TypeError where the manifold has none but the exponential.
        """
        if chart == Exponential():
            return self
        raise TypeError(
            f"{type(self).__name__} has exponential coordinates only, not those of {chart}; use "
            "UnitQuaternion, Pose or a product of these and Euclidean"
        )


class FlatManifold(Manifold):
    """One whose points (point_size,) and tangents (tangent_size,) are single arrays."""

    point_size: ClassVar[int]
    tangent_size: ClassVar[int]
    # Whether points are plain numbers, and tangents the derivatives of these.
    plain: ClassVar[bool] = False

    @property
    def labels(self) -> tuple[tuple[str, str], ...]:
        """The name of each number of a point, and its unit; empty where they are counted."""
        return ()

    @abc.abstractmethod
    def identity(self) -> np.ndarray:
        """The neutral point (point_size,), at which the coordinates are zero."""

    def defect(self, y: jax.Array) -> jax.Array:
        """How far a point is off the manifold, in its own units, (): 0 where all are on it."""
        return jnp.zeros((), y.dtype)

    def fault(self, y: np.ndarray) -> tuple[str, int, str]:
        """What a point that is too far off is called, how many of its numbers it concerns, and
        what is wrong with them, with the fix."""
        off = float(self.defect(jnp.asarray(y)))
        return "point", self.point_size, f"is {off:.6g} off its manifold; take one that is on it"

    @abc.abstractmethod
    def adjoint(self, theta: ArrayLike, xi: ArrayLike) -> Float[Array, " {self.tangent_size}"]:
        """Ad_{psi(theta)} xi: a rate at retract(y, theta), as one at y that moves both alike."""

    @abc.abstractmethod
    def halfway(self, theta: ArrayLike, xi: ArrayLike) -> Float[Array, " {self.tangent_size}"]:
        """(1 + Ad_g)^-1 xi, g . g = psi(theta); with exp dexp_{theta/2} dexp_theta^-1 xi / 2.

        The rate of the point halfway from y to retract(y, theta) when y moves with the rate xi and
        the other end rests. When that moves and y rests, it is xi less this, linear in xi as it is.
        """


class Euclidean(FlatManifold):
    """R^n: points and tangents are arrays (n,), or of any one shape."""

    size: int = eqx.field(static=True)

    plain = True

    def identity(self) -> np.ndarray:
        return np.zeros(self.size)

    @property
    def point_size(self) -> int:
        return self.size

    @property
    def tangent_size(self) -> int:
        return self.size

    def retract(self, y: jax.Array, xi: jax.Array) -> jax.Array:
        _check_equal_shapes(y, xi)
        return y + xi

    def difference(self, y0: jax.Array, y1: jax.Array) -> jax.Array:
        _check_equal_shapes(y0, y1)
        return y1 - y0

    def dexp_inv(self, theta: jax.Array, xi: jax.Array) -> jax.Array:
        _check_equal_shapes(theta, xi)
        return xi

    def magnitude(self, y: jax.Array) -> jax.Array:
        return jnp.abs(y)

    def bracket(self, xi: jax.Array, eta: jax.Array) -> jax.Array:
        _check_equal_shapes(xi, eta)
        return jnp.zeros_like(eta)

    def in_chart(self, chart: Chart) -> Euclidean:
        return self

    def adjoint(self, theta: jax.Array, xi: jax.Array) -> jax.Array:
        return xi

    def halfway(self, theta: jax.Array, xi: jax.Array) -> jax.Array:
        return xi / 2


class UnitQuaternion(FlatManifold):
    """Attitudes: points are unit quaternions (4,), tangents body angular velocities (3,)."""

    chart: Chart = eqx.field(static=True, default=Exponential())

    point_size = 4
    tangent_size = 3

    @property
    def labels(self) -> tuple[tuple[str, str], ...]:
        return _QUATERNION

    def identity(self) -> np.ndarray:
        return np.eye(self.point_size)[0]

    def defect(self, y: jax.Array) -> jax.Array:
        return jnp.abs(jnp.sqrt(jnp.sum(y[:4] ** 2)) - 1)

    def fault(self, y: np.ndarray) -> tuple[str, int, str]:
        return _length_fault(y)

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


class Pose(FlatManifold):
    """Poses, SE(3): points are (quaternion, position) (7,), tangents body twists (w, v) (6,)."""

    chart: Chart = eqx.field(static=True, default=Exponential())

    point_size = 7
    tangent_size = 6

    @property
    def labels(self) -> tuple[tuple[str, str], ...]:
        return *_QUATERNION, ("x", "m"), ("y", "m"), ("z", "m")

    def identity(self) -> np.ndarray:
        return np.eye(self.point_size)[0]

    def defect(self, y: jax.Array) -> jax.Array:
        return jnp.abs(jnp.sqrt(jnp.sum(y[:4] ** 2)) - 1)

    def fault(self, y: np.ndarray) -> tuple[str, int, str]:
        return _length_fault(y)

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
        # A dual quaternion p + e q, e^2 = 0, is the pose, and the formula of attitudes holds.
        w, v = se3.twist_components(theta)
        a, b = se3.twist_components(xi)
        p0, p = self.chart.turn(w)
        step = self.chart.translation(w, v) * 0.5
        q0, q = -step.dot(p), step * p0 + step.cross(p)
        c = p * (1 / (1 + p0))
        d = (q - c * q0) * (1 / (1 + p0))
        return se3.twist_array((a - c.cross(a)) * 0.5, (b - c.cross(b) - d.cross(a)) * 0.5)


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


class Product(Manifold):
    """The product of manifolds: points and tangents are tuples, one entry for each factor."""

    factors: tuple[Manifold, ...]

    def retract(self, y: tuple, xi: tuple) -> tuple:
        return tuple(m.retract(a, b) for m, a, b in zip(self.factors, y, xi, strict=True))

    def difference(self, y0: tuple, y1: tuple) -> tuple:
        return tuple(m.difference(a, b) for m, a, b in zip(self.factors, y0, y1, strict=True))

    def dexp_inv(self, theta: tuple, xi: tuple) -> tuple:
        return tuple(m.dexp_inv(a, b) for m, a, b in zip(self.factors, theta, xi, strict=True))

    def magnitude(self, y: tuple) -> tuple:
        return tuple(m.magnitude(a) for m, a in zip(self.factors, y, strict=True))

    def bracket(self, xi: tuple, eta: tuple) -> tuple:
        return tuple(m.bracket(a, b) for m, a, b in zip(self.factors, xi, eta, strict=True))

    def in_chart(self, chart: Chart) -> Product:
        return Product(tuple(m.in_chart(chart) for m in self.factors))


class FlatProduct(FlatManifold):
    """The product of flat factors: points (nq,) and tangents (nv,) one after the other.

    The joints of this package are `Euclidean`, `UnitQuaternion` and `Pose`.
    """

    factors: tuple[FlatManifold, ...]

    @property
    def point_size(self) -> int:
        return sum(m.point_size for m in self.factors)

    @property
    def tangent_size(self) -> int:
        return sum(m.tangent_size for m in self.factors)

    def identity(self) -> np.ndarray:
        return np.concatenate([np.zeros(0), *(m.identity() for m in self.factors)])

    def defect(self, y: jax.Array) -> jax.Array:
        off = [m.defect(a) for m, a in zip(self.factors, self._points(y), strict=True)]
        return jnp.max(jnp.stack([jnp.zeros((), y.dtype), *off]))

    def _points(self, y: ArrayLike) -> list[jax.Array]:
        return _split(y, [m.point_size for m in self.factors])

    def _tangents(self, xi: ArrayLike) -> list[jax.Array]:
        return _split(xi, [m.tangent_size for m in self.factors])

    def retract(self, y: ArrayLike, xi: ArrayLike) -> Float[Array, " {self.point_size}"]:
        pairs = zip(self.factors, self._points(y), self._tangents(xi), strict=True)
        return _join([m.retract(a, b) for m, a, b in pairs], y)

    def difference(self, y0: ArrayLike, y1: ArrayLike) -> Float[Array, " {self.tangent_size}"]:
        pairs = zip(self.factors, self._points(y0), self._points(y1), strict=True)
        return _join([m.difference(a, b) for m, a, b in pairs], y0)

    def dexp_inv(self, theta: ArrayLike, xi: ArrayLike) -> Float[Array, " {self.tangent_size}"]:
        pairs = zip(self.factors, self._tangents(theta), self._tangents(xi), strict=True)
        return _join([m.dexp_inv(a, b) for m, a, b in pairs], theta)

    def magnitude(self, y: ArrayLike) -> Float[Array, " {self.tangent_size}"]:
        return _join(
            [m.magnitude(a) for m, a in zip(self.factors, self._points(y), strict=True)], y
        )

    def bracket(self, xi: ArrayLike, eta: ArrayLike) -> Float[Array, " {self.tangent_size}"]:
        pairs = zip(self.factors, self._tangents(xi), self._tangents(eta), strict=True)
        return _join([m.bracket(a, b) for m, a, b in pairs], xi)

    def in_chart(self, chart: Chart) -> FlatProduct:
        factors: Any = tuple(m.in_chart(chart) for m in self.factors)
        return FlatProduct(factors)

    def adjoint(self, theta: ArrayLike, xi: ArrayLike) -> Float[Array, " {self.tangent_size}"]:
        pairs = zip(self.factors, self._tangents(theta), self._tangents(xi), strict=True)
        return _join([m.adjoint(a, b) for m, a, b in pairs], theta)

    def halfway(self, theta: ArrayLike, xi: ArrayLike) -> Float[Array, " {self.tangent_size}"]:
        pairs = zip(self.factors, self._tangents(theta), self._tangents(xi), strict=True)
        return _join([m.halfway(a, b) for m, a, b in pairs], theta)


def _length_fault(y: np.ndarray) -> tuple[str, int, str]:
    length = float(np.linalg.norm(y[:4]))
    return "quaternion", 4, f"has length {length:.6g}; divide it by its length (order w, x, y, z)"


def _split(a: ArrayLike, sizes: list[int]) -> list[jax.Array]:
    a = checked(a, (sum(sizes),), "manifold")
    parts, start = [], 0
    for size in sizes:
        parts.append(a[start : start + size])
        start += size
    return parts


def _join(parts: list[jax.Array], like: ArrayLike) -> jax.Array:
    if len(parts) == 1:
        return parts[0]
    return jnp.concatenate(parts) if parts else jnp.zeros(0, jnp.result_type(like))


def _pose_size(position: Float[Array, "3"]) -> Float[Array, "6"]:
    distance = jnp.sqrt(jnp.sum(position**2))
    return jnp.concatenate((jnp.ones(3, position.dtype), jnp.full(3, distance)))


def _bracket_of_twists(xi: ArrayLike, eta: ArrayLike) -> Float[Array, "6"]:
    w, v = se3.twist_components(xi)
    a, b = se3.twist_components(eta)
    return se3.twist_array(w.cross(a), w.cross(b) + v.cross(a))


def _vector(a: ArrayLike) -> Vector:
    return Vector.from_array(checked(a, (3,), "manifold"))


def _rotation(a: ArrayLike) -> Matrix:
    return Matrix.from_array(checked(a, (3, 3), "manifold"))


def _quaternion_parts(y: ArrayLike) -> tuple[Scalar, Vector]:
    y = checked(y, (4,), "manifold")
    return y[0], Vector.from_array(y[1:])


def _pose_parts(y: ArrayLike) -> tuple[Scalar, Vector, Vector]:
    """The scalar and the vector part of the quaternion, and the position."""
    y = checked(y, (7,), "manifold")
    return y[0], Vector.from_array(y[1:4]), Vector.from_array(y[4:])


def _check_equal_shapes(a: ArrayLike, b: ArrayLike) -> None:
    if jnp.shape(a) != jnp.shape(b):
        raise ValueError(
            f"difflie.manifold: expected two arrays of one shape, got {jnp.shape(a)} and "
            f"{jnp.shape(b)}"
        )
