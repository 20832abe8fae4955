"""What a fit is worth: how well each joint is predicted, and what is told, in sentences.

`ArmAssessment` is that of an arm, whose rows are scored beside least squares without bounds and the
file's own numbers; `Assessment` that of declared numbers, beside their start.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ..io.results import Results
from ..system.joints import FORCE_UNITS
from ..system.shown import some, subsample
from ..system.validation import format_value
from ..view.compared import TorqueRun, torque_figure
from .arm_equations import Equations, HeldOut, Solution
from .statistics import Uncertainty, listed, r_squared, rms
from .torque_rows import Friction, TorqueModel
from .validation import Validation

GOOD, FAIR = 0.95, 0.8


def grades(what: str, scores: Sequence[tuple[str, float]], subject: str = "") -> Iterator[str]:
    """Sentences on the R2 of joints that are predicted well or fairly.

    what: is predicted, for one sentence where all are, such as "all joints are predicted well: R2
    of held-out samples". subject: begins the other sentences. A joint may have several scores.
    """
    good = [joint for joint, r2 in scores if r2 >= GOOD]
    fair = [f"{joint} (R2 {r2:.3f})" for joint, r2 in scores if FAIR <= r2 < GOOD]
    if len(good) == len(scores) > 0:
        yield f"{what} is {min(r2 for _, r2 in scores):.3f} or more"
    elif good:
        yield f"{subject}predicted well (R2 of {GOOD} or more): {', '.join(dict.fromkeys(good))}"
    if fair:
        yield f"{subject}predicted fairly: {', '.join(fair)}"


def poor(scores: Sequence[tuple[str, float]]) -> list[int]:
    """The indices of the scores of joints that are predicted poorly."""
    return [k for k, (_, r2) in enumerate(scores) if not r2 >= FAIR]


# Where the baseline is so much better, it is the bodies' consistency or nearness that costs.
_COSTLY = 0.02


@dataclasses.dataclass(frozen=True)
class JointScore(Results):
    """Of one joint in one use of rows: "fitted", "held out" or "validation".

    unit: of its torque or force and of rmse, "N m" or "N". r2, rmse and relative error
    |residual| / |torque| of the identified numbers; baseline_r2 of least squares without bounds and
    nominal_r2 of the file's own numbers.
    """

    run: str
    use: str
    joint: str
    unit: str
    r2: float
    rmse: float
    relative: float
    baseline_r2: float
    nominal_r2: float


def scores(
    run: str, use: str, model: TorqueModel, torque: NDArray, residuals: Sequence[NDArray]
) -> list[JointScore]:
    """The scores of the joints of a model for torques (r, nv).

    residuals (r, nv): what the numbers found, those of the baseline and the nominal ones leave of
    them, NaN where a joint does not count.
    """
    off = residuals[0]
    r2, *others = (r_squared(torque, r) for r in residuals)
    size = np.maximum(rms(np.where(np.isnan(off), np.nan, torque)), np.finfo(float).tiny)
    columns = np.column_stack((r2, rms(off), rms(off) / size, *others)).tolist()
    each = zip(model.joints, model.forces, columns, strict=True)
    found = [JointScore(run, use, joint, unit, *numbers) for joint, unit, numbers in each]
    return [score for score in found if not np.isnan(score.rmse)]


Prediction = tuple[str, Equations, NDArray]
"""Of a recording: its name, equations and residuals (r, nv)."""


@dataclasses.dataclass(frozen=True)
class ArmAssessment:
    """How an arm was identified, and how well its torques are predicted.

    scores: of each joint and use. predictions: of each recording. base: the base parameters.
    held_out: predictions of blocks, by which the weight of the distance from the file was chosen;
    distances: of the bodies, by name. friction: its velocities. notes: sentences on what was done
    and what is not known. too_short: a sentence where held-out samples are like those fitted, so
    that no joint counts as predicted well; else None. units: sentences on positions that may be in
    other units, with which the verdict begins where a joint is predicted poorly.
    """

    model: TorqueModel
    friction: Friction
    base: Solution
    held_out: HeldOut
    distances: dict[str, float]
    scores: tuple[JointScore, ...]
    predictions: tuple[Prediction, ...]
    notes: tuple[str, ...]
    too_short: str | None = None
    units: tuple[str, ...] = ()

    @property
    def verdict(self) -> tuple[str, ...]:
        """Sentences on how well rows are predicted that were not fitted."""
        rows = self.judged_scores
        graded = [(s.joint, s.r2) for s in rows]
        doubts = self.units if poor(graded) else ()
        if self.too_short is not None:
            least = min((r2 for _, r2 in graded), default=np.nan)
            return (
                *doubts,
                self.too_short,
                f"R2 of held-out samples is {least:.3f} or more, which says nothing of other "
                "motions",
            )
        said = [*doubts, *grades("all joints are predicted well: R2 of held-out samples", graded)]
        for s in (rows[k] for k in poor(graded)):
            why = (
                f"free numbers reach {s.baseline_r2:.3f}: the file's geometry or masses may be "
                "wrong"
                if s.baseline_r2 - s.r2 > _COSTLY
                else "are its units those above?"
                if doubts
                else "no better without the nominal numbers: its motion excites too little, or "
                "its friction or sensor is of another kind"
            )
            said.append(f"predicted poorly: {s.joint} (R2 {s.r2:.3f}); {why}")
        no_better = [s.joint for s in rows if not s.r2 > s.nominal_r2]
        if no_better:
            said.append(f"the nominal numbers are no worse for {', '.join(no_better)}")
        return tuple(said)

    @property
    def r2_of_joints(self) -> str:
        """R2 of the joints in rows that were not fitted, the least of all runs, in one line."""
        rows, least = self.judged_scores, {}
        for s in rows:
            least[s.joint] = min(s.r2, least.get(s.joint, np.inf))
        first, *_, last = [*least, *least]
        joints = first if first == last else f"{first} to {last}"
        use = ", ".join(dict.fromkeys(s.use for s in rows))
        return f"R2 ({use}) of {joints}: {some([f'{r2:.3f}' for r2 in least.values()], 8)}"

    def __repr__(self) -> str:
        """The verdict, and how each joint is predicted."""
        head = "joint", "run", "use", "R2", "RMSE", "unit", "baseline R2", "nominal R2"
        rows = [
            (
                *(s.joint, s.run, s.use, f"{s.r2:.3f}", f"{s.rmse:.3g}", s.unit),
                *(f"{s.baseline_r2:.3f}", f"{s.nominal_r2:.3f}"),
            )
            for s in self.judged_scores
        ]
        title = f"Assessment of {self.model.system.name}, with {len(self.notes)} notes"
        return "\n".join([title, *self.verdict, *subsample(head, rows, "joints")])

    @property
    def well_predicted(self) -> bool:
        """Whether no joint is predicted poorly, in rows that were not fitted and tell it."""
        return self.too_short is None and not poor([(s.joint, s.r2) for s in self.judged_scores])

    @property
    def judged_scores(self) -> list[JointScore]:
        """The scores of rows that were not fitted."""
        validation = [s for s in self.scores if s.use == "validation"]
        return validation or [s for s in self.scores if s.use == "held out"]

    @property
    def runs(self) -> list[TorqueRun]:
        """The data of its figures."""
        return [
            TorqueRun(
                name=name,
                joints=self.model.joints,
                units=self.model.forces,
                t=equations.t,
                measured=np.where(equations.counts, equations.torque, np.nan),
                residual=residual,
            )
            for name, equations, residual in self.predictions
        ]

    def plot(self, recording: int = 0) -> Figure:
        """Measured and predicted torques of each joint over time, as a matplotlib figure.

        recording: its number in `predictions`. Raises ValueError for one that is not there.
        """
        runs = self.runs
        if recording not in range(len(runs)):
            raise ValueError(
                f"there is no recording {format_value(recording)}; give a number from 0 to "
                f"{len(runs) - 1}"
            )
        return torque_figure(runs[recording], self.model.system.name)


# A standard error beyond this part of a number, or of the greatest that belongs with it.
_BADLY = 0.3
# Correlations beyond this are named.
_ALIKE = 0.98
# So many times the errors of rows that were fitted, those of others are worse.
_WORSE = 1.5
# The errors of so many joints are all named.
_FEW = 4
# Autocorrelations in bounds of white noise: of twenty the largest is a little above 1 by chance.
_WHITE = 2.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Estimates(Uncertainty):
    """The numbers of a fit (p,), with what is known of each; see `difflie.identify.Fit`."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    start: NDArray
    values: NDArray
    intervals: NDArray
    at_bound: NDArray
    correlations: NDArray
    message: str


