"""Blocks of residuals that are about independent: many correlation times long.

The correlation time of a stationary sequence with the autocorrelations rho_l is here

    2 h sum_l rho_l^2

for rows in steps of h, which is h (1 + rho) / (1 - rho), up to a few percent of the steps, for
rho_l = rho^l. Only those rho_l count that are beyond three times Bartlett's
standard error, the root of (1 + 2 sum_(i<l) rho_i^2) / count (Bartlett 1946). Squares, since the
product of residuals and regressors may be alike for longer than a sum with both signs tells.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .problem import Layout

# A block has so many correlation times: sums over blocks then are independent up to a tenth.
_TIMES = 16.0
# Student's t has few degrees of freedom with fewer blocks; more blocks tell hardly more.
_LEAST, _MOST = 10, 100


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
    long = _TIMES * correlation_time(residuals, layout)
    length = np.clip(long, whole / _MOST, whole / _LEAST)
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
