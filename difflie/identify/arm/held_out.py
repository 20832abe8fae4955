"""The weight of the distance from the file's numbers, chosen on held-out blocks.

Each recording is cut into successive blocks; each block is predicted by a fit to all others
(cross-validation with blocks, as neighbouring rows are alike; Burman, Chow and Nolan 1994).
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from .consistent import Consistent, Distance, Nominal, consistent
from .equations import Equations
from .verdict import r_squared
from .weighted_least_squares import least_squares

WEIGHTS = tuple(10.0 ** np.arange(4, -1.5, -0.5))
# Errors that differ by this part differ by chance.
_ALIKE = 0.05


@dataclasses.dataclass(frozen=True)
class HeldOut:
    """Predictions of blocks by fits to the others.

    weights (n,), and errors (n,): the part of a joint's variance that is not explained, 1 - R2, its
    mean over joints. best: the largest weight that predicts about as well as any. residuals (r, nv)
    in N m or N: with that weight; floor (r, nv): of least squares without any bounds. NaN where a
    joint does not count.
    """

    weights: NDArray
    errors: NDArray
    best: float
    residuals: NDArray
    floor: NDArray


def blocks_of(equations: Equations, count: int) -> NDArray:
    """The block (r,) of each row: every recording has `count` successive ones."""
    found = np.zeros(len(equations.of), int)
    for k in np.unique(equations.of):
        rows = np.flatnonzero(equations.of == k)
        found[rows] = np.arange(len(rows)) * count // len(rows)
    return found


def held_out(
    equations: Equations,
    deviations: NDArray,
    nominal: Nominal,
    nonnegative: NDArray,
    weights: tuple[float, ...] = WEIGHTS,
    distance: Distance = "entropic",
    count: int = 5,
) -> HeldOut:
    """Predictions of `count` blocks with each of these weights, from the largest on."""
    blocks, weights = blocks_of(equations, count), tuple(sorted(weights, reverse=True))
    off = np.full((len(weights), *equations.torque.shape), np.nan)
    floor = np.full(equations.torque.shape, np.nan)
    for block in range(count):
        out = blocks == block
        triangle = equations.triangle(deviations, ~out)
        floor[out] = equations.residual(least_squares(triangle))[out]
        found: Consistent | None = None
        for k, weight in enumerate(weights):
            start = None if found is None else found.x
            found = consistent(triangle, nominal, nonnegative, weight, distance, start)
            off[k][out] = equations.residual(found.x)[out]
    errors = np.array([_error(each, equations) for each in off])
    at = int(np.argmax(errors <= (1 + _ALIKE) * errors.min()))
    return HeldOut(np.array(weights), errors, float(weights[at]), off[at], floor)


def _error(off: NDArray, equations: Equations) -> float:
    """1 - R2 of residuals (r, nv), its mean over joints."""
    rest = [
        1 - r_squared(equations.torque[counts, j], off[counts, j])
        for j, counts in enumerate(equations.counts.T)
        if counts.any()
    ]
    return float(np.nanmean(rest))
