"""The page of a fit of declared numbers: a verdict first, then tables and pictures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .estimates import correlation_figure, ellipse_figure
from .report import Cell, Section, sentences
from .report import write_report as write_page
from .run import Run, run_figure, run_spectra

_USES = {"training": "fitted", "validation": "held out", "left_out": "left out"}
_ERRORS = {
    "torque_rmse": "torque RMSE",
    "start_torque_rmse": "at the start",
    "torque_r2": "R2",
    "torque_autocorrelation": "its autocorrelation",
    "position_rmse": "position RMSE",
    "start_position_rmse": "at the start",
    "position_r2": "R2",
}


def write_report(
    folder: Path,
    results: Mapping[str, Any],
    runs: Sequence[tuple[str, bool, Run]],
    correlations: NDArray | None,
) -> Path:
    """Writes `report.html` with its pictures, and these also as PNG files; returns its path.

    results: as `difflie identify --json` writes them, of which system, verdict, doubts, advice, fit
    (None where nothing was fitted), parameters, training, validation, left_out, sensors and
    machine are shown. runs: the name of each, whether it was held out, and its data. correlations
    (p, p): of the parameters, None where they were not fitted.
    """
    names = [name + (" (held out)" if held_out else "") for name, held_out, _ in runs]
    made = {"configuration": results.get("name"), **results["machine"], "runs": ", ".join(names)}
    provenance = {key: value for key, value in made.items() if value}
    sections = _sections(results, runs, correlations)
    return write_page(folder, results["system"], sections, provenance)


def _sections(
    results: Mapping[str, Any],
    runs: Sequence[tuple[str, bool, Run]],
    correlations: NDArray | None,
) -> Iterator[Section]:
    parameters, fit = results["parameters"], results["fit"]
    yield Section(text=sentences(results["verdict"]))
    notes = [*(fit["notes"] if fit else ()), *results.get("doubts", ())]
    if notes:
        yield Section("What is not known, or doubtful", text=sentences(notes))
    if results.get("advice"):
        yield Section("What to measure next", text=sentences(results["advice"]))
    yield Section(
        "Numbers",
        (
            *("number", "unit", "start", "value", "standard error", "95 % interval"),
            *("bounds", "prior's share"),
        ),
        [
            (name, p["unit"], p["start"], p["value"], _error(p["std_error"]), *_told(p))
            for name, p in parameters.items()
        ],
        (
            "Standard errors and intervals allow for residuals that are alike over many rows. At a "
            "bound the interval is one-sided. The prior's share is 1 where only it holds a value.",
        ),
    )
    yield from _errors(results)
    if results.get("sensors"):
        yield Section(
            "Sensors",
            ("run", "use", "sensor", "unit", "RMSE, measured motion", "RMSE, simulated motion"),
            [
                [row[key] for key in ("run", "use", "sensor", "unit", "rmse", "simulated_rmse")]
                for row in results["sensors"]
            ],
        )
    for k, (name, held_out, run) in enumerate(runs):
        mark = "held out, not fitted" if held_out else "fitted"
        title = f"Run {k}: {name} ({mark})"
        yield Section(title, picture=run_figure(run), file=f"run_{k}.png")
    yield from _spectra(runs)
    if correlations is None or len(correlations) < 2:
        return
    picture = correlation_figure(list(parameters), correlations)
    yield Section("Correlations", picture=picture, file="correlations.png")
    ellipses = ellipse_figure(parameters, correlations)
    if ellipses is not None:
        title = "Confidence of the pairs most correlated, by standard errors"
        yield Section(title, picture=ellipses, file="ellipses.png")


def _errors(results: Mapping[str, Any]) -> Iterator[Section]:
    """The errors of each joint in each run, numbered like the pictures, without empty columns."""
    rows = [{"use": _USES[use], **row} for use in _USES for row in results.get(use, ())]
    keys = [key for key in _ERRORS if any(row.get(key) is not None for row in rows)]
    if not keys:
        return
    yield Section(
        "Errors of each run",
        ("run", "use", "joint", *(_ERRORS[key] for key in keys)),
        [[row.get(key) for key in ("run", "use", "joint", *keys)] for row in rows],
        (
            "Runs left out are each judged by the fit to the others. Autocorrelations, the largest "
            "of twenty, are in bounds of white noise: far above 1 the model lacks "
            "something, or the data is smoothed, which standard errors allow for.",
        ),
    )


def _spectra(runs: Sequence[tuple[str, bool, Run]]) -> Iterator[Section]:
    """Those of the longest run, of those held out if there are any."""
    held_out = [each for each in runs if each[1]] or runs
    if not held_out:
        return
    name, _, run = max(held_out, key=lambda each: len(each[2].t))
    picture = run_spectra(run, name)
    if picture is not None:
        yield Section(
            "Spectra of what is left",
            picture=picture,
            file="spectra.png",
            text=(
                "Peaks are motions, ripples of gears or resonances that the model lacks; what is "
                "left of motions is that within windows.",
            ),
        )


def _told(p: Mapping[str, Any]) -> tuple[Cell, Cell, Cell]:
    """The interval, bounds and prior's share of a number; empty where it was not fitted."""
    if p["interval"] is None:
        return None, None, None
    lower, upper = p["interval"]
    at = ", at its bound" if p["at_bound"] else ""
    least, most = p["bounds"]
    bounds = [f"{least + 0.0:.4g} or more"] if np.isfinite(least) else []
    bounds += [f"{most + 0.0:.4g} or less"] if np.isfinite(most) else []
    return f"{lower:.4g} to {upper:.4g}{at}", ", ".join(bounds), round(p["prior_share"], 3)


def _error(value: float | None) -> Cell:
    return "not identifiable" if value is not None and np.isinf(value) else value
