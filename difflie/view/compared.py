"""Measured and predicted curves on one axis, what is left of them below, and its spectra."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from .figures import broken, colours, entitle, figure, label, plain

# What is measured is wide and pale, so that it is seen on both sides of what is predicted.
_MEASURED = {"color": "#9cc3ea", "linewidth": 3.2, "label": "measured"}
_PREDICTED = {"color": "#9d3201", "linewidth": 0.9, "label": "predicted"}
_RAW = {"color": "#226356", "linewidth": 0.9, "linestyle": (0, (4, 2))}
_LEFT = {"color": "#5f6368", "linewidth": 0.9, "label": "left: measured - predicted"}


@dataclass(frozen=True)
class Compared:
    """A measured and a predicted curve, such as the torque of one joint.

    name: of it; unit: of its values. t (r,) in s and measured (r,), None where only what is left is
    known; times (m,) in s, predicted (m,) and left (m,) of what is measured. raw (r,): what became
    the measured curve, such as the reading of a torque before its scale; raw_name says what it is.
    NaN where a curve breaks.
    """

    name: str
    unit: str
    t: NDArray
    measured: NDArray | None
    times: NDArray
    predicted: NDArray
    left: NDArray
    raw: NDArray | None = None
    raw_name: str = "as read"


def compared_figure(
    curves: Sequence[Compared], columns: int | None = None, title: str = ""
) -> Figure:
    """Each comparison with what is left below it on the same time axis, row by row, as a figure.

    columns: so many beside each other; by default one to three, by their number. Raises ValueError
    without any, and for arrays of other shapes than their times.
    """
    n = len(curves)
    if not n:
        raise ValueError("measured and predicted: there is nothing to draw; give at least one pair")
    for curve in curves:
        _check(curve)
    parts = [x for c in curves for x in (c.measured, c.predicted, c.left) if x is not None]
    if not any(np.isfinite(x).any() for x in parts):
        raise ValueError("measured and predicted: no value is finite, so there is nothing to draw")
    columns = columns or (1 if n < 3 else 2 if n < 9 else 3)
    rows = -(-n // columns)
    size = {1: 7.5, 2: 5.5}.get(columns, 4.4) * columns + 1.8, 2.9 * rows
    canvas, axes = figure(2 * rows, columns, size, [2.0, 1.0] * rows)
    for k in range(rows * columns):
        above, below = axes[2 * (k // columns) : 2 * (k // columns) + 2, k % columns]
        if k < n:
            _draw(above, below, curves[k])
        else:
            above.set_visible(False)
            below.set_visible(False)
    named = {}
    for a in axes.ravel():
        handles, names = a.get_legend_handles_labels()
        named |= dict(zip(names, handles, strict=True))
    place = "outside lower right" if title else "outside upper right"
    canvas.legend(list(named.values()), list(named), loc=place, ncols=4, frameon=False)
    entitle(canvas, title)
    return canvas


def _check(curve: Compared) -> None:
    for name, values, t in (
        ("measured", curve.measured, curve.t),
        (curve.raw_name, curve.raw, curve.t),
        ("predicted", curve.predicted, curve.times),
        ("left", curve.left, curve.times),
    ):
        if values is not None and np.shape(values) != np.shape(t):
            raise ValueError(
                f"{curve.name}: what is {name} has shape {np.shape(values)}, its times "
                f"{np.shape(t)}; give one number for each time"
            )


def _draw(above: Axes, below: Axes, curve: Compared) -> None:
    below.plot(curve.times, curve.left, **_LEFT)
    below.axhline(0, color="#999999", linewidth=0.6)
    below.margins(x=0.01)
    label(below, "t [s]", "left", legend=False)
    title = broken(plain(curve.name))
    above.set_title(title, loc="left", fontsize="medium", fontweight="bold")
    if curve.measured is None:
        above.set_visible(False)
        below.set_title(title, loc="left", fontsize="medium", fontweight="bold")
        below.set_ylabel(f"left [{curve.unit}]")
        return
    above.plot(curve.t, curve.measured, **_MEASURED)
    if curve.raw is not None:
        above.plot(curve.t, curve.raw, label=curve.raw_name, **_RAW)
    above.plot(curve.times, curve.predicted, **_PREDICTED)
    _keep_scale(above, curve.measured)
    above.sharex(below)
    above.tick_params(labelbottom=False)
    label(above, "", f"[{curve.unit}]", legend=False)


def _keep_scale(axes: Axes, measured: NDArray) -> None:
    """Keeps a prediction that runs away from pressing the measured curve flat."""
    there = measured[np.isfinite(measured)]
    if not len(there):
        return
    spread = max(float(np.ptp(there)), 1e-12)
    least, most = axes.get_ylim()
    axes.set_ylim(max(least, there.min() - 2 * spread), min(most, there.max() + 2 * spread))


@dataclass(frozen=True)
class Spectra:
    """Power spectral densities (m, n) over frequencies (m,) in Hz of n named signals of a unit."""

    name: str
    unit: str
    names: Sequence[str]
    hertz: NDArray
    powers: NDArray

    @staticmethod
    def of_rows(
        name: str, unit: str, names: Sequence[str], t: NDArray, left: NDArray
    ) -> Spectra | None:
        """Of signals (r, n) at t (r,) in s, by Welch's averages; NaN counts as zero.

        None where no signal has a number, or there are less than eight rows.
        """
        from scipy.signal import welch

        there = np.asarray(np.isfinite(left).any(axis=0))
        if not there.any() or len(t) < 8:
            return None
        rate, rows = 1 / float(np.median(np.diff(t))), min(256, len(t))
        hertz, powers = welch(np.nan_to_num(left[:, there]), rate, nperseg=rows, axis=0)
        kept = [n for n, k in zip(names, there, strict=True) if k]
        return Spectra(name, unit, kept, hertz[1:], powers[1:])

    @staticmethod
    def of_windows(
        name: str, unit: str, names: Sequence[str], step: float, left: NDArray
    ) -> Spectra | None:
        """Of signals in windows (w, s, n) with steps in s: means over the windows without NaN.

        None where there is no such window of eight rows or more.
        """
        from scipy.signal import periodogram

        whole = left[np.isfinite(left).all(axis=(1, 2))]
        if not len(whole) or whole.shape[1] < 8:
            return None
        hertz, powers = periodogram(whole, 1 / step, "hann", detrend="linear", axis=1)
        return Spectra(name, unit, names, hertz[1:], powers.mean(axis=0)[1:])


def spectrum_figure(spectra: Sequence[Spectra]) -> Figure:
    """The spectra of what is left, one above the other, as a figure."""
    canvas, axes = figure(len(spectra), 1, (8.0, 3.8 * len(spectra)))
    for a, each in zip(axes[:, 0], spectra, strict=True):
        several = zip(each.names, each.powers.T, colours(len(each.names)), strict=True)
        for name, power, colour in several:
            drawn = np.maximum(power, 1e-300)
            a.loglog(each.hertz, drawn, linewidth=1.0, label=plain(name), color=colour)
        label(a, "frequency [Hz]", f"power of what is left [({each.unit})^2/Hz]", plain(each.name))
    entitle(canvas, "Spectra of what is left")
    return canvas
