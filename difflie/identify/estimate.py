"""Information, correlations and identifiability of a fit.

Near the minimum the estimate of x has for white noise the covariance s^2 (J^T J)^-1. J is the
derivative of the residuals (k, n) in standard deviations, and s^2 their variance about the fit, or
1 if the given standard deviations are those of the measurements. Seber and Wild 2003, section 2.1.
Errors for noise that is not white are in `uncertainty`.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .jacobian import triangle

# So many names are in a sentence on directions.
_NAMED = 8


@dataclasses.dataclass(frozen=True)
class Information:
    """The covariance and identifiability of a fit with n unknowns and k residuals.

    covariance (n, n) of the unknowns, infinite along directions that are not identifiable; inverse
    (n, n): that of J^T J, the covariance without the factor s^2. factor F (n, rank): J F has
    orthonormal columns, so that F F^T is the inverse of J^T J where it has one. unidentifiable: for
    each direction that is not identifiable the names in it with their shares, largest first.
    condition: that of J with columns of length 1.
    """

    covariance: NDArray
    inverse: NDArray
    factor: NDArray
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
    factor = kept.T / scale[:, None]
    inverse = factor @ factor.T
    touched = (np.abs(null) > 1e-6).any(axis=0) if len(null) else np.zeros(n, bool)
    inverse[np.diag(touched)] = np.inf
    smallest = s[-1] if n else 1.0
    condition = float(s[0] / smallest) if smallest > 0 else float("inf")
    shares = tuple(_shares(row, names) for row in null)
    return Information(variance * inverse, inverse, factor, shares, condition)


def directions(unidentifiable: Sequence[Sequence[tuple[str, float]]]) -> str:
    """A sentence on the directions that are not identifiable, as of `Information`; "" for none.

    The names that have the largest parts in all directions come first.
    """
    if not unidentifiable:
        return ""
    total: dict[str, float] = {}
    for name, share in itertools.chain(*unidentifiable):
        total[name] = total.get(name, 0) + share**2
    names = sorted(total, key=lambda name: -total[name])
    count = "one direction" if len(unidentifiable) == 1 else f"{len(unidentifiable)} directions"
    of = "of" if len(names) <= _NAMED else "mostly of"
    return f"this data does not determine {count}, {of} {listed(names)}"


def listed(names: Sequence[str]) -> str:
    """Names in a sentence, the first eight of more."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


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

    For white noise 95 % are within the bound, 1.96 / sqrt(k). If not, `Fit.white_errors` are too
    small; `Fit.standard_errors` allow for it. Ljung 1999, section 16.6.
    """
    r = residuals - residuals.mean()
    power = float(r @ r)
    found = [float(r[:-k] @ r[k:]) / power if power > 0 else 0.0 for k in range(1, lags + 1)]
    return np.array(found), 1.96 / np.sqrt(len(r))
