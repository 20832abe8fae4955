"""Measured poses as the readings of a sensor."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ...groups import quaternion
from ..reading.columns import DataError

# The most that the length of a measured quaternion may differ from 1.
_LENGTH = 0.1


def pose_readings(quaternions: Any, positions: Any) -> NDArray:
    """Readings (n, 6) of a `Pose`: rotation vectors in rad, then positions in m.

    quaternions (n, 4), as (w, x, y, z) of any sign, and positions (n, 3) in m, as motion capture
    gives them. A row with a NaN is a gap. Successive rotation vectors are near each other, beyond
    pi where a turn goes on, so that they may be interpolated. Raises DataError for other shapes,
    and for quaternions that are not of length one, up to rounding.
    """
    quaternions, positions = np.asarray(quaternions, float), np.asarray(positions, float)
    n = len(quaternions)
    if quaternions.shape != (n, 4) or positions.shape != (n, 3):
        raise DataError(
            f"the quaternions have shape {quaternions.shape} and the positions {positions.shape}; "
            "give (n, 4) and (n, 3)"
        )
    lengths = np.linalg.norm(quaternions, axis=1)
    for k in np.flatnonzero(np.abs(lengths - 1) > _LENGTH)[:1]:
        raise DataError(
            f"the quaternion of row {k + 1} has the length {lengths[k]:.4g}; give (w, x, y, z) of "
            "length 1, and leave gaps as NaN"
        )
    gap = np.any(np.isnan(np.column_stack((quaternions, positions))), axis=1)
    safe = np.where(gap[:, None], [1.0, 0.0, 0.0, 0.0], quaternions / lengths[:, None])
    turns = np.asarray(jax.vmap(quaternion.log)(jnp.asarray(safe)), float)
    return unwrapped(np.where(gap[:, None], np.nan, np.column_stack((turns, positions))))


def unwrapped(poses: NDArray) -> NDArray:
    """Readings (n, 6) of a `Pose`, with whole turns added so that successive ones are near.

    Rows with a NaN are gaps, and left out.
    """
    found = poses.copy()
    turns = found[:, :3]
    for before, k in itertools.pairwise(np.flatnonzero(~np.any(np.isnan(turns), axis=1))):
        length = np.linalg.norm(turns[k])
        if length > 0:
            whole = 2 * np.pi / length * turns[k]
            # Along its axis, to the multiple that is nearest to the vector before.
            count = np.round((turns[before] - turns[k]) @ whole / (whole @ whole))
            turns[k] += count * whole
    return found
