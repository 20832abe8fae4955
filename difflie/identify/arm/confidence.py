"""Standard errors of an arm's numbers, for residuals that are alike over many rows.

With the Hessian H = R^T R + P of what is minimised, P that of the distance from the file, the
numbers have the covariance

    H^-1 (sum_b s_b s_b^T + P) H^-1,    s_b = A_b^T r_b,

over blocks b of rows (cluster-robust, Liang and Zeger 1986): P stands for the error of the file's
numbers. The part of P is the prior's share. Numbers at their bound are held there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .consistent import Consistent
from .equations import Equations
from .held_out import blocks_of

_BLOCKS = 30


def standard_errors(
    equations: Equations, deviations: NDArray, found: Consistent
) -> tuple[NDArray, NDArray]:
    """The standard errors (p,), and the part (p,) of the file's numbers in their squares.

    Both NaN for numbers that are held at zero, because they have no columns or a bound holds them.
    """
    p = len(found.x)
    free = np.setdiff1d(np.flatnonzero(np.diag(found.hessian) > 0), found.active)
    columns = (equations.columns / deviations[:, None])[:, :, free]
    residual = np.where(equations.counts, equations.residual(found.x), 0) / deviations
    blocks = blocks_of(equations, _BLOCKS)
    # Blocks of different recordings are apart.
    apart = blocks + _BLOCKS * equations.of
    each = np.unique(apart)
    scores = np.stack(
        [np.einsum("rjp,rj->p", columns[apart == b], residual[apart == b]) for b in each]
    )
    scale = 1 / np.sqrt(np.diag(found.hessian)[free])
    inverse = np.linalg.inv(found.hessian[np.ix_(free, free)] * np.outer(scale, scale))
    inverse = inverse * np.outer(scale, scale)
    measured = np.sum((scores @ inverse) ** 2, axis=0) * len(each) / max(len(each) - 1, 1)
    prior = np.einsum("ij,jk,ki->i", inverse, found.prior[np.ix_(free, free)], inverse)
    errors, share = np.full(p, np.nan), np.full(p, np.nan)
    total = measured + prior
    errors[free] = np.sqrt(total)
    share[free] = prior / np.where(total > 0, total, 1)
    return errors, share
