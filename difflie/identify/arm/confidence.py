"""Standard errors of an arm's numbers, for residuals that are alike over many rows.

With the Hessian H = R^T R + P of what is minimised, P that of the distance from the file, the
numbers have the covariance

    H^-1 (sum_b s_b s_b^T + c P) H^-1,    s_b = A_b^T r_b,    c = max(1, 2 E / (n - tr H^-1 P))

over blocks b of rows (cluster-robust, Liang and Zeger 1986): P stands for the error of the file's
numbers. Had these the errors that the weight says, the distances E would be half the count of
numbers that the data tells (MacKay 1992); where they are larger, the file is worse, by c. The part
of P is the prior's share.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..consistency import Consistent
from .equations import Equations
from .held_out import blocks_of

BLOCKS = 30
# The logarithm of a velocity of friction is known to this beforehand: it is one of those tried.
_RANGE = 1.3


def standard_errors(
    equations: Equations, deviations: NDArray, found: Consistent, bends: NDArray
) -> tuple[NDArray, NDArray]:
    """The standard errors (p,), and the part (p,) of the file's numbers in their squares.

    bends (r, nv, k): the columns of what was found besides, see `Logs.bends`, whose errors enter
    those of the numbers. Of numbers at their bound: as they would be without it. Infinite and 1 for
    numbers without columns, which are held. NaN where the numbers are not converged: no error says
    how far off they are.
    """
    p = len(found.x)
    known = np.flatnonzero(np.diag(found.hessian) > 0)
    errors, share = np.full(p, np.inf), np.ones(p)
    if not found.converged:
        errors[known] = share[known] = np.nan
        return errors, share
    for kept, at in ((known, found.active), (np.setdiff1d(known, found.active), None)):
        at = kept if at is None else at
        squares, prior = _variances(equations, deviations, found, kept, bends)
        inside = np.isin(kept, at)
        errors[kept[inside]] = np.sqrt(squares[inside])
        share[kept[inside]] = prior[inside] / squares[inside]
    return errors, share


def _variances(
    equations: Equations,
    deviations: NDArray,
    found: Consistent,
    free: NDArray,
    bends: NDArray,
) -> tuple[NDArray, NDArray]:
    """The variances (k,) of free numbers (k,), and the prior's parts of them."""
    count, more = len(free), bends.shape[2]
    columns = np.concatenate((equations.columns[:, :, free], bends), axis=2) / deviations[:, None]
    columns = np.where(equations.counts[:, :, None], columns, 0)
    residual = np.where(equations.counts, equations.residual(found.x), 0) / deviations
    residual = residual * equations.weight[:, None]
    # Blocks of different recordings are apart.
    apart = blocks_of(equations, BLOCKS) + BLOCKS * equations.of
    each = np.unique(apart)
    scores = np.stack(
        [np.einsum("rjp,rj->p", columns[apart == b], residual[apart == b]) for b in each]
    )
    hessian = np.zeros((count + more, count + more))
    hessian[:count, :count] = found.hessian[np.ix_(free, free)]
    along = np.einsum("rjp,r,rjk->pk", columns, equations.weight, columns[:, :, count:])
    hessian[:, count:], hessian[count:, :count] = along, along[:count].T
    beforehand = np.zeros_like(hessian)
    beforehand[count:, count:] = np.eye(more) / _RANGE**2
    hessian += beforehand
    scale = 1 / np.sqrt(np.diag(hessian))
    inverse = np.linalg.inv(hessian * np.outer(scale, scale)) * np.outer(scale, scale)
    measured = np.sum((scores @ inverse) ** 2, axis=0) * len(each) / max(len(each) - 1, 1)
    measured += np.einsum("ij,jk,ki->i", inverse, beforehand, inverse)
    part = np.zeros_like(hessian)
    part[:count, :count] = found.prior[np.ix_(free, free)]
    told = count - float(np.sum(inverse * part))
    worse = max(1.0, 2 * found.weighed / max(told, 1.0))
    prior = worse * np.einsum("ij,jk,ki->i", inverse, part, inverse)
    return (measured + prior)[:count], prior[:count]
