"""The weight of the distance from the file's numbers, chosen on held-out blocks.

Each recording is cut into successive blocks; each block is predicted by a fit to all others
(cross-validation with blocks, as neighbouring rows are alike; Burman, Chow and Nolan 1994).
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from ..consistency import Consistent, Distance, Nominal, consistent
from ..statistics import r_squared
from .equations import Equations
from .weighted_least_squares import least_squares

WEIGHTS = tuple(10.0 ** np.arange(4, -1.5, -0.5))
# Errors that differ by this part differ by chance.
_ALIKE = 0.05
# A joint whose error is larger with all weights is not predicted: its mean does as well.
_PREDICTED = 0.5


@dataclasses.dataclass(frozen=True)
class HeldOut:
    """Predictions of blocks by fits to the others.

    weights (n,), and errors (n,): the mean of S / (S + V) over the joints that some weight
    predicts, S the mean square of the residuals and V the variance of the torque. It is about 1 -
    R2 where this is small, and at most 1, so that no joint outweighs all others. best: the largest
    weight that predicts about as well as any. residuals (r, nv) in N m or N: with that weight;
    floor (r, nv): of least squares without any bounds. NaN where a joint does not count.
    unconverged: the fits that have not converged.
    """

    weights: NDArray
    errors: NDArray
    best: float
    residuals: NDArray
    floor: NDArray
    unconverged: int


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
    unconverged = 0
    for block in range(count):
        out = blocks == block
        triangle = equations.triangle(deviations, ~out)
        floor[out] = equations.residual(least_squares(triangle))[out]
        found: Consistent | None = None
        for k, weight in enumerate(weights):
            start = None if found is None else found.x
            found = consistent(triangle, nominal, nonnegative, weight, distance, start)
            unconverged += not found.converged
            off[k][out] = equations.residual(found.x)[out]
    errors, at = chosen(np.array([_unexplained(each, equations) for each in off]))
    return HeldOut(np.array(weights), errors, float(weights[at]), off[at], floor, unconverged)


def chosen(unexplained: NDArray) -> tuple[NDArray, int]:
    """The errors (n,) of weights, and the first of those that are about as small as any.

    unexplained (n, nv): S / V of each joint, 1 - R2, which has no upper end; NaN is left out.
    """
    each = unexplained / (1 + unexplained)
    known = ~np.isnan(each).any(axis=0)
    # Of joints that no weight predicts, chance is more than all that others lose.
    told = known & (np.where(known, each, 1).min(axis=0) < _PREDICTED)
    told = told if told.any() else known
    errors = each[:, told].mean(axis=1) if told.any() else np.ones(len(each))
    return errors, int(np.argmax(errors <= (1 + _ALIKE) * errors.min()))


def _unexplained(off: NDArray, equations: Equations) -> NDArray:
    """1 - R2 of residuals (r, nv), for each joint (nv,); NaN where the torque does not vary."""
    found = np.full(off.shape[1], np.nan)
    for j, counts in enumerate(equations.counts.T):
        if counts.any():
            found[j] = 1 - r_squared(equations.torque[counts, j], off[counts, j])
    return found
