"""The page of a fit of declared numbers: a verdict first, then tables and pictures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..io.results import provenance
from .estimates import correlation_figure, ellipse_figure
from .flat_sections import Overview, Section
from .flat_sections import write_report as write_page
from .report import Cell, Worked, sentences
from .run import Run, run_figure, run_spectra
from .torques import LOOKED_AT, TorqueRun, base_sections, joint_sections

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
    about: Mapping[str, object] = MappingProxyType({}),
    torques: Sequence[TorqueRun] = (),
) -> Path:
    """Writes `report.html` with its pictures, and these also as PNG files; returns its path.

    results: as `difflie identify --json` writes them, of which system, verdict, well_predicted,
    doubts, advice, fit (None where nothing was fitted), converged, parameters, training,
    validation, left_out, sensors and machine are shown. runs: the name of each, whether it was held
    out, and its data. correlations (p, p): of the parameters, None where they were not fitted.
    about: the configuration. torques: of an arm, whose results have joints, base_parameters,
    condition and nearness too, the measured torques of its recordings and what is left of them.
    """
    names = [name + (" (held out)" if held_out else "") for name, held_out, _ in runs]
    names += [run.name for run in torques]
    sections = list(_sections(results, runs, correlations, torques))
    overview = Overview(
        _done(results, runs),
        _worked(results),
        sentences(results["verdict"]),
        list(_pointers_of_an_arm(sections) if torques else _pointers(sections)),
    )
    origin = provenance(results["machine"], **about, runs=", ".join(names))
    return write_page(folder, f"Parameters of {results['system']}", overview, sections, origin)


def _done(results: Mapping[str, Any], runs: Sequence[tuple[str, bool, Run]]) -> str:
    if "joints" in results:
        return (
            f"All numbers of the arm {results['system']} were identified, near those of its file."
        )
    count, held_out = len(results["parameters"]), sum(each[1] for each in runs)
    if results["fit"] is None:
        return f"{count} given numbers of {results['system']} were judged by recordings."
    runs_are = "run that was" if held_out == 1 else "runs that were"
    judged = f", and judged by {held_out} {runs_are} held out" if held_out else ""
    return f"{count} numbers of {results['system']} were fitted to recordings{judged}."


def _worked(results: Mapping[str, Any]) -> Worked:
    fit = results["fit"]
    if fit is None:
        return Worked.UNJUDGED
    if not results["converged"]:
        return Worked.NO
    if "joints" in results:
        return Worked.YES if results["well_predicted"] else Worked.PARTLY
    doubtful = fit["notes"] or results["doubts"] or not results["well_predicted"]
    return Worked.PARTLY if doubtful else Worked.YES


_LOOKED_AT = {
    "What is not known, or doubtful": "what the fit cannot tell",
    "What to measure next": "motions that would tell more",
    "Numbers": "the values, and how far they can be trusted",
    "Errors of each run": "how far predictions are off, joint by joint",
    "Spectra of what is left": "peaks are what the model lacks",
    "Correlations": "which numbers the data does not tell apart",
}


def _pointers(sections: Sequence[Section]) -> Iterator[tuple[str, str]]:
    titles = [section.title for section in sections]
    yield from ((text, title) for title, text in _LOOKED_AT.items() if title in titles)
    runs = [title for title in titles if title.startswith("Run ")]
    held_out = [title for title in runs if title.endswith("(held out, not fitted)")]
    for title in (held_out or runs)[:1]:
        yield "measured and predicted, and what is left between them", title


def _pointers_of_an_arm(sections: Sequence[Section]) -> Iterator[tuple[str, str]]:
    titles = [section.title for section in sections]
    yield from LOOKED_AT.items()
    run = next(title for title in titles if title.startswith("Run "))
    yield "measured and predicted, and what is left between them", run


def _sections(
    results: Mapping[str, Any],
    runs: Sequence[tuple[str, bool, Run]],
    correlations: NDArray | None,
    torques: Sequence[TorqueRun],
) -> Iterator[Section]:
    parameters, fit = results["parameters"], results["fit"]
    notes = [*(fit["notes"] if fit else ()), *results.get("doubts", ())]
    if torques:
        yield from joint_sections(results, torques)
    elif notes:
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
            (_named(name, p), p["unit"], p["start"], p["value"], _error(p["std_error"]), *_told(p))
            for name, p in parameters.items()
        ],
        (
            "Standard errors and intervals allow for residuals that are alike over many rows. At a "
            "bound the interval is one-sided. The prior's share, the file's for an arm, is 1 where "
            "only it holds a value. Numbers of the log are those that the system cannot have.",
        ),
    )
    if torques:
        yield from base_sections(results)
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
        yield Section(title, picture=run_figure(run, title), file=f"run_{k}.png")
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


def _named(name: str, p: Mapping[str, Any]) -> str:
    return f"{name} (of the log)" if p.get("of_log") else name


def _told(p: Mapping[str, Any]) -> tuple[Cell, Cell, Cell]:
    """The interval, bounds and prior's share of a number; empty where there are none."""
    if p["bounds"] is None:
        return None, None, None
    interval = None
    if p["interval"] is not None:
        lower, upper = p["interval"]
        interval = f"{lower:.4g} to {upper:.4g}{', at its bound' if p['at_bound'] else ''}"
    least, most = p["bounds"]
    bounds = [f"{least + 0.0:.4g} or more"] if np.isfinite(least) else []
    bounds += [f"{most + 0.0:.4g} or less"] if np.isfinite(most) else []
    return interval, ", ".join(bounds), round(p["prior_share"], 3)


def _error(value: float | None) -> Cell:
    return "not identifiable" if value is not None and np.isinf(value) else value
