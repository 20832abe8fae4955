"""What an estimate is worth: information, standard errors for noise of any colour, and intervals.

Near the minimum the estimate of x has for white noise the covariance s^2 (J^T J)^-1. J is the
derivative of the residuals (k, n) in standard deviations, and s^2 their variance about the fit, or
1 if the given standard deviations are those of the measurements. Seber and Wild 2003, section 2.1.

With J^T J = A + P of measurements and of priors, C = (A + P)^-1, the covariance is else

    C (S + c P) C.

S is the covariance of J^T e, cluster-robust for errors e that are alike within blocks, or s^2 A for
white noise. Errors of priors have by their definition the variance c = 1, so that what only a prior
holds has the prior's error; or c is estimated, where the weight of a prior was chosen by what it
predicts (`Problem.is_scaled`).

For an estimate L u of p numbers, u = U^T e with orthonormal columns U (k, m), and for errors that
are independent between blocks b, S is

    sum_b s_b s_b^T,    s_b = (I - U_b^T U_b)^(-1/2) U_b^T r_b,

with the residuals r of the fit, which are smaller than the errors. The root makes up for that:
without bias for white noise (CR2 of Bell and McCaffrey 2002). The variance of number k is about
that of chi-squared with so many degrees of freedom that mean and variance are right for white noise
(Satterthwaite). Student's t with these makes intervals honest where blocks are few, or few of them
tell a number. Pustejovsky and Tipton 2018, equations 6, 10 and 12.

Blocks are many correlation times long. The correlation time of a stationary sequence with the
autocorrelations rho_l is here

    2 h sum_l rho_l^2

for rows in steps of h, which is h (1 + rho) / (1 - rho), up to a few percent of the steps, for
rho_l = rho^l. Only those rho_l count that are beyond three times Bartlett's
standard error, the root of (1 + 2 sum_(i<l) rho_i^2) / count (Bartlett 1946). Squares, since the
product of residuals and regressors may be alike for longer than a sum with both signs tells.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from ..system.shown import some
from .elimination import column_sizes, triangle
from .losses import Loss
from .problem import Layout, Problem

# So many names are in a sentence on directions.
_NAMED = 8
# An estimate is at its bound where it is nearer than this part of its standard error.
_NEAR = 1e-2
# A block has so many correlation times: sums over blocks then are independent up to a tenth.
_TIMES = 16.0
# Student's t has few degrees of freedom with fewer blocks; more blocks tell hardly more.
_LEAST, _MOST = 10, 100
# Of a direction that a single block tells, the rest is rounding.
_ALL = 1 - 1e-9


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
    """The `Information` of a fit with n unknowns and k residuals.

    jacobian (k, n): J at the minimum; variance: s^2 of the residuals, in their unit squared; names
    (n,): those of the unknowns.
    """
    n = jacobian.shape[1]
    # A triangle with the same products J^T J, in few rows.
    r = triangle(jacobian)
    sizes = column_sizes(r)
    _, s, vt = np.linalg.svd(r / sizes, full_matrices=True)
    s = np.concatenate((s, np.zeros(n - len(s))))
    tolerance = np.sqrt(np.finfo(jacobian.dtype).eps) * s.max(initial=0)
    null = vt[s <= tolerance]
    factor = (vt[s > tolerance] / s[s > tolerance, None]).T / sizes[:, None]
    inverse = factor @ factor.T
    touched = (np.abs(null) > 1e-6).any(axis=0) if len(null) else np.zeros(n, bool)
    inverse[np.diag(touched)] = np.inf
    least, most = s.min(initial=np.inf), s.max(initial=0)
    condition = 1.0 if not n else float(most / least) if least > 0 else float("inf")
    return Information(
        variance * inverse, inverse, factor, tuple(_shares(row, names) for row in null), condition
    )


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
    return some(names, _NAMED)


def _shares(direction: NDArray, names: tuple[str, ...]) -> tuple[tuple[str, float], ...]:
    order = np.argsort(-np.abs(direction))
    return tuple((names[k], float(direction[k])) for k in order if abs(direction[k]) > 0.1)


def correlations(covariance: NDArray) -> NDArray:
    """The correlations (n, n), without unit, of a covariance (n, n).

    NaN where a variance is not finite or zero.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        deviation = np.sqrt(np.diag(covariance))
        found = covariance / np.outer(deviation, deviation)
    found[~np.isfinite(deviation) | (deviation == 0)] = np.nan
    found[:, ~np.isfinite(deviation) | (deviation == 0)] = np.nan
    return found


