"""The report of an identification: of fitted numbers, of given ones, and of all those of an arm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..io.results import Results, machine, provenance
from ..view.compared import (
    TorqueRun,
    run_figure,
    run_spectra,
    torque_figure,
    torque_spectra,
    weight_figure,
)
from ..view.estimates import Estimated, correlation_figure, ellipse_figure
from ..view.report import Cell, Figure, Note, Report, Section, Table, Worked, notes, sentences
from .arm_equations import BaseParameter, HeldOut, Solution
from .assessment import ArmAssessment, JointScore, predictions
from .readings import SensorErrors
from .validation import JointErrors, Validation

# Columns of the errors of each joint, and the fields of `JointErrors` in them.
_ERRORS = (
    ("torque RMSE", "torque_rmse"),
    ("at the start", "start_torque_rmse"),
    ("R2", "torque_r2"),
    ("its autocorrelation", "torque_autocorrelation"),
    ("position RMSE", "position_rmse"),
    ("at the start", "start_position_rmse"),
    ("R2", "position_r2"),
)
# So many numbers of an arm are shown in a terminal.
_MOST_NUMBERS = 16
_SEEN = "measured and predicted, and what is left between them"
_SPECTRA = "Peaks are motions, ripples of gears or resonances that the model lacks"


@dataclass(frozen=True)
class Validations:
    """The predictions of recordings that were fitted, held out, and left out of fits to others."""

    fitted: Sequence[Validation] = ()
    held_out: Sequence[Validation] = ()
    left_out: Sequence[Validation] = ()

    @property
    def uses(self) -> tuple[tuple[str, Sequence[Validation]], ...]:
        """By the word for their use."""
        uses = ("fitted", self.fitted), ("held out", self.held_out), ("left out", self.left_out)
        return tuple((use, each) for use, each in uses if each)

    @property
    def names(self) -> list[str]:
        """Of the recordings with pictures."""
        held_out = [f"{v.recording.name} (held out)" for v in self.held_out]
        return [*(v.recording.name for v in self.fitted), *held_out]


@dataclass(frozen=True, kw_only=True)
class FitSummary(Results):
    """How a fit ended, as of `Fit`, and what the data does not tell.

    condition: of the information. notes: sentences. unidentifiable: directions in which parameters
    may change together, with the share of each; undetermined: the parameters with infinite standard
    errors. seconds: of the fit, where it was measured.
    """

    cost: float
    variance: float
    steps: int
    message: str
    condition: float
    notes: list[str]
    unidentifiable: list[dict[str, float]]
    undetermined: list[str]
    seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class IdentificationResults(Results):
    """What results of declared fits and of arms share; see docs/results.md.

    parameters: by name. states (m,): the unknowns of each problem. fit, states, converged and
    well_predicted are None where nothing was fitted, and fit while it goes on.
    """

    name: str
    system: str
    parameters: dict[str, Estimated]
    fit: FitSummary | None = None
    states: list[NDArray] | None = None
    converged: bool | None = None
    verdict: list[str] = field(default_factory=list)
    well_predicted: bool | None = None
    machine: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class FitResults(IdentificationResults):
    """The results of declared parameters, as `difflie identify --json` writes them.

    training, validation and left_out: errors of runs that were fitted, held out, and predicted by
    fits to the others, None without any of these. doubts: numbers that a system hardly has; advice:
    what to measure next; None where nothing was fitted.
    """

    doubts: list[str] | None = None
    advice: list[str] | None = None
    training: list[JointErrors] = field(default_factory=list)
    validation: list[JointErrors] = field(default_factory=list)
    left_out: list[JointErrors] | None = None
    sensors: list[SensorErrors] = field(default_factory=list)

    def judged(self, by: Validations) -> FitResults:
        """These results with the errors of recordings."""
        uses = ("training", by.fitted), ("validation", by.held_out), ("left_out", by.left_out)
        rows = {use: [row for v in each for row in v.rows] for use, each in uses if each}
        sensors = [(row, use) for use, each in uses[:2] for v in each for row in v.sensor_rows]
        return replace(self, **rows, sensors=[replace(row, use=use) for row, use in sensors])


@dataclass(frozen=True, kw_only=True)
class NominalWeight(Results):
    """The weight of the distance from the nominal numbers, and those tried, as of `HeldOut`.

    distances: of the bodies, by name.
    """

    weight: float
    weights: NDArray
    errors: NDArray
    distances: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class ArmResults(IdentificationResults):
    """The results of an arm, as `difflie identify --json` writes them.

    Velocities in rad/s or m/s by joint, those of Stribeck friction NaN where there is none.
    seconds: of all, where it was measured.
    """

    notes: list[str]
    joints: list[JointScore]
    base_parameters: list[BaseParameter]
    condition: float
    nearness: NominalWeight
    friction_velocity: dict[str, float]
    stribeck_velocity: dict[str, float]
    seconds: float | None = None


def given_verdict(judged: Validations) -> list[str]:
    """Sentences on how well given numbers predict recordings."""
    return [
        "the given numbers are judged, and nothing was fitted",
        *predictions((), [*judged.fitted, *judged.held_out]),
    ]


def fit_report(
    results: FitResults,
    judged: Validations,
    about: Mapping[str, object],
    whole: bool = True,
    correlations: NDArray | None = None,
) -> Report:
    """How a fit ended, its numbers, and how they predict recordings; or how given numbers do.

    about: more of the origin, by name. whole: whether with the sections that terminals leave out.
    correlations (p, p): of the numbers, None where these were given and nothing was fitted.
    """
    name, numbers, fit = results.system, results.parameters, results.fit
    doubts = [*(fit.notes if fit else ()), *(results.doubts or ())]
    if fit is None:
        said, worked = "given numbers of {} were judged by recordings", Worked.UNJUDGED
    else:
        said = "numbers of {} were fitted to recordings"
        worked = Worked.judged(bool(results.converged), bool(doubts) or not results.well_predicted)
        if held_out := len(judged.held_out):
            runs_are = "run that was" if held_out == 1 else "runs that were"
            said += f", and judged by {held_out} {runs_are} held out"
    sections = [
        *_said("What is not known, or doubtful", doubts, "what the fit cannot tell"),
        *_said("What to measure next", results.advice or (), "motions that would tell more"),
        _numbers(numbers, "from the prior"),
        *_predicted(judged, whole),
        *(_correlations(numbers, correlations) if whole and correlations is not None else ()),
    ]
    return Report(
        f"Parameters of {name}",
        f"{len(numbers)} {said.format(name)}.",
        worked,
        sentences(results.verdict),
        sections,
        provenance(results.machine, **about, runs=", ".join(judged.names)),
    )


def arm_report(
    numbers: Mapping[str, Estimated],
    converged: bool,
    assessment: ArmAssessment,
    judged: Validations,
    about: Mapping[str, object],
    whole: bool = True,
) -> Report:
    """How the torques of an arm are predicted, and all its numbers.

    judged: more recordings, of whose motions there are predictions, too; otherwise as `fit_report`.
    """
    name, runs = assessment.model.system.name, assessment.runs
    sections = [
        _joints(assessment.scores) if whole else _judged_joints(assessment),
        Section(
            "What was done, and what is not known",
            notes(*sentences(assessment.notes)),
            "choices, and what the motion does not tell",
        ),
        *(_torques(runs, name) if whole else ()),
        _numbers(numbers, "from the file") if whole else _best_known(numbers),
        *(_base(assessment.base) if whole else ()),
        *(_nearness(assessment.held_out) if whole else ()),
        *_predicted(judged, whole, len(runs)),
    ]
    return Report(
        f"Parameters of {name}",
        f"All numbers of the arm {name} were identified, near those of its file.",
        Worked.judged(converged, not assessment.well_predicted),
        sentences(assessment.verdict),
        sections,
        provenance(
            machine(), **about, runs=", ".join([*judged.names, *(run.name for run in runs)])
        ),
    )


def best_known(prior_shares: Sequence[float | None]) -> list[int]:
    """The order of numbers by the part of the prior in their variance (p,), the least first."""
    shares = [np.nan if share is None else share for share in prior_shares]
    # Less than a thousandth is nothing, so that numbers of one kind stay together.
    return np.argsort(np.round(shares, 3), kind="stable").tolist()


def _said(title: str, texts: Sequence[str], look: str) -> Iterator[Section]:
    if texts:
        yield Section(title, notes(*sentences(texts)), look)


def _numbers(numbers: Mapping[str, Estimated], held: str) -> Section:
    """held: said in place of the interval of what only a prior holds."""
    head = "number", "unit", "start", "value", "standard error", "95 % interval", "bounds"
    rows = [
        (
            f"{name} (of the log)" if p.of_log else name,
            *(p.unit, p.start, p.value),
            *(_error(p), _interval(p, held), _bounds(p)),
            None if p.prior_share is None else round(p.prior_share, 3),
        )
        for name, p in numbers.items()
    ]
    note = Note(
        "Standard errors and intervals allow for residuals that are alike over many rows. At a "
        "bound the interval is one-sided. The prior's share, that of the nominal numbers for an "
        "arm, is 1 where only it holds a value. Numbers of the log are those that the system "
        "cannot have."
    )
    look = "the values, and how far they can be trusted"
    return Section("Numbers", [Table((*head, "prior's share"), rows, names=2), note], look)


def _best_known(numbers: Mapping[str, Estimated]) -> Section:
    """The numbers that the data tells best, as a terminal has room for."""
    order = best_known([p.prior_share for p in numbers.values()])[:_MOST_NUMBERS]
    each = list(numbers.items())
    rows = [(name, p.unit, p.start, p.value, _error(p)) for name, p in (each[k] for k in order)]
    head = "number", "unit", "start", "value", "std. error"
    parts: list[Table | Note] = [Table(head, rows, names=2)]
    title = "Numbers"
    if len(numbers) > len(rows):
        title = "Numbers that the motion tells best"
        parts.append(
            Note(
                f"All {len(numbers)} numbers, with their intervals and bounds, are in report.html "
                "and identification.json (--out DIR), or in a file of their own (--json FILE)."
            )
        )
    return Section(title, parts)


def _error(p: Estimated) -> Cell:
    return "not identifiable" if p.std_error == np.inf else p.std_error


def _interval(p: Estimated, held: str) -> Cell:
    if p.interval is None:
        return None
    if p.prior_share is not None and round(p.prior_share, 3) == 1:
        return held
    lower, upper = p.interval
    return f"{lower:.4g} to {upper:.4g}{', at its bound' if p.at_bound else ''}"


def _bounds(p: Estimated) -> Cell:
    if p.bounds is None:
        return None
    least, most = p.bounds
    said = [f"{least + 0.0:.4g} or more"] if np.isfinite(least) else []  # 0, not -0
    said += [f"{most + 0.0:.4g} or less"] if np.isfinite(most) else []
    return ", ".join(said)


def _predicted(judged: Validations, whole: bool, first: int = 0) -> Iterator[Section]:
    """The errors and pictures of recordings, which are numbered from the first one on."""
    yield from _errors(judged)
    yield from _sensors(judged)
    if not whole:
        return
    marked = [(v, "fitted") for v in judged.fitted]
    marked += [(v, "held out, not fitted") for v in judged.held_out]
    seen = len(judged.fitted) if judged.held_out else 0
    for k, (v, mark) in enumerate(marked):
        title = f"Run {first + k}: {v.recording.name} ({mark})"
        picture = Figure(partial(run_figure, v.drawn, title), f"run_{first + k}.png")
        yield Section(title, [picture], _SEEN if first == 0 and k == seen else "")
    yield from _spectra(
        judged.held_out or judged.fitted, "spectra_of_runs.png" if first else "spectra.png"
    )


def _errors(judged: Validations) -> Iterator[Section]:
    """The errors of each joint in each run, numbered like the pictures, without empty columns."""
    rows = [
        (row.run, use, row.joint, *(getattr(row, key) for _, key in _ERRORS))
        for use, several in judged.uses
        for v in several
        for row in v.rows
    ]
    head = "run", "use", "joint", *(name for name, _ in _ERRORS)
    kept = [k for k in range(len(head)) if any(row[k] is not None for row in rows)]
    if len(kept) <= 3:
        return
    note = Note(
        "Runs left out are each judged by the fit to the others. Autocorrelations, the largest "
        "of twenty, are in bounds of white noise: far above 1 the model lacks "
        "something, or the data is smoothed, which standard errors allow for."
    )
    table = Table([head[k] for k in kept], [[row[k] for k in kept] for row in rows], names=3)
    look = "how far predictions are off, joint by joint"
    yield Section("Errors of each run", [table, note], look)


def _sensors(judged: Validations) -> Iterator[Section]:
    head = "run", "use", "sensor", "unit", "RMSE, measured motion", "RMSE, simulated motion"
    rows = [
        (row.run, use, row.sensor, row.unit, row.rmse, row.simulated_rmse)
        for use, several in judged.uses
        if use != "left out"
        for v in several
        for row in v.sensor_rows
    ]
    if rows:
        yield Section("Sensors", [Table(head, rows, names=4)])


def _spectra(validations: Sequence[Validation], file: str) -> Iterator[Section]:
    """Those of the longest run."""
    if not validations:
        return
    longest = max(validations, key=lambda v: len(v.recording.t))
    picture = run_spectra(longest.drawn, longest.recording.name)
    if picture is not None:
        yield Section(
            "Spectra of what is left",
            [
                Note(f"{_SPECTRA}; what is left of motions is that within windows."),
                Figure(lambda: picture, file),
            ],
            "peaks are what the model lacks",
            brief=False,
        )


def _correlations(numbers: Mapping[str, Estimated], correlations: NDArray) -> Iterator[Section]:
    if len(correlations) < 2:
        return
    picture = Figure(partial(correlation_figure, list(numbers), correlations), "correlations.png")
    yield Section("Correlations", [picture], "which numbers are strongly correlated")
    ellipses = ellipse_figure(numbers, correlations)
    if ellipses is not None:
        title = "Confidence of the pairs most correlated, by standard errors"
        yield Section(title, [Figure(lambda: ellipses, "ellipses.png")])


def _joints(scores: Sequence[JointScore]) -> Section:
    head = "joint", "run", "use", "R2", "RMSE", "unit", "relative error", "baseline R2"
    rows = [
        (
            *(s.joint, s.run, s.use, _rounded(s.r2), _rounded(s.rmse), s.unit),
            *map(_rounded, (s.relative, s.baseline_r2, s.nominal_r2)),
        )
        for s in scores
    ]
    note = Note(
        "Held out: blocks of the recording, each predicted by a fit to the others. The baseline "
        "is least squares of base parameters without bounds and without the nominal numbers; on "
        "rows that it did not see it may be the worse."
    )
    look = "how well each is predicted, beside the nominal numbers"
    table = Table((*head, "nominal R2"), rows, names=3)
    return Section("Torques of each joint", [table, note], look)


def _judged_joints(assessment: ArmAssessment) -> Section:
    """How well rows are predicted that were not fitted, in the width of a terminal."""
    scores = assessment.judged_scores
    several = len({s.run for s in scores}) > 1
    head = "joint", *(("run",) if several else ()), "R2", "RMSE", "unit", "baseline", "nominal"
    rows = [
        (
            *(s.joint, *((s.run,) if several else ()), _rounded(s.r2), _rounded(s.rmse), s.unit),
            *map(_rounded, (s.baseline_r2, s.nominal_r2)),
        )
        for s in scores
    ]
    use = ", ".join(dict.fromkeys(s.use for s in scores))
    note = Note(
        "Beside R2 of the numbers found there are those of the baseline, least squares without "
        "bounds, and of the nominal numbers, which are the file's."
    )
    return Section(f"Torques of each joint ({use})", [Table(head, rows, 1 + several), note])


def _torques(runs: Sequence[TorqueRun], name: str) -> Iterator[Section]:
    """Pictures of an arm's recordings."""
    for k, run in enumerate(runs):
        picture = Figure(partial(torque_figure, run, name), f"run_{k}.png")
        yield Section(f"Run {k}: {run.name}", [picture], _SEEN if k == 0 else "")
    spectra = torque_spectra(runs)
    if spectra is not None:
        parts = Note(f"{_SPECTRA}."), Figure(lambda: spectra, "spectra.png")
        yield Section("Spectra of what is left", parts)


def _base(base: Solution) -> Iterator[Section]:
    head = "combination", "value", "standard error", "relative error", "essential"
    rows = [
        (p.name, p.value, p.std_error, _rounded(p.relative_error), "yes" if p.essential else "no")
        for p in base.table
    ]
    note = Note(f"The condition number of their columns is {base.condition:.3g}.")
    yield Section("Base parameters: what the motion identifies", [Table(head, rows), note])


def _nearness(held_out: HeldOut) -> Iterator[Section]:
    """How the weight of the nearness was chosen, if it was."""
    if len(held_out.weights) > 1:
        draw = partial(weight_figure, held_out.weights, held_out.errors, held_out.best)
        yield Section("Nearness to the file", [Figure(draw, "nearness.png")])


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