@dataclasses.dataclass(frozen=True)
class Assessment:
    """How a fit ended, what is known of its numbers, and how it predicts recordings.

    fitted and unseen: the predictions of recordings that were fitted, and of others.
    """

    numbers: Estimates
    fitted: Sequence[Validation]
    unseen: Sequence[Validation]

    @property
    def poorly_identified(self) -> list[str]:
        """The names of the numbers that are poorly identified or not, but for those at a bound."""
        if self._without_errors:
            return []
        n = self.numbers
        size = _sizes(n.names, np.maximum(np.abs(n.values), np.abs(n.start)))
        badly = ~n.at_bound & ~(n.standard_errors <= _BADLY * size)
        # A bias may be nothing.
        told = zip(n.names, badly, np.isfinite(n.standard_errors), strict=True)
        return [name for name, bad, known in told if bad and not (known and name.endswith("bias"))]

    @property
    def _without_errors(self) -> bool:
        return bool(np.isnan(self.numbers.standard_errors).all())

    @property
    def well_predicted(self) -> bool:
        """Whether no torque is predicted poorly: of held-out samples, if there are any."""
        return not poor(_scores(self.unseen or self.fitted, "torque_r2"))

    @property
    def verdict(self) -> list[str]:
        """Sentences: did it converge, how well does it predict, what is left, what is told."""
        message = self.numbers.message
        return [
            f"the fit has {message}" if message.startswith("conv") else message,
            *predictions(self.fitted, self.unseen),
            *self._beside_the_start(),
            *self._beside_the_fitted(),
            *self._left(),
            *self._identifiable(),
        ]

    def _beside_the_start(self) -> Iterator[str]:
        worse, there = [], False
        for v in self.unseen or self.fitted:
            for key, what in (("torque_rmse", "torque"), ("position_rmse", "motion")):
                if v.start is None:
                    continue
                now, before = getattr(v, key), getattr(v.start, key)
                there = there or bool(np.isfinite(now).any())
                no_better = np.isfinite(now) & (now >= before)
                names = [f"the {what} of {v.joints[k]}" for k in np.flatnonzero(no_better)]
                worse += [name for name in names if name not in worse]
        if worse:
            yield f"the numbers at the start are no worse for {listed(worse)}"
        elif there:
            yield "the numbers at the start are worse for all joints"

    def _beside_the_fitted(self) -> Iterator[str]:
        for key, what in (("torque_rmse", "torques"), ("position_rmse", "motions")):
            unseen, fitted = (_pooled(vs, key) for vs in (self.unseen, self.fitted))
            both = [joint for joint in unseen if joint in fitted]
            worse = [
                f"{j} ({unseen[j]:.3g} against {fitted[j]:.3g} {_force_or_position(self, j, key)})"
                for j in both
                if unseen[j] > _WORSE * fitted[j]
            ]
            if worse:
                yield (
                    f"{what} of held-out samples are predicted worse than those of fitted samples: "
                    f"{listed(worse)}; these motions are of another kind, or the fitted ones tell "
                    "too little"
                )
            elif both:
                yield f"{what} of held-out samples are predicted about as well as those fitted"

    def _left(self) -> Iterator[str]:
        if np.isfinite(self.numbers.variance):
            yield (
                f"what the fit leaves is {np.sqrt(self.numbers.variance):.3g} times the deviations "
                "given, which is 1 where these are those of the noise"
            )
        coloured, white = [], []
        for joint, ratio in _pooled(self.fitted, "torque_autocorrelation").items():
            (coloured if ratio > _WHITE else white).append(joint)
        if coloured:
            noise, rmse = (_pooled(self.fitted, k) for k in ("torque_noise", "torque_rmse"))
            parts = [
                f"{j} ({noise[j]:.2g} of {rmse[j]:.2g} {_force_or_position(self, j, 'torque')})"
                for j in coloured
                if j in noise
            ]
            why = "what the model lacks, such as friction of another kind, flexible parts or play"
            if parts:
                yield (
                    "of the torques' RMSE only a part changes from row to row, as noise does: "
                    f"{listed(parts)}; the rest is {why}, or filtered noise"
                )
            else:
                yield (
                    f"what is left of torques is alike over many rows at {listed(coloured)}: it is "
                    f"{why}, or noise that smoothing makes so; standard errors allow for it"
                )
        elif white:
            yield (
                "what is left of torques is white at all joints: no model of the same data would "
                "predict them much better"
            )

    def _identifiable(self) -> Iterator[str]:
        if self._without_errors:
            return
        names, badly = self.numbers.names, self.poorly_identified
        told = f"to {_BADLY:.0%} or better, of themselves or of their start"
        if not badly:
            yield f"the data identifies all {len(names)} numbers {told}"
        else:
            some = f"the data identifies {len(names) - len(badly)} of {len(names)} numbers {told}"
            yield f"{some}, and poorly or not: {listed(badly)}"
        r = np.triu(np.nan_to_num(self.numbers.correlations), 1)
        pairs = sorted(
            zip(*np.nonzero(np.abs(r) > _ALIKE), strict=True), key=lambda ij: -abs(r[ij])
        )
        if pairs:
            said = [f"{names[i]} and {names[j]} ({r[i, j]:+.3f})" for i, j in pairs]
            yield f"strongly correlated: {listed(said)}"