def rms(errors: NDArray, axis: int | None = 0) -> NDArray:
    """The root mean square of errors (n, k) by column, without gaps; NaN where all are gaps."""
    count = (~np.isnan(errors)).sum(axis=axis)
    return np.sqrt(np.nansum(errors**2, axis=axis) / np.where(count > 0, count, np.nan))


def r_squared(values: NDArray, errors: NDArray) -> NDArray:
    """1 - the squared errors (n, k) over those of the mean, by column, where there are errors.

    NaN where the values do not vary.
    """
    there = ~np.isnan(errors)
    mean = np.where(there, values, 0).sum(axis=0) / np.maximum(there.sum(axis=0), 1)
    spread = np.where(there, (values - mean) ** 2, 0).sum(axis=0)
    left = np.nansum(errors**2, axis=0) / np.where(spread > 0, spread, 1)
    return np.where(spread > 0, 1 - left, np.nan)


def whiteness(residuals: NDArray, lags: int = 20) -> tuple[NDArray, float]:
    """Autocorrelations (lags,) of a sequence of residuals (k,), and the bound of white noise.

    Both are without unit. For white noise 95 % are within the bound, 1.96 / sqrt(k). If not,
    `Fit.white_errors` are too small; `Fit.standard_errors` allow for it. Ljung 1999, section 16.6.
    """
    r = residuals - residuals.mean()
    power = float(r @ r)
    found = [float(r[:-k] @ r[k:]) / power if power > 0 else 0.0 for k in range(1, lags + 1)]
    return np.array(found), 1.96 / np.sqrt(len(r))


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


def correlation_time(residuals: NDArray, layout: Layout) -> float:
    """The longest correlation time (s) of the channels of residuals (k,), measured ones only."""
    return max((_of_channel(residuals, layout, c) for c in np.unique(layout.channel)), default=0.0)


def blocks(residuals: NDArray, layout: Layout) -> NDArray:
    """The block (k,) of each residual (k,), numbered from 0; none reaches over two sequences.

    A sequence shorter than the correlation time suggests is one block.
    """
    times = [np.unique(layout.time[layout.sequence == s]) for s in np.unique(layout.sequence)]
    spans = [t[-1] - t[0] + _step(t) for t in times]
    whole = sum(spans)
    length = np.clip(_TIMES * correlation_time(residuals, layout), whole / _MOST, whole / _LEAST)
    found, first = np.zeros(len(residuals), int), 0
    for s, t, span in zip(np.unique(layout.sequence), times, spans, strict=True):
        count = min(max(round(span / length), 1) if length > 0 else 1, len(t))
        edges = [part[0] for part in np.array_split(t, count)]
        here = layout.sequence == s
        found[here] = first + np.searchsorted(edges, layout.time[here], side="right") - 1
        first += count
    return found


def _of_channel(residuals: NDArray, layout: Layout, channel: int) -> float:
    """The correlation time (s) of a channel, from the products of all its sequences."""
    products, counts, steps = np.zeros(0), np.zeros(0), []
    for s in np.unique(layout.sequence[layout.channel == channel]):
        here = (layout.channel == channel) & (layout.sequence == s)
        t, row = _rows(layout.time[here])
        series, there = np.zeros(row.max() + 1), np.zeros(row.max() + 1)
        np.add.at(series, row, residuals[here])
        there[row] = 1
        products, counts = (_sum(a, _products(b)) for a, b in ((products, series), (counts, there)))
        steps.append(_step(t))
    if len(counts) < 2 or products[0] <= 0:
        return 0.0
    squares = (products / np.maximum(counts, 1) / (products[0] / counts[0])) ** 2
    total = 0.0
    for square, count in zip(squares[1:], counts[1:], strict=True):
        if 4 * count > counts[0] and square * count > 9 * (1 + 2 * total):
            total += square
    return float(2 * total * np.median(steps))


def _rows(times: NDArray) -> tuple[NDArray, NDArray]:
    """Distinct times, and the row (k,) of each on a grid of their median step, gaps included."""
    t = np.unique(times)
    step = _step(t)
    return t, np.rint((times - t[0]) / step).astype(int) if step > 0 else np.zeros(len(times), int)


def _step(t: NDArray) -> float:
    return float(np.median(np.diff(t))) if len(t) > 1 else 0.0


