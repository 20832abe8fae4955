"""How the torques of an arm are predicted, as figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from .compared import Compared, Spectra, compared_figure, spectrum_figure
from .figures import colours, entitle, figure, label


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