def predictions(fitted: Sequence[Validation], unseen: Sequence[Validation]) -> Iterator[str]:
    """Sentences on how well recordings are predicted: those that were not fitted, if any were."""
    judged = unseen or fitted
    rows = "held-out samples" if unseen else "the fitted samples"
    torques = _scores(judged, "torque_r2")
    yield from grades(
        f"torques are predicted well at all joints: R2 of {rows}",
        torques,
        f"torques of {rows} are ",
    )
    bad = [f"{torques[k][0]} (R2 {torques[k][1]:.3f})" for k in poor(torques)]
    if bad:
        yield f"torques of {rows} are predicted poorly: {listed(bad)}"
    motions = [
        (joint, unit, float(rmse), float(r2))
        for v in judged
        for joint, unit, rmse, r2 in zip(
            v.joints, v.units, v.position_rmse, v.position_r2, strict=True
        )
        if np.isfinite(rmse)
    ]
    if motions:
        seconds = judged[0].window * float(np.median(np.diff(judged[0].recording.t)))
        yield f"motions of {rows}, over {seconds:.3g} s each, are off by (RMSE) {_off_by(motions)}"
    if fitted and not unseen:
        yield (
            'no run was kept aside to judge by: give one use = "validate", as errors of rows '
            "that were fitted are smaller than those of others"
        )


