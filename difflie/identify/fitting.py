"""The fit of a machine's parameters to measurements, with standard errors."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ..io.results import machine
from ..parameters import Parameters, SharedParameters
from ..system.system import System
from ..system.validation import shown
from .by_values import at_values, by_values
from .elimination import compressed, projected
from .fit_warnings import warn_of_ends, warn_of_small_starts
from .judgement import Judged
from .levenberg_marquardt import LevenbergMarquardt
from .losses import Loss, Squares
from .minimiser import Improved, Minimiser, Outcome, Progress
from .plausibility import implausible
from .problem import Problem
from .recordings import Recording
from .search import Residual, search
from .shown import fit_text
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
from .validation import Trial, Validation, all_rows
from .what_to_measure import advice

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# More than this part of the variance is a prior's where it holds the value.
_HELD = 0.5


@dataclasses.dataclass(frozen=True)
class Fit:
    """A fitted machine, with standard errors.

    x (n,): the free numbers as `parameters` takes them; values, standard_errors (p,), and start
    (p,), the initial values: the physical values named by parameters.names, in SI units. own: the
    unknowns of each of the problems, such as initial states.

    standard_errors allow for correlated residuals, as of smoothed data and imperfect models: they
    are cluster-robust, with Student's `freedom` (p,), infinite for values that are not identifiable
    from this data, and NaN where the search has not converged. white_errors (p,): those of white
    noise. intervals (p, 2): of 95 %, within bounds; one-sided for what stands at_bound (p,), a
    mask. prior_share (p,): the part of priors in the variance, 1 for what only they hold.
    correlations (p, p) for white noise. information: of these numbers, with the problems' own
    unknowns free.

    cost: half the sum of squared residuals. variance: of the measured residuals in their standard
    deviations; about 1 where these are right. converged and message: how it ended.
    """

    parameters: Parameters | SharedParameters
    problems: tuple[Problem, ...]
    loss: Loss
    x: NDArray
    own: tuple[NDArray, ...]
    start: NDArray
    values: NDArray
    standard_errors: NDArray
    white_errors: NDArray
    freedom: NDArray
    intervals: NDArray
    at_bound: NDArray
    prior_share: NDArray
    correlations: NDArray
    information: Information
    cost: float
    variance: float
    steps: int
    converged: bool
    message: str

    def __repr__(self) -> str:
        title = f"Fit of {self.parameters.title}: {self.message}"
        return fit_text(title, self.notes, self.results["parameters"])

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
        found = self.parameters.machine(jnp.asarray(self.x))
        return {found.name: found} if isinstance(found, System) else found

    @property
    def results(self) -> dict[str, Any]:
        """The results by name, as `difflie identify` writes them.

        parameters: for each its unit, start, value, standard errors, which are infinite for those
        in fit.undetermined, 95 % interval, bounds, whether it is at one, the prior's share. fit:
        how it ended; fit.notes says in sentences what the data does not tell; fit.unidentifiable
        has the directions in which parameters may change together, with the share of each. states:
        `own`.
        """
        columns = {
            "unit": self.parameters.units,
            "start": self.start.tolist(),
            "value": self.values.tolist(),
            "std_error": self.standard_errors.tolist(),
            "std_error_white": self.white_errors.tolist(),
            "interval": [None if np.isnan(i).any() else i.tolist() for i in self.intervals],
            "bounds": np.stack(self.parameters.limits, axis=1).tolist(),
            "at_bound": self.at_bound.tolist(),
            "prior_share": self.prior_share.tolist(),
        }
        rows = zip(*columns.values(), strict=True)
        table = {
            name: dict(zip(columns, row, strict=True))
            for name, row in zip(self.parameters.names, rows, strict=True)
        }
        return {
            "parameters": table,
            "fit": {
                "cost": self.cost,
                "variance": self.variance,
                "steps": self.steps,
                "message": self.message,
                "condition": self.information.condition,
                "notes": self.notes,
                "unidentifiable": [dict(row) for row in self.information.unidentifiable],
                "undetermined": [n for n, row in table.items() if np.isinf(row["std_error"])],
            },
            "states": self.own,
            "converged": self.converged,
        }

    @property
    def notes(self) -> list[str]:
        """Sentences on what the data does not tell: directions, what priors hold, and bounds."""
        names = np.array(self.parameters.names)
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

    def plot(self) -> Figure:
        """The estimates with their 95 % intervals, and their start, as a matplotlib figure."""
        from ..view.estimates import estimate_figure

        title = f"{self.parameters.title}: estimates and their start"
        return estimate_figure(self.results["parameters"], title)

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
        recordings = [recordings] if isinstance(recordings, Recording) else recordings
        if machine is not None and machine not in self.systems:
            raise ValueError(
                f"no machine is named {shown(machine)}; there are {', '.join(self.systems)}"
            )
        system = self.system if machine is None else self.systems[machine]
        return [Trial.of(system, r, **settings).validation(system) for r in recordings]

    def judgement(
        self, fitted: Sequence[Validation] = (), held_out: Sequence[Validation] = ()
    ) -> dict[str, Any]:
        """Sentences by name, as `difflie identify` writes them.

        verdict: how the fit ended, how well it predicts recordings that were fitted or held out,
        and which numbers are told; well_predicted: whether no torque is predicted poorly; doubts:
        numbers that a machine hardly has; advice: what to measure next.
        """
        judged = Judged(
            message=self.message,
            scale=float(np.sqrt(self.variance)),
            names=self.parameters.names,
            start=self.start,
            values=self.values,
            errors=self.standard_errors,
            at_bound=self.at_bound,
            correlations=self.correlations,
            fitted=fitted,
            unseen=held_out,
        )
        files = self.parameters.given
        doubts = [each for m, s in self.systems.items() for each in implausible(files[m], s)]
        return {
            "verdict": judged.verdict,
            "well_predicted": judged.well_predicted,
            "doubts": list(dict.fromkeys(doubts)),
            "advice": list(advice(judged.badly_told)),
        }

    def report(
        self,
        folder: str | Path,
        held_out: Sequence[Validation] = (),
        fitted: Sequence[Validation] = (),
    ) -> Path:
        """Writes `report.html` and its pictures into a folder; returns the path of the page.

        With the verdict on it, the numbers with their errors and correlations, and errors and
        pictures of the predictions of recordings that were held out, and of those that were fitted,
        as of `validate`. Raises OSError for a folder that cannot be written.
        """
        from ..view.identification import write_report

        results = {"system": self.parameters.title, **self.results, "machine": machine()}
        results |= self.judgement(fitted, held_out)
        results["training"], results["validation"] = map(all_rows, (fitted, held_out))
        rows = [row for v in held_out for row in v.sensor_rows]
        results["sensors"] = [{**row, "use": "validation"} for row in rows]
        uses = ((False, fitted), (True, held_out))
        runs = [(v.recording.name, use, v.drawn) for use, several in uses for v in several]
        return write_report(Path(folder), results, runs, self.correlations)


def fit(
    parameters: Parameters | SharedParameters,
    problems: Problem | Sequence[Problem],
    *,
    start: Any = None,
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
    progress(step, cost) is called after each step, and improved(x, own) with each best. Ctrl-C ends
    the fit with the best so far, `converged` False.

    Standard errors with a robust loss are those of M-estimators: Huber and Ronchetti 2009, section
    7.6. What ends at a bound has the standard error that it would have without the bound. Warns of
    zeros that start at a small value, of estimates more than three deviations from their prior, and
    of estimates at a bound. Raises DataError where nothing is free, where there are fewer
    measurements and priors than unknowns, and where the residuals at the start are not finite.
    """
    problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
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
    rows = Rows.of(problems, parameters.residual(x).size)
    # Priors among the problems are weighted by the loss too.
    weak = loss(jnp.asarray(r[: len(r) - parameters.residual(x).size]))
    cost = float(weak @ weak + jnp.sum(r[weak.size :] ** 2)) / 2
    start, values = np.asarray(parameters.values(begun)), np.asarray(parameters.values(x))
    free = by_values(free, np.asarray(jax.jacfwd(parameters.values)(x)))
    eliminated = sum(state.size for state in states)

    def known(free: NDArray) -> tuple[Information, Uncertainty]:
        off, whole = as_squares(loss, r, np.concatenate((free, own), axis=1), rows)
        left = projected(whole[:, : x.size], whole[:, x.size :], residual.windows(args))
        found = information(left, 1.0, parameters.names)
        return found, uncertainty(found, left, off, rows, eliminated, known_deviations)

    found, off = known(free)
    sides = at_bounds(values, start, off.white, parameters.limits)
    if sides.any():
        at = np.flatnonzero(sides)
        # No x reaches a bound: near it derivatives by x vanish, but not those by the values.
        free[:, at] = at_values(parameters, problems, values, states, at)
        found, off = known(free)
    scale = 1.0 if known_deviations else off.variance
    found = dataclasses.replace(found, covariance=scale * found.inverse)
    if not best.converged:
        # Where the slope of the cost is not zero, its curvature tells no error.
        nothing = np.full(values.size, np.nan)
        off = dataclasses.replace(off, errors=nothing, white=nothing)
    return Fit(
        parameters=parameters,
        problems=problems,
        loss=loss,
        x=np.asarray(x),
        own=tuple(np.asarray(o) for o in states),
        start=start,
        values=values,
        standard_errors=off.errors,
        white_errors=off.white,
        freedom=off.freedom,
        intervals=intervals(values, off.errors, off.freedom, parameters.limits, sides),
        at_bound=sides != 0,
        prior_share=off.prior_share,
        correlations=correlations(found.covariance),
        information=found,
        cost=cost,
        variance=off.variance,
        steps=best.steps,
        converged=best.converged,
        message=best.message,
    )
