"""Configuration manifolds, as an integrator sees them.

Every manifold here is a Lie group written as points (flat arrays, or tuples of them), with flat
tangent vectors in its Lie algebra, left-trivialised (body-fixed): along a motion y(t) with rate
xi(t) holds dy/dt = y . hat(xi).
"""

from __future__ import annotations

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from . import quaternion, se3, so3
from .components import Vector


class Manifold(eqx.Module):
    """What an integrator may ask of a configuration space. Arrays below are for one factor."""

    @abc.abstractmethod
    def retract(self, y: Any, xi: Any) -> Any:
        """y . exp(xi): the point (shape of y) reached from y with the constant rate xi in unit time."""

    @abc.abstractmethod
    def difference(self, y0: Any, y1: Any) -> Any:
        """The tangent (shape of xi) with retract(y0, difference(y0, y1)) = y1, of least rotation."""

    @abc.abstractmethod
    def dexp_inv(self, theta: Any, xi: Any) -> Any:
        """dexp_{-theta}^-1 xi: d theta/dt when y0 . exp(theta(t)) moves with the rate xi."""


class Euclidean(Manifold):
    """R^n: points and tangents are arrays (n,), or of any one shape."""

    size: int = eqx.field(static=True)

    @property
    def point_size(self) -> int:
        return self.size

    @property
    def tangent_size(self) -> int:
        return self.size

    def retract(self, y: jax.Array, xi: jax.Array) -> jax.Array:
        return y + xi

    def difference(self, y0: jax.Array, y1: jax.Array) -> jax.Array:
        return y1 - y0

    def dexp_inv(self, theta: jax.Array, xi: jax.Array) -> jax.Array:
        return xi


class UnitQuaternion(Manifold):
    """Attitudes: points are unit quaternions (4,), tangents body angular velocities (3,)."""

    point_size = 4
    tangent_size = 3

    def retract(self, y: jax.Array, xi: jax.Array) -> jax.Array:
        return quaternion.multiply(y, quaternion.exp(xi))

    def difference(self, y0: jax.Array, y1: jax.Array) -> jax.Array:
        return quaternion.log(quaternion.multiply(quaternion.conjugate(y0), y1))

    def dexp_inv(self, theta: jax.Array, xi: jax.Array) -> jax.Array:
        w = Vector.from_array(-theta)
        return (so3.dexp_inv_components(w) @ Vector.from_array(xi)).to_array()


class Pose(Manifold):
    """Poses, SE(3): points are (quaternion, position) (7,), tangents body twists (w, v) (6,)."""

    point_size = 7
    tangent_size = 6

    def retract(self, y: jax.Array, xi: jax.Array) -> jax.Array:
        w, v = Vector.from_array(xi[:3]), Vector.from_array(xi[3:])
        p0, p = y[0], Vector.from_array(y[1:4])
        step = quaternion.to_matrix_components(p0, p) @ se3.exp_translation_components(w, v)
        n0, n = quaternion.multiply_components(p0, p, *quaternion.exp_components(w))
        return jnp.concatenate((n0[None], n.to_array(), y[4:] + step.to_array()))

    def difference(self, y0: jax.Array, y1: jax.Array) -> jax.Array:
        p0, p = y0[0], Vector.from_array(y0[1:4])
        r0, r = quaternion.multiply_components(p0, -p, y1[0], Vector.from_array(y1[1:4]))
        w = quaternion.log_components(r0, r)
        step = Vector.from_array(y1[4:] - y0[4:])
        body = quaternion.to_matrix_components(p0, p).transposed_times(step)
        return jnp.concatenate((w.to_array(), (so3.dexp_inv_components(w) @ body).to_array()))

    def dexp_inv(self, theta: jax.Array, xi: jax.Array) -> jax.Array:
        w, v = Vector.from_array(-theta[:3]), Vector.from_array(-theta[3:])
        a, b = Vector.from_array(xi[:3]), Vector.from_array(xi[3:])
        diagonal = so3.dexp_inv_components(w)
        lower = se3.dexp_inv_corner_components(w, v) @ a + diagonal @ b
        return jnp.concatenate(((diagonal @ a).to_array(), lower.to_array()))


