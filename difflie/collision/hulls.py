"""Convex hulls of points, and hulls of fewer corners inside them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull, QhullError

from ..system.validation import ModelError
from .shapes import MOST_VERTICES


def hull_corners(points: NDArray) -> NDArray:
    """The corners (k, 3) of the convex hull of points (n, 3) in m, in their order.

    Raises `ModelError` for points in a plane.
    """
    try:
        return points[np.sort(ConvexHull(points).vertices)]
    except (QhullError, ValueError):
        raise ModelError(
            f"{len(points)} points have no convex hull with a volume; give four or more that are "
            "not in a plane"
        ) from None


def fewer_corners(corners: NDArray, most: int = MOST_VERTICES) -> NDArray:
    """At most so many of the corners (n, 3) of a hull in m, spread over it; all if they are few.

    Each is the farthest from those chosen before, beginning with the farthest from the mean.
    """
    if len(corners) <= most:
        return corners
    centred = corners - corners.mean(axis=0)
    chosen = [int(np.argmax(np.sum(centred**2, axis=1)))]
    distance = np.linalg.norm(centred - centred[chosen[0]], axis=1)
    while len(chosen) < most:
        chosen.append(int(np.argmax(distance)))
        distance = np.minimum(distance, np.linalg.norm(centred - centred[chosen[-1]], axis=1))
    return corners[np.sort(chosen)]
