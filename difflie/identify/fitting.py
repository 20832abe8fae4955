"""The fit of a machine's parameters to measurements, with standard errors."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from ..deprecated import by_old_name
from ..forces.at_joint import AtJoint
from ..io import save
from ..io.files import file_name
from ..io.results import machine, save_json
from ..io.robot_files import root_tag
from ..parameters import Parameters, SharedParameters
from ..system.shown import subsample
from ..system.system import System
from ..system.validation import format_value, nearest
from ..view.estimates import Estimated, estimate_figure
from ..view.report import Report
from ..view.report_page import write_html
from .assessment import ArmAssessment, Assessment, Estimates
from .elimination import Windows, compressed, projected
from .least_squares import Improved, LevenbergMarquardt, Minimiser, Outcome, Progress
from .losses import Loss, Squares
from .problem import LogNumber, Problem
from .recordings import Recording, as_recordings
from .remarks import advice, implausible, warn_of_ends, warn_of_small_starts
from .report import (
    ArmResults,
    FitResults,
    FitSummary,
    NominalWeight,
    Validations,
    arm_report,
    best_known,
    fit_report,
)
from .search import Residual, at_values, by_values, search
from .statistics import (
    Information,
    Rows,
    Uncertainty,
    as_squares,
    at_bounds,
    correlations,
    directions,
    information,
    intervals,
    listed,
    uncertainty,
)
from .validation import Trial, Validation

# More than this part of the variance is a prior's where it holds the value.
_HELD = 0.5
# Of a fit in a terminal: letters of a sentence, and how many sentences.
_WIDTH, _SENTENCES = 100, 4


class EstimatesByName(dict[str, Estimated]):
    """Estimates by name, of which a name that is not there is answered with the nearest."""

    def __missing__(self, name: str) -> Estimated:
        raise KeyError(f"the fit has no number {format_value(name)}{nearest(str(name), self)}")


@dataclasses.dataclass(frozen=True)
class Fit(Estimates):
    """A fitted machine, with standard errors.

    x (n,): the free numbers as `parameters` takes them; values, standard_errors (p,), and start
    (p,), the initial values: the physical values named by `names` (p,), in SI `units` (p,). These
    are those of `parameters`, and then numbers that belong to the logs (`Problem.log_numbers`).
    own: the unknowns (m,) of each of the problems, such as initial
    states.

    standard_errors allow for correlated residuals, as of smoothed data and imperfect models: they
    are cluster-robust, with Student's `freedom` (p,), infinite for values that are not identifiable
    from this data, and NaN where the search has not converged. white_errors (p,): those of white
    noise. intervals (p, 2): of 95 %, within bounds; one-sided for what stands at_bound (p,), a
    mask. prior_share (p,): the part of priors in the variance, 1 for what only they hold.
    correlations (p, p) for white noise. information: of these numbers, with the problems' own
    unknowns free.

    cost: half the sum of squared residuals. variance: of the measured residuals in their standard
    deviations; about 1 where these are right. steps, converged and message: how it ended, and after
    how many steps. assessment: of an arm (`identify_arm`), how each joint is predicted; else None.
    """

    parameters: Parameters | SharedParameters
    problems: tuple[Problem, ...]
    loss: Loss
    x: NDArray
    own: tuple[NDArray, ...]
    information: Information
    cost: float
    steps: int
    converged: bool
    assessment: ArmAssessment | None = None

    def __repr__(self) -> str:
        """The first sentences on how it ended, and the numbers that the data tells best."""
        title = f"Fit of {self.parameters.title}: {self.message}"
        said = self.notes if self.assessment is None else self.assessment.verdict
        short = [textwrap.shorten(sentence, _WIDTH, placeholder=" ...") for sentence in said]
        short = short[:_SENTENCES]
        if self.assessment is not None:
            short.append(self.assessment.r2_of_joints)
        head = "name", "start", "value", "standard error", "unit"
        numbers = list(self.estimates.items())
        rows = [
            (name, f"{p.start:.5g}", f"{p.value + 0.0:.5g}", f"{p.std_error:.3g}", p.unit)
            for name, p in (numbers[k] for k in best_known(self.prior_share.tolist()))
        ]
        return "\n".join([title, *short, *subsample(head, rows, "numbers")])

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            return by_old_name(self, "Fit", name)

    @property
    def estimates(self) -> dict[str, Estimated]:
        """What is known of each number, by its name; KeyError for another says the nearest."""
        columns = (
            *(self.units, self.start.tolist(), self.values.tolist()),
            *(self.standard_errors.tolist(), self.white_errors.tolist()),
            [None if np.isnan(i).any() else i.tolist() for i in self.intervals],
            np.stack(_limits(self.parameters, _log_numbers(self.problems)), axis=1).tolist(),
            *(self.at_bound.tolist(), self.prior_share.tolist()),
            [k >= len(self.parameters.names) for k in range(len(self.names))],
        )
        each = zip(self.names, *columns, strict=True)
        return EstimatesByName((name, Estimated(*row)) for name, *row in each)

    @property
    def system(self) -> System:
        """The fitted machine; raises ValueError where there are several: these are `systems`."""
        systems = self.systems
        if len(systems) > 1:
            raise ValueError(
                f"the fit has the machines {self.parameters.title}; take one of them from "
                "fit.systems, and say which one to fit.validate"
            )
        return next(iter(systems.values()))

    @property
    def systems(self) -> dict[str, System]:
        """The fitted machines by name: the one, or all of `SharedParameters`."""
        found = self.parameters.system_at(jnp.asarray(self.x))
        return {found.name: found} if isinstance(found, System) else found

    @property
    def results(self) -> FitResults | ArmResults:
        """The results as `difflie identify` writes them: of an arm, or as of `assess`."""
        return self.assess() if self.assessment is None else arm_results(self)

    def summary(self, seconds: float | None = None) -> FitSummary:
        """How it ended, and what the data does not tell; seconds: how long it took."""
        errors = zip(self.names, self.standard_errors, strict=True)
        return FitSummary(
            cost=self.cost,
            variance=self.variance,
            steps=self.steps,
            message=self.message,
            condition=self.information.condition,
            notes=self.notes,
            unidentifiable=[dict(row) for row in self.information.unidentifiable],
            undetermined=[name for name, error in errors if np.isinf(error)],
            seconds=seconds,
        )

    @property
    def notes(self) -> list[str]:
        """Sentences on what the data does not tell: directions, what priors hold, and bounds.

        A prior holds what has more than half of its variance from it; the notes of an arm's
        assessment count those with more than nine tenths.
        """
        names = np.array(self.names)
        said = [directions(self.information.unidentifiable)]
        if not self.converged:
            said.append("the numbers are not converged, and have no standard errors")
        held = names[self.prior_share > _HELD].tolist()
        if held:
            said.append(f"held by the prior more than by the data: {listed(held)}")
        if self.at_bound.any():
            said.append(
                f"at a bound, with a one-sided interval: {listed(names[self.at_bound].tolist())}"
            )
        return [sentence for sentence in said if sentence]

    def plot(self, recording: int | None = None) -> Figure:
        """The estimates with their 95 % intervals, and their start, as a matplotlib figure.

        recording: of an arm, the number of one whose torques are drawn instead, measured and
        predicted. Raises ValueError for one that is not there.
        """
        if recording is not None:
            if self.assessment is None:
                raise ValueError("recordings are drawn by their validation: fit.validate(...)[0]")
            return self.assessment.plot(recording)
        return estimate_figure(
            self.estimates, f"{self.parameters.title}: estimates and their start"
        )

    def validate(
        self,
        recordings: Recording | Sequence[Recording],
        *,
        machine: str | None = None,
        **settings: Any,
    ) -> list[Validation]:
        """How well the machine predicts recordings, such as those that were not fitted.

        machine: its name, where several were fitted.

        For each degree of freedom the root mean square error of torques, and of motions that are
        simulated in windows, and the autocorrelation of torque errors: see `Validation`. settings:
        window=0.5 in s, observe, substeps, position and readings, as of `Trial.of`, which also
        documents warnings and errors.
        """
        recordings = as_recordings(recordings)
        if machine is not None and machine not in self.systems:
            raise ValueError(
                f"no machine is named {format_value(machine)}; there are {', '.join(self.systems)}"
            )
        system = self.system if machine is None else self.systems[machine]
        return [Trial.of(system, r, **settings).validation(system) for r in recordings]

    def assess(
        self,
        fitted: Sequence[Validation] = (),
        held_out: Sequence[Validation] = (),
        *,
        left_out: Sequence[Validation] = (),
        name: str = "",
        seconds: float | None = None,
    ) -> FitResults:
        """The results, with sentences on how well recordings are predicted, and their errors.

        verdict: how the fit ended, how well it predicts recordings that were fitted or held out,
        and which numbers are told; well_predicted: whether no torque is predicted poorly; doubts:
        numbers that a machine hardly has; advice: what to measure next. left_out: as of `report`.
        name: of the fit, by default that of its system; seconds: how long it took.
        """
        judged = Assessment(self, fitted, held_out)
        files, found = self.parameters.given, self.systems.items()
        doubts = [each for name, system in found for each in implausible(files[name], system)]
        results = FitResults(
            name=name or self.parameters.title,
            system=self.parameters.title,
            parameters=self.estimates,
            fit=self.summary(seconds),
            states=list(self.own),
            converged=self.converged,
            verdict=judged.verdict,
            well_predicted=judged.well_predicted,
            machine=machine(),
            doubts=list(dict.fromkeys(doubts)),
            advice=list(advice(judged.poorly_identified)),
        )
        return results.judged(Validations(fitted, held_out, left_out))

    def as_report(
        self,
        held_out: Sequence[Validation] = (),
        fitted: Sequence[Validation] = (),
        *,
        left_out: Sequence[Validation] = (),
        about: Mapping[str, object] = MappingProxyType({}),
        whole: bool = True,
    ) -> Report:
        """The `report` as data; whole: whether with the sections that terminals leave out."""
        judged = Validations(fitted, held_out, left_out)
        if self.assessment is not None:
            numbers, assessment = self.estimates, self.assessment
            return arm_report(numbers, self.converged, assessment, judged, about, whole)
        return fit_report(self.assess(fitted, held_out), judged, about, whole, self.correlations)

    def report(
        self,
        folder: str | Path,
        held_out: Sequence[Validation] = (),
        fitted: Sequence[Validation] = (),
        *,
        left_out: Sequence[Validation] = (),
        about: Mapping[str, object] = MappingProxyType({}),
    ) -> Path:
        """Writes `report.html` and its pictures into a folder; returns the path of the page.

        With the verdict on it, the numbers with their errors and correlations, and errors and
        pictures of the predictions of recordings that were held out, and of those that were fitted,
        as of `validate`; of an arm, the torques of its recordings. left_out: the errors of
        recordings that fits to the others predict, as of `leave_one_out`. about: more, by name,
        that the page is to say of its origin, such as the configuration. Raises OSError for a
        folder that cannot be written.
        """
        made = self.as_report(held_out, fitted, left_out=left_out, about=about)
        return write_html(made, Path(folder))

    def save(
        self,
        folder: str | Path,
        held_out: Sequence[Validation] = (),
        fitted: Sequence[Validation] = (),
        *,
        left_out: Sequence[Validation] = (),
        about: Mapping[str, object] = MappingProxyType({}),
        original: str | Path | None = None,
        results: FitResults | ArmResults | None = None,
    ) -> Path:
        """Writes the results as JSON, the `report`, and each machine as URDF; returns the folder.

        As `difflie identify --out` does: identification.json, report.html with its pictures, and
        NAME.urdf, without actuators and sensors, which URDF does not know. original: a URDF file of
        the same links, whose shapes are kept, or the MJCF file that the machine was read from; then
        it is NAME.xml, with its new numbers. results: those to write, by default of these
        predictions. Raises as `report` and `difflie.save` do; all else is written when the machine
        is refused.
        """
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        if results is None and self.assessment is None:
            results = self.assess(fitted, held_out, left_out=left_out)
        save_json(path / "identification.json", results or self.results)
        self.report(path, held_out, fitted, left_out=left_out, about=about)
        for system in self.systems.values():
            save_bare(system, path, original)
        return path


def arm_results(fit: Fit, name: str = "", seconds: float | None = None) -> ArmResults:
    """The results of the fit of an arm, as `difflie identify` writes them; as `Fit.assess`.

    Raises ValueError for the fit of declared parameters.
    """
    found = fit.assessment
    if found is None:
        raise ValueError("this is no fit of an arm; take fit.assess()")
    rise, fading = (x.tolist() for x in (found.friction.rise, found.friction.fading))
    return ArmResults(
        name=name or fit.parameters.title,
        system=fit.parameters.title,
        parameters=fit.estimates,
        fit=fit.summary(),
        states=list(fit.own),
        converged=fit.converged,
        verdict=list(found.verdict),
        well_predicted=found.well_predicted,
        machine=machine(),
        notes=list(found.notes),
        joints=list(found.scores),
        base_parameters=found.base.table,
        condition=found.base.condition,
        nearness=NominalWeight(
            weight=found.held_out.best,
            weights=found.held_out.weights,
            errors=found.held_out.errors,
            distances=found.distances,
        ),
        friction_velocity=dict(zip(found.model.joints, rise, strict=True)),
        stribeck_velocity=dict(zip(found.model.joints, fading, strict=True)),
        seconds=seconds,
    )


def save_bare(system: System, folder: Path, original: str | Path | None = None) -> None:
    """Writes the machine as URDF, without actuators and sensors, whose numbers the results have.

    original: a URDF file of the same links, whose shapes are kept, or the MJCF file that it was
    read from, which is written with its new numbers.
    """
    others = tuple(c for c in system.couplings if not isinstance(c, AtJoint))
    bare = dataclasses.replace(system, couplings=others, actuators=(), sensors=())
    suffix = "urdf" if original is None or root_tag(Path(original)) != "mujoco" else "xml"
    save(bare, folder / f"{file_name(system.name)}.{suffix}", original=original)


def fit(
    parameters: Parameters | SharedParameters,
    problems: Problem | Sequence[Problem],
    *,
    start: ArrayLike | None = None,
    own: Sequence[Any] | None = None,
    loss: Loss = Squares(),
    known_deviations: bool = False,
    minimiser: Minimiser = LevenbergMarquardt(),
    progress: Progress | None = None,
    improved: Improved | None = None,
) -> Fit:
    """The parameters that explain measurements best, in the sense of the losses.

    With `SharedParameters` of several machines each problem is `OfMachine(name, problem)`.

    start (n,), without unit: the initial x, by default parameters.start, with a warning of the
    bodies that this repairs; the x of an interrupted fit resumes it, together with its `own`, the
    unknowns (m,) of each problem. known_deviations: whether the standard deviations of the problems
    are those of the measurements; otherwise their common scale is estimated from the residuals.
    minimiser: `LevenbergMarquardt` or `Descent`. progress(step, cost) is called after each step,
    and improved(x, own) with each best. Ctrl-C ends the fit with the best so far, `converged`
    False.

    Standard errors with a robust loss are those of M-estimators: Huber and Ronchetti 2009, section
    7.6. What ends at a bound has the standard error that it would have without the bound. Warns of
    zeros that start at a small value, of estimates more than three deviations from their prior, and
    of estimates at a bound. Raises TypeError for what are no parameters or problems, DataError
    where nothing is free, where there are fewer measurements and priors than unknowns, and where
    the residuals at the start are not finite.

    >>> lift = dl.chain([dl.Body(name="lift", joint=dl.Prismatic(), mass=2.0)])
    >>> t, still, a = np.arange(50) / 10, np.zeros((50, 1)), np.ones((50, 1))
    >>> log = dl.identify.Recording("log", t, q=still, v=still, a=a, tau=3 * (9.81 + a))
    >>> problem = dl.identify.InverseDynamics.of(lift, [log])
    >>> print(dl.identify.fit(dl.Parameters(lift, ["lift/mass"]), problem).values.round(3))
    [3.]
    """
    problems = tuple(problems) if isinstance(problems, Sequence) else (problems,)
    if not isinstance(parameters, Parameters | SharedParameters):
        raise TypeError(
            f"{type(parameters).__name__} is no Parameters; give dl.Parameters(system, [...]) of a "
            "system that dl.load returns"
        )
    for problem in (p for p in problems if not isinstance(p, Problem)):
        raise TypeError(
            f"{type(problem).__name__} is no Problem; give di.InverseDynamics.of(system, "
            "[recording]) or another one"
        )
    if start is None:
        warn_of_small_starts(parameters)
    begun, best = search(parameters, problems, start, own, loss, minimiser, progress, improved)
    fitted = judged(parameters, problems, loss, known_deviations, begun, best)
    warn_of_ends(parameters, fitted.x, fitted.values, fitted.at_bound)
    return fitted


def judged(
    parameters: Parameters | SharedParameters,
    problems: tuple[Problem, ...],
    loss: Loss,
    known_deviations: bool,
    begun: jax.Array,
    best: Outcome,
) -> Fit:
    """The `Fit` of a search that started at x = begun (n,), with standard errors."""
    x, states = best.unknown
    residual, args = Residual(Squares()), (parameters, problems)
    r, free, own = compressed(residual, best.unknown, args)
    own, log, windows = _of_logs(problems, states, own, residual.windows(args))
    rows = Rows.of(problems, parameters.residual(x).size)
    # Priors among the problems are weighted by the loss too.
    weak = loss(jnp.asarray(r[: len(r) - parameters.residual(x).size]))
    cost = float(weak @ weak + jnp.sum(r[weak.size :] ** 2)) / 2
    numbers = _log_numbers(problems)
    names = (*parameters.names, *(n.name for n in numbers))
    begins = [p.own for p in problems if p.log_numbers]
    ends = [state for p, state in zip(problems, states, strict=True) if p.log_numbers]
    start = np.concatenate((parameters.values(begun), *begins))
    values = np.concatenate((parameters.values(x), *ends))
    limits = _limits(parameters, numbers)
    free = by_values(free, np.asarray(jax.jacfwd(parameters.values)(x)))
    free = np.concatenate((free, log), axis=1)
    eliminated = sum(state.size for state in states) - len(numbers)

    def known(free: NDArray) -> tuple[Information, Uncertainty]:
        off, whole = as_squares(loss, r, np.concatenate((free, own), axis=1), rows)
        left = projected(whole[:, : len(names)], whole[:, len(names) :], windows)
        found = information(left, 1.0, names)
        return found, uncertainty(found, left, off, rows, eliminated, known_deviations)

    found, off = known(free)
    sides = at_bounds(values, start, off.white_errors, limits)
    at = np.flatnonzero(sides[: x.size])
    if at.size:
        # No x reaches a bound: near it derivatives by x vanish, but not those by the values.
        free[:, at] = at_values(parameters, problems, values[: x.size], states, at)
        found, off = known(free)
    scale = 1.0 if known_deviations else off.variance
    found = dataclasses.replace(found, covariance=scale * found.inverse)
    if not best.converged:
        # Where the slope of the cost is not zero, its curvature tells no error.
        nothing = np.full(values.size, np.nan)
        off = dataclasses.replace(off, standard_errors=nothing, white_errors=nothing)
    return Fit(
        parameters=parameters,
        problems=problems,
        loss=loss,
        x=np.asarray(x),
        own=tuple(np.asarray(o) for o in states),
        names=names,
        units=(*parameters.units, *(n.unit for n in numbers)),
        start=start,
        values=values,
        intervals=intervals(values, off.standard_errors, off.freedom, limits, sides),
        at_bound=sides != 0,
        correlations=correlations(found.covariance),
        information=found,
        cost=cost,
        steps=best.steps,
        converged=best.converged,
        message=best.message,
        **vars(off),
    )


def _log_numbers(problems: Sequence[Problem]) -> list[LogNumber]:
    return [n for problem in problems for n in problem.log_numbers]


def _limits(
    parameters: Parameters | SharedParameters, numbers: Sequence[LogNumber]
) -> tuple[NDArray, NDArray]:
    """The lower and upper bounds of the parameters, and then of numbers of logs."""
    lower, upper = parameters.limits
    more = np.array([(n.lower, n.upper) for n in numbers], float).reshape(-1, 2)
    return np.append(lower, more[:, 0]), np.append(upper, more[:, 1])


def _of_logs(
    problems: Sequence[Problem],
    states: Sequence[jax.Array],
    own: NDArray,
    windows: Sequence[Windows],
) -> tuple[NDArray, NDArray, tuple[Windows, ...]]:
    """The derivatives (k, c) by unknowns of windows, (k, m) by numbers of logs, and the windows.

    A problem whose own unknowns are numbers of its log has no windows.
    """
    own, done, others = own.copy(), 0, []
    found = np.zeros((len(own), 0))
    for problem, state, window in zip(problems, states, windows, strict=True):
        part = slice(done, done + len(window.of))
        done = part.stop
        if problem.log_numbers:
            columns = np.zeros((len(own), state.size))
            columns[part], own[part] = own[part, : state.size], 0
            found = np.concatenate((found, columns), axis=1)
            window = Windows(window.of, 1, 0)
        others.append(window)
    return own, found, tuple(others)