class SO3(Manifold):
    """Rotation matrices: points (3, 3), tangents body angular velocities (3,)."""

    def retract(self, y: jax.Array, xi: jax.Array) -> jax.Array:
        return y @ so3.exp(xi)

    def difference(self, y0: jax.Array, y1: jax.Array) -> jax.Array:
        return so3.log(y0.T @ y1)

    def dexp_inv(self, theta: jax.Array, xi: jax.Array) -> jax.Array:
        return so3.dexp_inv(-theta) @ xi


class SE3(Manifold):
    """Homogeneous matrices: points (4, 4), tangents body twists (w, v) (6,)."""

    def retract(self, y: jax.Array, xi: jax.Array) -> jax.Array:
        return y @ se3.exp(xi)

    def difference(self, y0: jax.Array, y1: jax.Array) -> jax.Array:
        return se3.log(se3.inverse(y0) @ y1)

    def dexp_inv(self, theta: jax.Array, xi: jax.Array) -> jax.Array:
        return se3.dexp_inv(-theta) @ xi


class Product(Manifold):
    """The product of manifolds: points and tangents are tuples, one entry for each factor."""

    factors: tuple[Manifold, ...]

    def retract(self, y: tuple, xi: tuple) -> tuple:
        return tuple(m.retract(a, b) for m, a, b in zip(self.factors, y, xi, strict=True))

    def difference(self, y0: tuple, y1: tuple) -> tuple:
        return tuple(m.difference(a, b) for m, a, b in zip(self.factors, y0, y1, strict=True))

    def dexp_inv(self, theta: tuple, xi: tuple) -> tuple:
        return tuple(m.dexp_inv(a, b) for m, a, b in zip(self.factors, theta, xi, strict=True))


class FlatProduct(Manifold):
    """The product of flat factors: points (nq,) and tangents (nv,) one after the other.

    The factors are `Euclidean`, `UnitQuaternion` and `Pose`.
    """

    factors: tuple[Euclidean | UnitQuaternion | Pose, ...]

    @property
    def point_size(self) -> int:
        return sum(m.point_size for m in self.factors)

    @property
    def tangent_size(self) -> int:
        return sum(m.tangent_size for m in self.factors)

    def _points(self, y: jax.Array) -> list[jax.Array]:
        return _split(y, [m.point_size for m in self.factors])

    def _tangents(self, xi: jax.Array) -> list[jax.Array]:
        return _split(xi, [m.tangent_size for m in self.factors])

    def retract(self, y: jax.Array, xi: jax.Array) -> jax.Array:
        pairs = zip(self.factors, self._points(y), self._tangents(xi), strict=True)
        return _join([m.retract(a, b) for m, a, b in pairs], y)

    def difference(self, y0: jax.Array, y1: jax.Array) -> jax.Array:
        pairs = zip(self.factors, self._points(y0), self._points(y1), strict=True)
        return _join([m.difference(a, b) for m, a, b in pairs], y0)

    def dexp_inv(self, theta: jax.Array, xi: jax.Array) -> jax.Array:
        pairs = zip(self.factors, self._tangents(theta), self._tangents(xi), strict=True)
        return _join([m.dexp_inv(a, b) for m, a, b in pairs], theta)


def _split(a: jax.Array, sizes: list[int]) -> list[jax.Array]:
    parts, start = [], 0
    for size in sizes:
        parts.append(a[start : start + size])
        start += size
    return parts


def _join(parts: list[jax.Array], like: jax.Array) -> jax.Array:
    if len(parts) == 1:
        return parts[0]
    return jnp.concatenate(parts) if parts else like[:0]