def _products(x: NDArray) -> NDArray:
    """sum_t x_t x_(t+l) for the lags l up to a half of x (n,)."""
    from scipy.signal import fftconvolve

    return fftconvolve(x, x[::-1])[len(x) - 1 :][: len(x) // 2 + 1]


def _sum(a: NDArray, b: NDArray) -> NDArray:
    """The sum of two sequences, the shorter one continued by zeros."""
    size = max(len(a), len(b))
    return np.pad(a, (0, size - len(a))) + np.pad(b, (0, size - len(b)))


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


@dataclasses.dataclass(frozen=True)
class Rows:
    """What residuals (k,) are: measured and prior, masks (k,), neither at gaps; and their layout.

    Rows without an order in time have the sequence -1. group (k,): of priors whose common variance
    is estimated, numbered from 1; 0 for all other rows.
    """

    measured: NDArray
    prior: NDArray
    layout: Layout
    group: NDArray

    @staticmethod
    def of(problems: Sequence[Problem], priors: int = 0) -> Rows:
        """The rows of problems, followed by so many priors."""
        parts, channels = [], 0
        for k, problem in enumerate(problems, start=1):
            there = np.asarray(problem.measured)
            nothing = np.zeros(there.size, int)
            prior = there & problem.is_prior
            layout = None if prior.all() else problem.layout
            layout = layout or Layout(nothing - 1, nothing.astype(float), nothing)
            group = np.where(prior & problem.is_scaled, k, 0)
            parts.append((there, prior, group, *layout[:2], layout[2] + channels))
            channels += int(layout.channel.max(initial=0)) + 1
        last = np.ones(priors, bool), np.ones(priors, bool), np.zeros(priors, int)
        parts.append((*last, np.full(priors, -1), np.zeros(priors), np.full(priors, channels)))
        there, prior, group, *layout = (np.concatenate(x) for x in zip(*parts, strict=True))
        return Rows(there & ~prior, prior, Layout(*layout), group)

    @property
    def groups(self) -> list[int]:
        """The groups of priors whose variance is estimated."""
        return [int(g) for g in np.unique(self.group) if g]

    @property
    def ordered(self) -> NDArray:
        """The measured rows (k,) that have an order in time, a mask."""
        return self.measured & (self.layout.sequence >= 0)


@dataclasses.dataclass(frozen=True)
class Uncertainty:
    """The errors of p numbers.

    standard_errors (p,): those that allow for correlated residuals, with Student's `freedom` (p,),
    infinite for what is not identifiable; white_errors (p,): of white noise. prior_share (p,): the
    part of priors in the variance, from 0, held by measurements, to 1, held by priors. variance s^2
    of the measured residuals in their standard deviations.
    """

    standard_errors: NDArray
    white_errors: NDArray
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
    scaled = [_scaled(u[rows.group == g], residuals[rows.group == g], factor) for g in rows.groups]
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
    more = sum((variance for variance, _ in scaled), np.zeros(len(factor)))
    total = part + own + more
    # Errors of known priors have no part in what Student's t makes up for (Satterthwaite).
    spread = part**2 / freedom + sum((square for _, square in scaled), np.zeros(len(factor)))
    freedom = np.where(spread > 0, total**2 / np.where(spread > 0, spread, 1), np.inf)
    unknown = ~np.isfinite(np.diag(information.inverse))
    errors, white = (np.where(unknown, np.inf, np.sqrt(v)) for v in (total, white))
    share = np.where(unknown, 0.0, own / np.where(whole > 0, whole, 1))
    return Uncertainty(errors, white, freedom, share, variance)


def _scaled(u: NDArray, r: NDArray, factor: NDArray) -> tuple[NDArray, NDArray]:
    """What priors (k,) of an unknown variance c add to the variances (p,) of numbers, for c > 1.

    And the squares (p,) of their whole part over its degrees of freedom. Along the axes of the
    leverages l of the priors their residuals have the mean squares c (1 - l)^2 + l (1 - l), of
    which measurements have the second part; for small l and for large l this is the estimate of
    MacKay 1992.
    """
    count = len(u)
    leverages = np.zeros(count)
    found = np.linalg.svd(u, compute_uv=False)[:count] ** 2
    leverages[: len(found)] = np.clip(found, 0, 1)
    left = (1 - leverages) ** 2
    told = max(float(left.sum()), 1.0)
    c = max(1.0, (float(r @ r) - float(np.sum(leverages * (1 - leverages)))) / told)
    freedom = max(told**2 / max(float(np.sum(left**2)), 1e-300), 1.0)
    own = np.sum(factor @ _gram(u) * factor, axis=1)
    return (c - 1) * own, (c * own) ** 2 / freedom


def _gram(u: NDArray) -> NDArray:
    return u.T @ u
