"""Standard errors, correlations and identifiability of a fit.

Near the minimum the estimate of x has the covariance s^2 (J^T J)^-1. J is the derivative of the
residuals (k, n) in standard deviations, and s^2 their variance about the fit, or 1 if the given
standard deviations are those of the measurements. Seber and Wild 2003, section 2.1.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .jacobian import triangle

_BLOCKS = 50


@dataclasses.dataclass(frozen=True)
class Information:
    """The covariance and identifiability of a fit with n unknowns and k residuals.

    covariance (n, n) of the unknowns, infinite along directions that are not identifiable; inverse
    (n, n): that of J^T J, the covariance without the factor s^2. unidentifiable: for each such
    direction the names in it with their shares, largest first. condition: that of J with columns of
    length 1.
    """

    covariance: NDArray
    inverse: NDArray
    unidentifiable: tuple[tuple[tuple[str, float], ...], ...]
    condition: float


def information(jacobian: NDArray, variance: float, names: tuple[str, ...]) -> Information:
    """From J (k, n) at the minimum, the residuals' variance s^2, and the unknowns' names (n,)."""
    n = jacobian.shape[1]
    # A triangle with the same products J^T J, in few rows.
    r = triangle(jacobian)
    size = np.linalg.norm(r, axis=0)
    seen = size > 0
    scale = np.where(seen, size, 1)
    _, s, vt = np.linalg.svd(r / scale, full_matrices=True)
    s = np.concatenate((s, np.zeros(n - len(s))))
    tolerance = np.sqrt(np.finfo(jacobian.dtype).eps) * s.max(initial=0)
    null = vt[s <= tolerance]
    kept = vt[s > tolerance] / s[s > tolerance, None]
    inverse = (kept.T @ kept) / np.outer(scale, scale)
    touched = (np.abs(null) > 1e-6).any(axis=0) if len(null) else np.zeros(n, bool)
    inverse[np.diag(touched)] = np.inf
    smallest = s[-1] if n else 1.0
    condition = float(s[0] / smallest) if smallest > 0 else float("inf")
    shares = tuple(_shares(row, names) for row in null)
    return Information(variance * inverse, inverse, shares, condition)


def blockwise(
    information: Information, jacobian: NDArray, residuals: NDArray, sizes: Sequence[int]
) -> NDArray:
    """The block-robust covariance (n, n) of the unknowns, for correlated neighbouring residuals.

        C (sum_b s_b s_b^T) C,    s_b = J_b^T r_b,    C = (J^T J)^-1

    over fifty blocks b of the residuals (k,), each with a part of every sequence of the given
    sizes. The residuals after these, priors, count as independent with unit variance. This is the
    cluster-robust or sandwich covariance. Liang and Zeger 1986.
    """
    finite = np.where(np.isfinite(information.inverse), information.inverse, 0)
    ends = np.cumsum([0, *sizes])
    parts = [
        np.array_split(np.arange(first, last), _BLOCKS)
        for first, last in itertools.pairwise(ends.tolist())
    ]
    rows = [np.concatenate([part[b] for part in parts]) for b in range(_BLOCKS if parts else 0)]
    rows = [block for block in rows if len(block)]
    scores = np.array([jacobian[block].T @ residuals[block] for block in rows])
    scores = scores.reshape(-1, jacobian.shape[1])
    prior = jacobian[ends[-1] :]
    meat = scores.T @ scores * len(rows) / max(len(rows) - 1, 1) + prior.T @ prior
    found = finite @ meat @ finite
    found[np.diag(~np.isfinite(np.diag(information.inverse)))] = np.inf
    return found


def _shares(direction: NDArray, names: tuple[str, ...]) -> tuple[tuple[str, float], ...]:
    order = np.argsort(-np.abs(direction))
    return tuple((names[k], float(direction[k])) for k in order if abs(direction[k]) > 0.1)


def correlations(covariance: NDArray) -> NDArray:
    """The correlations (n, n) of a covariance; NaN where a variance is not finite or zero."""
    with np.errstate(invalid="ignore", divide="ignore"):
        deviation = np.sqrt(np.diag(covariance))
        found = covariance / np.outer(deviation, deviation)
    found[~np.isfinite(deviation) | (deviation == 0)] = np.nan
    found[:, ~np.isfinite(deviation) | (deviation == 0)] = np.nan
    return found


def whiteness(residuals: NDArray, lags: int = 20) -> tuple[NDArray, float]:
    """Autocorrelations (lags,) of a sequence of residuals (k,), and the bound of white noise.

    For white noise 95 % are within the bound, 1.96 / sqrt(k). If not, standard errors from the
    information are too small; use the block-robust ones (`blockwise`, `Fit.blockwise_errors`).
    Ljung 1999, section 16.6.
    """
    r = residuals - residuals.mean()
    power = float(r @ r)
    found = [float(r[:-k] @ r[k:]) / power if power > 0 else 0.0 for k in range(1, lags + 1)]
    return np.array(found), 1.96 / np.sqrt(len(r))
