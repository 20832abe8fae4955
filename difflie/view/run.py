"""A recording beside a machine's predictions: torques, motions, and spectra of what is left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from .compared import Compared, Spectra, compared_figure, spectrum_figure

_FORCES = {"rad": "N m", "m": "N"}


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
                unit=_FORCES[unit],
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
        found.append(Spectra.of_rows(title, _FORCES[unit], names, run.t, left))
        # At its first row a window has no error.
        moved = run.departure[:, 1:, at]
        found.append(Spectra.of_windows(f"motions, {name}", unit, names, step, moved))
    spectra = [each for each in found if each is not None]
    return spectrum_figure(spectra) if spectra else None
