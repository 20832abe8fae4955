"""Curves in space, the nearest point of a curve to a given one, and points on curves."""

from __future__ import annotations

import abc
import functools
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..groups.components import Scalar, Vector
from ..solvers.linear import product
from ..spatial import Transform
from ..system.fields import number
from ..system.validation import ModelError
from .constraint import JointConstraint

# Samples on every piece of a curve, from which the search for the nearest point starts.
_SAMPLES = 8


class Curve(eqx.Module):
    """A curve c(s), a position (3,) in m at a parameter s, piecewise polynomial.

    Piece k is for s in [k, k + 1]. closed: whether the curve is periodic; an open one is
    extrapolated beyond its ends.
    """

    closed: eqx.AbstractVar[bool]

    @property
    @abc.abstractmethod
    def pieces(self) -> Float[Array, "n k 3"]:
        """The coefficients (n, k, 3) of the polynomials in s - k, the constant first."""

    def position(self, s: Float[Array, ""]) -> Float[Array, "3"]:
        """c(s) (3,) at the parameter s ()."""
        pieces = self.pieces
        n = len(pieces)
        begin = jnp.floor(jax.lax.stop_gradient(s)).astype(int)
        if not self.closed:
            begin = jnp.clip(begin, 0, n - 1)
        return functools.reduce(lambda c, a: c * (s - begin) + a, pieces[begin % n][::-1])

    def tangent(self, s: Float[Array, ""]) -> Float[Array, "3"]:
        """dc/ds (3,)."""
        return jax.jvp(self.position, (s,), (jnp.ones_like(s),))[1]


class PolynomialCurve(Curve):
    """c(s) = a_0 + a_1 s + a_2 s^2 + ..., s from 0 to 1 and beyond: coefficients a (k, 3) in m.

    Raises `ModelError` for another shape.
    """

    coefficients: jax.Array = eqx.field(converter=number(unit="m", shape=None))
    closed: ClassVar[bool] = False

    def __init__(self, coefficients: Any) -> None:
        self.coefficients = _table("coefficients of a curve", coefficients)

    @property
    def pieces(self) -> Float[Array, "n k 3"]:
        return self.coefficients[None]


class SplineCurve(Curve):
    """The cubic spline through points (n, 3) in m, with two continuous derivatives.

    The parameter is k at point k: the points should lie about equally far from each other. Open
    curves are natural splines, without curvature at their ends. closed: whether the curve returns
    from the last point to the first. Raises `ModelError` for another shape.
    """

    points: jax.Array = eqx.field(converter=number(unit="m", shape=None))
    closed: bool = eqx.field(static=True)

    def __init__(self, points: Any, closed: bool = False) -> None:
        self.points = _table("points of a curve", points, least=3 if closed else 2)
        self.closed = closed

    @property
    def pieces(self) -> Float[Array, "n k 3"]:
        p = self.points
        matrix = jnp.asarray(_second_derivatives(len(p), self.closed), p.dtype)
        bent = product(matrix, p)
        if self.closed:
            start, end, m0, m1 = p, jnp.roll(p, -1, 0), bent, jnp.roll(bent, -1, 0)
        else:
            start, end, m0, m1 = p[:-1], p[1:], bent[:-1], bent[1:]
        slope = end - start - (2 * m0 + m1) / 6
        return jnp.stack((start, slope, m0 / 2, (m1 - m0) / 6), axis=1)


@functools.lru_cache
def _second_derivatives(n: int, closed: bool) -> np.ndarray:
    """The matrix (n, n) that takes the points to the second derivatives there."""
    ones = np.ones(n - 1)
    second = np.diag(ones, 1) + np.diag(ones, -1) - 2 * np.eye(n)
    if closed:
        second[0, -1] += 1
        second[-1, 0] += 1
        return 6 * np.linalg.solve(second + 6 * np.eye(n), second)
    inner = second[1:-1]
    result = np.zeros((n, n))
    result[1:-1] = 6 * np.linalg.solve(inner[:, 1:-1] + 6 * np.eye(n - 2), inner)
    return result


@jax.custom_jvp
def nearest_parameter(curve: Curve, point: jax.Array) -> jax.Array:
    """The parameter s () of the point of the curve nearest to a point (3,) in m.

    Newton's method for (p - c(s)) . c'(s) = 0 from the best of some samples; derivatives are those
    of the root.
    """
    n = len(curve.pieces)
    s = jnp.arange(n * _SAMPLES + 1, dtype=point.dtype) / _SAMPLES
    squares = jax.vmap(lambda s: jnp.sum((point - curve.position(s)) ** 2))(s)

    def improved(_: Any, s: jax.Array) -> jax.Array:
        slope = curve.tangent(s)
        value, change = jax.jvp(lambda s: _off(curve, point, s), (s,), (jnp.ones_like(s),))
        # Where the curve bends towards the point the squared distance may have no minimum.
        return s - value / jnp.minimum(change, -jnp.sum(slope * slope) / 2)

    return jax.lax.fori_loop(0, 12, improved, s[jnp.argmin(squares)])


@nearest_parameter.defjvp
def _(primals: tuple, tangents: tuple) -> tuple[jax.Array, jax.Array]:
    curve, point = primals
    s = nearest_parameter(curve, point)
    _, change = jax.jvp(lambda curve, point: _off(curve, point, s), primals, tangents)
    _, slope = jax.jvp(lambda s: _off(curve, point, s), (s,), (jnp.ones_like(s),))
    return s, -change / slope


def _off(curve: Curve, point: Float[Array, "3"], s: Float[Array, ""]) -> Float[Array, ""]:
    return jnp.sum((point - curve.position(s)) * curve.tangent(s))


def _table(name: str, value: Any, least: int = 2) -> jax.Array:
    try:
        array = value if isinstance(value, jax.Array) else jnp.asarray(value, float)
    except (TypeError, ValueError):
        raise ModelError(f"{name}: {value!r} was given; numbers are needed") from None
    if array.ndim != 2 or array.shape[1] != 3 or len(array) < least:
        raise ModelError(f"{name} have shape {array.shape}, needed is (n, 3), n of {least} or more")
    return array


class PointOnCurve(JointConstraint):
    """The origin of the second frame lies on a curve in the first: 2 equations.

    curve: in the coordinates of the first frame. The equations are the components, along two
    normals of the curve, of the vector from its nearest point to the origin. The normals are chosen
    at each point of the curve from the coordinate axis most orthogonal to the tangent: the
    multipliers may jump where this axis changes, the reaction does not.
    """

    curve: Curve

    equations = "offset along a normal of the curve", "offset along its other normal"

    def residual(self, a: Transform, b: Transform) -> list[Scalar]:
        d = a.rotation.transposed_times(b.translation - a.translation)
        point = d.to_array()
        s = nearest_parameter(self.curve, point)
        tangent = self.curve.tangent(s)
        axis = jnp.eye(3, dtype=tangent.dtype)[jnp.argmin(jnp.abs(jax.lax.stop_gradient(tangent)))]
        x = jnp.cross(tangent, axis)
        y = jnp.cross(tangent, x)
        offset = d - Vector.from_array(self.curve.position(s))
        return [offset.dot(Vector.from_array(n / jnp.linalg.norm(n))) for n in (x, y)]
