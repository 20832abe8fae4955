"""Confidence intervals by Student's t, one-sided at bounds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

# An estimate is at its bound where it is nearer than this part of its standard error.
_NEAR = 1e-2


def at_bounds(
    values: NDArray, starts: NDArray, errors: NDArray, limits: tuple[NDArray, NDArray]
) -> NDArray:
    """-1 at the lower bound, 1 at the upper one and 0 else, (p,), for values (p,).

    errors (p,): standard errors; where they are infinite the way from the start is the measure.
    """
    found = np.zeros(len(values), int)
    for side, limit in zip((-1, 1), limits, strict=True):
        room = _NEAR * np.where(np.isfinite(errors), errors, np.abs(starts - limit))
        found[np.isfinite(limit) & (np.abs(values - limit) <= room)] = side
    return found


def intervals(
    values: NDArray,
    errors: NDArray,
    freedom: NDArray,
    limits: tuple[NDArray, NDArray],
    sides: NDArray,
    level: float = 0.95,
) -> NDArray:
    """Confidence intervals (p, 2) within the bounds, one-sided from the bound where sides is not 0.

    errors (p,), with Student's degrees of freedom (p,); sides as of `at_bounds`.
    """
    freedom = np.minimum(freedom, 1e9)
    both, one = (stdtrit(freedom, tail) for tail in ((1 + level) / 2, level))
    with np.errstate(invalid="ignore"):
        lower = np.where(sides == 1, values - one * errors, values - both * errors)
        upper = np.where(sides == -1, values + one * errors, values + both * errors)
    lower = np.where(sides == -1, limits[0], np.maximum(lower, limits[0]))
    upper = np.where(sides == 1, limits[1], np.minimum(upper, limits[1]))
    return np.stack((lower, upper), axis=1)
