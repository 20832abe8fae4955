"""The cluster-robust covariance of an estimate, for errors that are alike within blocks.

An estimate L u of p numbers, with u = U^T e of the errors e (k,) and orthonormal columns U (k, m),
has for errors independent between blocks b the covariance

    L (sum_b s_b s_b^T) L^T,    s_b = (I - U_b^T U_b)^(-1/2) U_b^T r_b,

with the residuals r of the fit, which are smaller than the errors. The root makes up for that:
without bias for white noise (CR2 of Bell and McCaffrey 2002). The variance of number k is about
that of chi-squared with so many degrees of freedom that mean and variance are right for white noise
(Satterthwaite). Student's t with these makes intervals honest where blocks are few, or few of them
tell a number. Pustejovsky and Tipton 2018, equations 6, 10 and 12.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Of a direction that a single block tells, the rest is rounding.
_ALL = 1 - 1e-9


def clustered(
    u: NDArray, residuals: NDArray, blocks: NDArray, factor: NDArray
) -> tuple[NDArray, NDArray]:
    """The covariance (m, m) of U^T e, and the degrees of freedom (p,) of L U^T e.

    u (k, m), residuals (k,), blocks (k,): the block of each row; factor L (p, m).
    """
    order = np.argsort(blocks, kind="stable")
    starts = np.flatnonzero(np.diff(blocks[order], prepend=-1))
    parts = [order[i:j] for i, j in zip(starts, [*starts[1:], len(order)], strict=True)]
    gram = np.array([u[rows].T @ u[rows] for rows in parts])
    score = np.array([u[rows].T @ residuals[rows] for rows in parts])
    share, axes = np.linalg.eigh(gram)
    share = np.clip(share, 0, _ALL)
    root = 1 / np.sqrt(1 - share)
    score = np.einsum("bij,bj,bkj,bk->bi", axes, root, axes, score, optimize=True)
    along = np.einsum("bij,pi->pbj", axes, factor, optimize=True) * root
    own = np.sum(along**2 * share, axis=-1)
    cross = np.einsum("bij,pbj->pbi", axes, along * share, optimize=True)
    if len(parts) < u.shape[1]:
        products = np.einsum("pbi,pci->pbc", cross, cross, optimize=True)
    else:
        products = np.einsum("pbi,pbj->pij", cross, cross, optimize=True)
    length = np.sum(cross**2, axis=-1)
    mean = np.sum(own - length, axis=-1)
    spread = np.sum(own**2 - 2 * own * length, axis=-1) + np.sum(products**2, axis=(1, 2))
    freedom = np.where(spread > 0, mean**2 / np.where(spread > 0, spread, 1), 1.0)
    return score.T @ score, np.maximum(freedom, 1.0)
