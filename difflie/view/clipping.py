"""Clipping to the truncated pyramid, in homogeneous coordinates before the division.

A point X = (x, y, z, s), after `Camera.frustum`, is seen where all six of s - x, s + x, s - y, s +
y, s - z and s + z are not negative. They are linear in X, so that a part of a segment or of a
polygon that is seen is found without dividing, also where ends are behind the eye or at infinity.
Arrays are those of jax, to differentiate, or of numpy, to draw.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

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
