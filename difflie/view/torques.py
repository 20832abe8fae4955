"""How the torques of an arm are predicted: figures, and sections of the report of its fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from .compared import Compared, Spectra, compared_figure, spectrum_figure
from .figures import colours, entitle, figure, label
from .flat_sections import Section
from .report import sentences


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


NOTES = "What was done, and what is not known"
LOOKED_AT = {
    "how well each is predicted, beside the file's own numbers": "Torques of each joint",
    "the values, and how far they can be trusted": "Numbers",
    "choices, and what the motion does not tell": NOTES,
}


def joint_sections(results: Mapping[str, Any], runs: Sequence[TorqueRun]) -> Iterator[Section]:
    """How well each joint is predicted, what was done, and pictures of the recordings."""
    yield Section(
        "Torques of each joint",
        (
            "joint",
            "run",
            "use",
            "R2",
            "RMSE",
            "unit",
            "relative error",
            "the floor's R2",
            "the file's R2",
        ),
        [
            (
                *(row[key] for key in ("joint", "run", "use")),
                *(_rounded(row[key]) for key in ("r2", "rmse")),
                row["unit"],
                *(_rounded(row[key]) for key in ("relative", "floor_r2", "file_r2")),
            )
            for row in results["joints"]
        ],
        (
            "Held out: blocks of the recording, each predicted by a fit to the others. The floor "
            "is least squares of base parameters without bounds and without the file's numbers; on "
            "rows that it did not see it may be the worse.",
        ),
    )
    yield Section(NOTES, text=sentences(results["notes"]))
    for k, run in enumerate(runs):
        picture = torque_figure(run, results["system"])
        yield Section(f"Run {k}: {run.name}", picture=picture, file=f"run_{k}.png")
    spectra = [*_spectra(runs)]
    if spectra:
        yield Section(
            "Spectra of what is left",
            picture=spectrum_figure(spectra),
            file="spectra.png",
            text=("Peaks are motions, ripples of gears or resonances that the model lacks.",),
        )


def base_sections(results: Mapping[str, Any]) -> Iterator[Section]:
    """The base parameters, and how the weight of the nearness was chosen."""
    yield Section(
        "Base parameters: what the motion tells",
        ("combination", "value", "standard error", "relative error", "essential"),
        [
            (p["name"], p["value"], p["std_error"], _rounded(p["relative_error"]), _word(p))
            for p in results["base_parameters"]
        ],
        (f"The condition number of their columns is {results['condition']:.3g}.",),
    )
    near = results["nearness"]
    if len(near["weights"]) > 1:
        canvas = weight_figure(near["weights"], near["errors"], near["weight"])
        yield Section("Nearness to the file", picture=canvas, file="nearness.png")


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def _word(p: Mapping[str, Any]) -> str:
    return "yes" if p["essential"] else "no"


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


def _spectra(runs: Sequence[TorqueRun]) -> Iterator[Spectra]:
    """Those of what is left at each joint in the longest run, of torques and of forces."""
    run = max(runs, key=lambda each: len(each.t))
    for unit in dict.fromkeys(run.units):
        at = [k for k, own in enumerate(run.units) if own == unit]
        joints = [run.joints[k] for k in at]
        spectra = Spectra.of_rows(run.name, unit, joints, run.t, run.residual[:, at])
        if spectra is not None:
            yield spectra


def weight_figure(weights: Sequence[float], errors: Sequence[float], best: float) -> Figure:
    """The part of the torques' variance that held-out blocks keep, by the weight, as a figure."""
    canvas, axes = figure(1, 1, (7.0, 3.2))
    axes[0, 0].loglog(weights, errors, "o-", linewidth=1.0, label="held-out blocks")
    axes[0, 0].axvline(best, color=colours(2)[1], linewidth=1.0, label="taken")
    label(axes[0, 0], "weight of the nearness", "S / (S + V), mean over joints")
    entitle(canvas, "Nearness to the file: errors of rows that were held out")
    return canvas
