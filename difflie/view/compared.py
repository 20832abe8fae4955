"""Measured and predicted curves on one axis, what is left of them below, and its spectra.

Of a recording beside a machine's predictions, and of the torques of an arm.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ..system.joints import FORCE_UNITS
from .figures import broken, colours, entitle, figure, label, plain

# What is measured is wide and pale, so that it is seen on both sides of what is predicted.
_MEASURED = {"color": "#9cc3ea", "linewidth": 3.2, "label": "measured"}
_PREDICTED = {"color": "#9d3201", "linewidth": 0.9, "label": "predicted"}
_RAW = {"color": "#226356", "linewidth": 0.9, "linestyle": (0, (4, 2))}
_LEFT = {"color": "#5f6368", "linewidth": 0.9, "label": "residual: measured - predicted"}


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
    label(below, "t [s]", "residual", legend=False)
    title = broken(plain(curve.name))
    above.set_title(title, loc="left", fontsize="medium", fontweight="bold")
    if curve.measured is None:
        above.set_visible(False)
        below.set_title(title, loc="left", fontsize="medium", fontweight="bold")
        below.set_ylabel(f"residual [{curve.unit}]")
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


@dataclass(frozen=True)
class Run:
    """A recording of n rows and its predictions, in N m, N, rad and m.

    joints and units (nv,): the names of the degrees of freedom, and "rad" or "m". t (n,) in s;
    torque (n, nv): what the motion needs, effort (n, nv): what the measured torque delivers at the
    joints, NaN where unknown; raw (n, nv): the measured torque itself. q (n, nv): the measured
    motion, None where coordinates are not one per joint, such as quaternions; target (n, nv): the
    commanded one. motions (w, window + 1, nv): those predicted in windows of so many rows;
    departure, of the same shape: their difference from the measured ones.
    """

    joints: Sequence[str]
    units: Sequence[str]
    t: NDArray
    torque: NDArray
    effort: NDArray
    raw: NDArray
    q: NDArray | None
    target: NDArray
    motions: NDArray
    departure: NDArray
    window: int


def run_figure(run: Run, title: str = "") -> Figure:
    """Measured and predicted torques and motions joint by joint, with what is left below them."""
    torques = list(_torques(run))
    motions = list(_motions(run)) if len(run.motions) or not torques else []
    if not torques or not motions:
        return compared_figure(torques + motions, title=title)
    # The torque and the motion of a joint stand beside each other.
    curves = [c for name in run.joints for c in (*torques, *motions) if c.name == name]
    if len(torques) < len(motions):
        return compared_figure(curves, title=title)
    return compared_figure(curves, 2, title)


def _torques(run: Run) -> Iterator[Compared]:
    for k, (name, unit) in enumerate(zip(run.joints, run.units, strict=True)):
        torque, effort, raw = (x[:, k] for x in (run.torque, run.effort, run.raw))
        if np.isfinite(torque).any():
            there = np.isfinite(effort) & np.isfinite(raw)
            off = np.abs(raw - effort)[there].max(initial=0)
            seen = off > 0.02 * np.ptp(effort[there]) if there.any() else False
            yield Compared(
                name=name,
                unit=FORCE_UNITS[unit],
                t=run.t,
                measured=effort,
                times=run.t,
                predicted=torque,
                left=effort - torque,
                raw=raw if seen else None,
                raw_name="as measured, before the drive",
            )


def _motions(run: Run) -> Iterator[Compared]:
    """The motions in windows, broken where one ends."""
    w, edges, _ = run.departure.shape
    times = np.full((w, edges + 1), np.nan)
    for i in range(w):
        own = run.t[i * run.window : i * run.window + edges]
        times[i, : len(own)] = own
    motions, left = (
        np.concatenate((x, np.full((w, 1, x.shape[2]), np.nan)), axis=1).reshape(-1, x.shape[2])
        for x in (run.motions, -run.departure)
    )
    for k, (name, unit) in enumerate(zip(run.joints, run.units, strict=True)):
        plain = run.q is not None
        target = run.target[:, k]
        yield Compared(
            name=name,
            unit=unit,
            t=run.t,
            measured=run.q[:, k] if run.q is not None else None,
            times=times.ravel(),
            predicted=motions[:, k] if plain else left[:, k],
            left=left[:, k],
            raw=target if np.isfinite(target).any() else None,
            raw_name="commanded",
        )


def run_spectra(run: Run, name: str) -> Figure | None:
    """The spectra of what is left of the torques and, within windows, of the motions.

    None where nothing was predicted.
    """
    found = []
    for unit in dict.fromkeys(run.units):
        at = [k for k, own in enumerate(run.units) if own == unit]
        names = [run.joints[k] for k in at]
        left, step = (run.effort - run.torque)[:, at], float(np.median(np.diff(run.t)))
        title = f"torques, {name}"
        found.append(Spectra.of_rows(title, FORCE_UNITS[unit], names, run.t, left))
        # At its first row a window has no error.
        moved = run.departure[:, 1:, at]
        found.append(Spectra.of_windows(f"motions, {name}", unit, names, step, moved))
    spectra = [each for each in found if each is not None]
    return spectrum_figure(spectra) if spectra else None


@dataclass(frozen=True)
class TorqueRun:
    """A recording: t (r,) in s, measured torques and what is left of them (r, nv).

    units (nv,): of the torques or forces of its joints, "N m" or "N". NaN where a joint does not
    count.
    """

    name: str
    joints: Sequence[str]
    units: Sequence[str]
    t: NDArray
    measured: NDArray
    residual: NDArray


def torque_figure(run: TorqueRun, machine: str = "") -> Figure:
    """Measured and predicted torques of each joint on one axis, and below what is left of them.

    machine: its name, for the title.
    """
    each = zip(run.joints, run.units, run.measured.T, run.residual.T, strict=True)
    return compared_figure(
        [
            Compared(name, unit, run.t, tau, run.t, tau - off, off)
            for name, unit, tau, off in each
            if np.isfinite(off).any()
        ],
        title=f"{machine}: measured and predicted torques, {run.name}" if machine else "",
    )


def torque_spectra(runs: Sequence[TorqueRun]) -> Figure | None:
    """The spectra of what is left at each joint in the longest run, of torques and of forces.

    None where nothing was predicted.
    """
    run = max(runs, key=lambda each: len(each.t))
    found = []
    for unit in dict.fromkeys(run.units):
        at = [k for k, own in enumerate(run.units) if own == unit]
        joints = [run.joints[k] for k in at]
        found.append(Spectra.of_rows(run.name, unit, joints, run.t, run.residual[:, at]))
    spectra = [each for each in found if each is not None]
    return spectrum_figure(spectra) if spectra else None


def weight_figure(weights: NDArray, errors: NDArray, best: float) -> Figure:
    """The part of the torques' variance that held-out blocks keep, by the weight, as a figure."""
    canvas, axes = figure(1, 1, (7.0, 3.2))
    axes[0, 0].loglog(weights, errors, "o-", linewidth=1.0, label="held-out blocks")
    axes[0, 0].axvline(best, color=colours(2)[1], linewidth=1.0, label="taken")
    label(axes[0, 0], "weight of the nearness", "S / (S + V), mean over joints")
    entitle(canvas, "Nearness to the file: errors of rows that were held out")
    return canvas