def _off_by(motions: Sequence[tuple[str, str, float, float]]) -> str:
    """Errors of joints, with their units and R2: all of a few, or the least and the greatest."""

    def said(motion: tuple[str, str, float, float]) -> str:
        joint, unit, rmse, r2 = motion
        return f"{rmse:.3g} {unit} at {joint}" + (f" (R2 {r2:.4f})" if np.isfinite(r2) else "")

    if len(motions) <= _FEW:
        return ", ".join(map(said, motions))
    ends = []
    for unit in dict.fromkeys(unit for _, unit, *_ in motions):
        own = sorted((m for m in motions if m[1] == unit), key=lambda m: m[2])
        ends.append(" to ".join(said(m) for m in dict.fromkeys((own[0], own[-1]))))
    return " and ".join(ends)


def _scores(validations: Sequence[Validation], key: str) -> list[tuple[str, float]]:
    return [
        (joint, float(score))
        for v in validations
        for joint, score in zip(v.joints, getattr(v, key), strict=True)
        if np.isfinite(score)
    ]


def _pooled(validations: Sequence[Validation], key: str) -> dict[str, float]:
    """The root mean square over recordings of what each says of a joint, weighted by their rows."""
    found: dict[str, list[tuple[float, int]]] = {}
    for v in validations:
        for joint, value in zip(v.joints, getattr(v, key), strict=True):
            if np.isfinite(value):
                found.setdefault(joint, []).append((float(value), len(v.recording.t)))
    return {
        joint: float(np.sqrt(np.average([x**2 for x, _ in own], weights=[n for _, n in own])))
        for joint, own in found.items()
    }


def _force_or_position(judged: Assessment, joint: str, key: str) -> str:
    v = next(v for v in (*judged.fitted, *judged.unseen) if joint in v.joints)
    unit = v.units[v.joints.index(joint)]
    return unit if key.startswith("position") else FORCE_UNITS[unit]


def _sizes(names: Sequence[str], sizes: NDArray) -> NDArray:
    """The greatest size (p,) among numbers of one kind of one body: components of a vector."""
    kinds = [(n.rpartition("/")[0], n.rpartition("/")[2].partition("_")[0]) for n in names]
    vectors = {"com", "inertia", "I", "position", "moment"}
    most: dict[tuple[str, str], float] = {}
    for kind, size in zip(kinds, sizes.tolist(), strict=True):
        most[kind] = max(most.get(kind, 0.0), size)
    pairs = zip(kinds, sizes.tolist(), strict=True)
    return np.array([most[kind] if kind[1] in vectors else size for kind, size in pairs])
