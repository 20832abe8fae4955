"""Standard errors of a fit that allow for noise of any colour, and the part that priors have.

With J^T J = A + P of measurements and of priors, C = (A + P)^-1, the estimate has the covariance

    C (S + P) C.

S is the covariance of J^T e: cluster-robust over blocks of correlated residuals (`cluster_robust`,
`correlated_blocks`), or s^2 A for white noise. Errors of priors have unit variances by their
definition, so that what only a prior holds has the prior's error.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from .cluster_robust import clustered
from .correlated_blocks import blocks
from .estimate import Information
from .losses import Loss
from .problem import Layout, Problem


@dataclasses.dataclass(frozen=True)
class Rows:
    """What residuals (k,) are: measured and prior, masks (k,), neither at gaps; and their layout.

    Rows without an order in time have the sequence -1.
    """

    measured: NDArray
    prior: NDArray
    layout: Layout

    @staticmethod
    def of(problems: Sequence[Problem], priors: int = 0) -> Rows:
        """The rows of problems, followed by so many priors."""
        parts, channels = [], 0
        for problem in problems:
            there = np.asarray(problem.measured)
            nothing = np.zeros(there.size, int)
            layout = None if problem.is_prior else problem.layout
            layout = layout or Layout(nothing - 1, nothing.astype(float), nothing)
            parts.append((there, there & problem.is_prior, *layout[:2], layout[2] + channels))
            channels += int(layout.channel.max(initial=0)) + 1
        last = np.ones(priors, bool), np.ones(priors, bool)
        parts.append((*last, np.full(priors, -1), np.zeros(priors), np.full(priors, channels)))
        there, prior, *layout = (np.concatenate(x) for x in zip(*parts, strict=True))
        return Rows(there & ~prior, prior, Layout(*layout))

    @property
    def ordered(self) -> NDArray:
        """The measured rows (k,) that have an order in time, a mask."""
        return self.measured & (self.layout.sequence >= 0)


@dataclasses.dataclass(frozen=True)
class Uncertainty:
    """The errors of p numbers.

    errors (p,): standard errors that allow for correlated residuals, with Student's `freedom` (p,),
    infinite for what is not identifiable; white (p,): those of white noise. prior_share (p,): the
    part of priors in the variance, from 0, held by measurements, to 1, held by priors. variance s^2
    of the measured residuals in their standard deviations.
    """

    errors: NDArray
    white: NDArray
    freedom: NDArray
    prior_share: NDArray
    variance: float


def as_squares(loss: Loss, r: NDArray, jacobian: NDArray, rows: Rows) -> tuple[NDArray, NDArray]:
    """Residuals (k,) and derivatives (k, n) of least squares with the covariance of M-estimates.

    With psi and its mean slope m over the measurements of a channel, psi / sqrt(m) and J sqrt(m):
    their covariance for white noise is sum(psi^2) / (m^2 (k - n)) (J^T J)^-1. Priors are unchanged.
    """
    psi, slope = (np.asarray(x) for x in loss.influence(jnp.asarray(r)))
    channel = rows.layout.channel
    count, total = (
        np.bincount(channel[rows.measured], w, minlength=channel.max() + 1)
        for w in (None, slope[rows.measured])
    )
    size = np.sqrt(np.maximum(total, 0) / np.maximum(count, 1))[channel]
    size = np.where(rows.measured & (size > 0), size, 1)
    return np.where(rows.measured, psi / size, r), size[:, None] * jacobian


def variance_of(u: NDArray, r: NDArray, rows: Rows, eliminated: int = 0) -> float:
    """s^2 of the measured residuals: their squares over their number less the unknowns they tell.

    u (k, m): the orthonormal columns of all rows; eliminated: how many more unknowns the measured
    ones tell. NaN where there are no more measurements than they tell unknowns.
    """
    free = rows.measured.sum() - np.sum(u[rows.measured] ** 2) - eliminated
    return float(np.sum(r[rows.measured] ** 2) / free) if free > 0.5 else np.nan


def uncertainty(
    information: Information,
    jacobian: NDArray,
    residuals: NDArray,
    rows: Rows,
    eliminated: int = 0,
    known_deviations: bool = False,
) -> Uncertainty:
    """The errors of the unknowns, from J (k, n) and the residuals (k,) of a fit.

    eliminated: the number of other unknowns, such as windows' states; J is what they leave of the
    derivatives (`projected`). known_deviations: white errors are those of unit variances.
    """
    # The unknowns are L u with orthonormal columns U.
    factor, u = information.factor, jacobian @ information.factor
    variance = variance_of(u, residuals, rows, eliminated)
    scale = 1.0 if known_deviations else variance
    prior = u[rows.prior].T @ u[rows.prior]
    measured, unordered = (_gram(u[k]) for k in (rows.measured, rows.measured & ~rows.ordered))
    robust, freedom = scale * unordered, np.full(len(factor), np.inf)
    if rows.ordered.any() and not np.isnan(variance):
        u, r = u[rows.ordered], residuals[rows.ordered]
        layout = Layout(*(x[rows.ordered] for x in rows.layout))
        found, freedom = clustered(u, r, blocks(r, layout), factor)
        robust = robust + found
    elif rows.ordered.any():
        robust = np.full_like(robust, np.nan)
    part, own, whole, white = (
        np.sum(factor @ square * factor, axis=1)
        for square in (robust, prior, np.eye(len(prior)), scale * measured + prior)
    )
    # Errors of priors are known: they have no part in what Student's t makes up for.
    noisy = np.where(part > 0, part, 1)
    freedom = np.where(part > 0, freedom * ((part + own) / noisy) ** 2, np.inf)
    unknown = ~np.isfinite(np.diag(information.inverse))
    errors, white = (np.where(unknown, np.inf, np.sqrt(v)) for v in (part + own, white))
    share = np.where(unknown, 0.0, own / np.where(whole > 0, whole, 1))
    return Uncertainty(errors, white, freedom, share, variance)


def _gram(u: NDArray) -> NDArray:
    return u.T @ u
