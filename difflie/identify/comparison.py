"""Which of two models predicts rows better that neither was fitted to?

Rows are cut into successive blocks, as neighbouring errors are alike; the logarithm of the ratio of
the mean squares is found block by block, and its mean over blocks has an interval by Student's t: a
paired comparison, in which what is hard to predict for both does not count (Diebold and Mariano
1995, with blocks for correlated errors).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from .recordings import DataError

_LEAST = 3


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The mean square errors of the second model over those of the first, joint by joint.

    joints (n,); ratios (n,): geometric means over blocks, NaN without rows; intervals (n, 2): 95 %.
    ratio and interval (2,): the geometric mean over joints.
    """

    joints: tuple[str, ...]
    ratios: NDArray
    intervals: NDArray
    ratio: float
    interval: NDArray

    @property
    def verdict(self) -> str:
        """One sentence: which model predicts better, and where it is otherwise."""
        lower, upper = self.interval
        errors = f"mean squares {self.ratio:.3g} of the first's, 95 % {lower:.3g} to {upper:.3g}"
        if lower <= 1 <= upper:
            said = f"neither model predicts better than by chance ({errors})"
        else:
            said = f"the {'second' if upper < 1 else 'first'} model predicts better ({errors})"
        better = [j for j, ends in zip(self.joints, self.intervals, strict=True) if ends[1] < 1]
        worse = [j for j, ends in zip(self.joints, self.intervals, strict=True) if ends[0] > 1]
        if better:
            said += f"; the second is better at {', '.join(better)}"
        if worse:
            said += f"; the first is better at {', '.join(worse)}"
        return said


def compare(first: NDArray, second: NDArray, joints: Sequence[str], blocks: int = 10) -> Comparison:
    """The comparison of two models by their errors for the same rows, fitted to other ones.

    first and second (r, n): errors such as `residuals` of `Fit.assessment.held_out`, or torque -
    effort of `Fit.validate`, NaN in gaps; joints (n,): the names of their columns. Raises DataError
    for errors of unlike shapes, and for blocks without rows.
    """
    first, second = np.asarray(first, float), np.asarray(second, float)
    if first.shape != second.shape or first.ndim != 2 or first.shape[1] != len(joints):
        raise DataError(
            f"errors have the shapes {first.shape} and {second.shape} for {len(joints)} joints; "
            "judge both models by the same rows, with a column for each joint"
        )
    if not _LEAST <= blocks <= len(first):
        raise DataError(f"{len(first)} rows have no {blocks} blocks; give {_LEAST} or more, fewer")
    there = ~(np.isnan(first) | np.isnan(second))
    parts = np.array_split(np.arange(len(first)), blocks)
    squares = [
        [np.sum(np.where(there[p], errors[p], 0) ** 2, axis=0) for p in parts]
        for errors in (first, second)
    ]
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(squares[1]) - np.log(squares[0])  # (blocks, n)
    logs = np.where(np.isfinite(logs), logs, np.nan)
    judged = ~np.isnan(logs).all(axis=0)
    ratios, intervals = np.full(len(joints), np.nan), np.full((len(joints), 2), np.nan)
    for j in np.flatnonzero(judged):
        ratios[j], intervals[j] = _mean(logs[:, j])
    if not judged.any():
        raise DataError("both models have errors in no row; judge them by measured rows")
    ratio, interval = _mean(np.nanmean(logs[:, judged], axis=1))
    return Comparison(tuple(joints), ratios, intervals, ratio, interval)


def _mean(logs: NDArray) -> tuple[float, NDArray]:
    """The exponential of a mean over blocks, and of its 95 % interval (2,)."""
    logs = logs[~np.isnan(logs)]
    mean, n = logs.mean(), len(logs)
    half = stdtrit(n - 1, 0.975) * logs.std(ddof=1) / np.sqrt(n) if n > 1 else np.inf
    return float(np.exp(mean)), np.exp(np.array((mean - half, mean + half)))
