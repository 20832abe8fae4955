"""Homogeneous coordinates of space, (x, y, z, s), and the transformations that act on them.

A point is (x, y, z, 1) or any multiple of it; (x, y, z, 0) is the point at infinity in a direction,
and s = 0 the plane at infinity. A transformation is a matrix (4, 4); they compose from the right,
X_0 = T_1 T_2 ... T_n X_n. Poses of SE(3) are such matrices; the other ones are here. All arrays may
have leading axes (...). Reuss 2002, section 3.1.

Clipping is to the truncated pyramid, before the division. A point X = (x, y, z, s), after
`Camera.frustum`, is seen where all six of s - x, s + x, s - y, s + y, s - z and s + z are not
negative. They are linear in X, so that a part of a segment or of a polygon that is seen is found
without dividing, also where ends are behind the eye or at infinity. Its arrays are those of jax, to
differentiate, or of numpy, to draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float
from numpy.typing import NDArray

Place = ArrayLike | Sequence[float]


def points(x: ArrayLike) -> Float[Array, "*n 4"]:
    """Homogeneous coordinates (..., 4) of points (..., 3) in m."""
    x = _real(x)
    return jnp.concatenate((x, jnp.ones_like(x[..., :1])), axis=-1)


def directions(d: ArrayLike) -> Float[Array, "*n 4"]:
    """The points at infinity (..., 4) in directions (..., 3): s = 0."""
    d = _real(d)
    return jnp.concatenate((d, jnp.zeros_like(d[..., :1])), axis=-1)


def transformed(T: ArrayLike, X: ArrayLike) -> Float[Array, "*n 4"]:
    """T X (..., 4): a transformation (..., 4, 4) of homogeneous points (..., 4)."""
    return jnp.einsum("...ij,...j->...i", _real(T), _real(X))


def reflection(normal: ArrayLike, through: Place = (0.0, 0.0, 0.0)) -> Float[Array, "*n 4 4"]:
    """The reflection (..., 4, 4) in the plane with this normal (..., 3) through a point (..., 3).

    x' = x - 2 n n^T (x - c) / n^T n: its own inverse, of determinant -1.
    """
    n, c = _real(normal), _real(through)
    linear = jnp.eye(3) - 2 * _outer(n, n) / jnp.sum(n * n, axis=-1)[..., None, None]
    return _affine(linear, c - jnp.einsum("...ij,...j->...i", linear, c))


def scaling(factors: ArrayLike, about: Place = (0.0, 0.0, 0.0)) -> Float[Array, "*n 4 4"]:
    """The scaling (..., 4, 4) by factors (..., 3) along x, y and z; it keeps a point (..., 3)."""
    f, c = _real(factors), _real(about)
    return _affine(f[..., None, :] * jnp.eye(3), c - f * c)


def shear(
    along: ArrayLike, normal: ArrayLike, through: Place = (0.0, 0.0, 0.0)
) -> Float[Array, "*n 4 4"]:
    """The shear (..., 4, 4) x' = x + d n^T (x - c), which keeps the plane with normal n through c.

    along (..., 3): d, the shift of points at the unit distance n^T (x - c) = 1. It keeps volumes
    where d lies in the plane, d^T n = 0.
    """
    d, n, c = _real(along), _real(normal), _real(through)
    return _affine(jnp.eye(3) + _outer(d, n), -d * jnp.sum(n * c, axis=-1, keepdims=True))


def join(p: ArrayLike, q: ArrayLike) -> Float[Array, "*n 3"]:
    """The line l (..., 3) of a picture through two of its points (..., 3): l^T p = l^T q = 0.

    Points of a picture are homogeneous too, (x, y, t), with t = 0 at infinity. The line is zero
    where the points are one.
    """
    return jnp.cross(_real(p), _real(q))


def meet(a: ArrayLike, b: ArrayLike) -> Float[Array, "*n 3"]:
    """The point (x, y, t) (..., 3) in which two lines (..., 3) of a picture meet.

    Parallel lines meet at infinity, t = 0; the point is zero where the lines are one.
    """
    return jnp.cross(_real(a), _real(b))


def _affine(linear: Float[Array, "*n 3 3"], shift: Float[Array, "*n 3"]) -> Float[Array, "*n 4 4"]:
    batch = jnp.broadcast_shapes(linear.shape[:-2], shift.shape[:-1])
    linear, shift = (
        jnp.broadcast_to(a, (*batch, *a.shape[a.ndim - k :])) for a, k in ((linear, 2), (shift, 1))
    )
    upper = jnp.concatenate((linear, shift[..., None]), axis=-1)
    last = jnp.broadcast_to(jnp.array([0.0, 0.0, 0.0, 1.0], upper.dtype), (*batch, 1, 4))
    return jnp.concatenate((upper, last), axis=-2)


def _outer(a: Float[Array, "*n 3"], b: Float[Array, "*n 3"]) -> Float[Array, "*n 3 3"]:
    return a[..., :, None] * b[..., None, :]


def _real(a: Place) -> Array:
    a = jnp.asarray(a)  # pyright: ignore[reportArgumentType]
    return a if jnp.issubdtype(a.dtype, jnp.floating) else a.astype(jnp.result_type(float))


# The six planes, as rows with s - x and so on.
_PLANES = np.concatenate(
    [np.stack([sign * np.eye(4)[k] + np.eye(4)[3] for sign in (-1.0, 1.0)]) for k in range(3)]
)


def inside(X: Any) -> Any:
    """The six numbers (..., 6) of points (..., 4) that are not negative where a point is seen."""
    return X @ _PLANES.T.astype(X.dtype)


def clip_segments(starts: Any, ends: Any) -> tuple[Any, Any, Any]:
    """The seen parts of segments: their starts and ends (..., 4), and whether there are any (...).

    starts, ends (..., 4) are points after `Camera.frustum`, with s >= 0 before; an end at infinity
    is a vanishing point. Differentiable where no end is on a plane (Liang and Barsky 1984).
    """
    xp = starts.__array_namespace__()
    a, b = inside(starts), inside(ends)
    crossing = (a < 0) != (b < 0)
    at = a / xp.where(crossing, a - b, 1)
    enter = xp.max(xp.where(crossing & (a < 0), at, 0), axis=-1)
    leave = xp.min(xp.where(crossing & (b < 0), at, 1), axis=-1)
    seen = ~xp.any((a < 0) & (b < 0), axis=-1) & (enter <= leave)
    step = ends - starts
    first, last = (starts + t[..., None] * step for t in (enter, leave))
    return first, last, seen


def clip_polygon(corners: NDArray) -> NDArray:
    """The seen part (m, 4) of a convex polygon (n, 4), empty where there is none.

    corners: after `Camera.frustum` (Sutherland and Hodgman 1974).
    """
    for plane in _PLANES:
        if not len(corners):
            break
        after = np.roll(corners, -1, axis=0)
        a, b = corners @ plane, after @ plane
        kept = []
        for start, end, height, next_height in zip(corners, after, a, b, strict=True):
            if height >= 0:
                kept.append(start)
            if (height < 0) != (next_height < 0):
                kept.append(start + height / (height - next_height) * (end - start))
        corners = np.array(kept).reshape(-1, 4)
    return corners
