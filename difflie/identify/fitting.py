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
from ..parameters import Parameters
from ..system.system import System
from ..system.validation import warn
from .estimate import Information, blockwise, correlations, information
from .jacobian import residuals_and_jacobian
from .levenberg_marquardt import LevenbergMarquardt
from .losses import Loss, Squares
from .minimiser import Improved, Minimiser, Outcome, Progress
from .problem import Problem
from .recordings import Recording
from .search import Residual, search
from .validation import Trial, Validation

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# Warn beyond so many deviations from a prior, and so near to a bound (in standard errors).
_FAR = 3.0
_NEAR = 1e-2


@dataclasses.dataclass(frozen=True)
class Fit:
    """A fitted machine, with standard errors.

    x (n,): the free numbers as `parameters` takes them; values, standard_errors (p,), and start
    (p,), the initial values: the physical values named by parameters.names, in SI units. Standard
    errors are infinite for values that are not identifiable from this data. blockwise_errors (p,):
    block-robust standard errors, which allow for correlated residuals over up to a fiftieth of a
    problem, as of smoothed data and imperfect models; where they are much larger, use them.
    correlations (p, p). information: of these numbers, followed by the problems' own unknowns.
    cost: half the sum of squared residuals. variance: of the residuals in their standard
    deviations; about 1 where these are right. converged and message: how it ended. own: the
    unknowns of each problem, such as initial states.
    """

    parameters: Parameters
    x: NDArray
    own: tuple[NDArray, ...]
    start: NDArray
    values: NDArray
    standard_errors: NDArray
    blockwise_errors: NDArray
    correlations: NDArray
    information: Information
    cost: float
    variance: float
    steps: int
    converged: bool
    message: str

    @property
    def system(self) -> System:
        """The fitted machine."""
        return self.parameters.machine(jnp.asarray(self.x))

    @property
    def results(self) -> dict[str, Any]:
        """The results by name, as `difflie identify` writes them.

        parameters: for each its unit, start, value and standard errors, which are infinite for
        those in fit.undetermined. fit: how it ended; fit.unidentifiable has the directions in which
        parameters may change together, with the share of each. states: `own`.
        """
        columns = {
            "unit": self.parameters.units,
            "start": self.start.tolist(),
            "value": self.values.tolist(),
            "std_error": self.standard_errors.tolist(),
            "std_error_blockwise": self.blockwise_errors.tolist(),
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
                "unidentifiable": [dict(row) for row in self.information.unidentifiable],
                "undetermined": [n for n, row in table.items() if np.isinf(row["std_error"])],
            },
            "states": self.own,
            "converged": self.converged,
        }

    def plot(self) -> Figure:
        """The estimates with their 95 % intervals, and their start, as a matplotlib figure."""
        from ..view.identification import estimate_figure

        return estimate_figure(self.results["parameters"])

    def validate(
        self, recordings: Recording | Sequence[Recording], **settings: Any
    ) -> list[Validation]:
        """How well the machine predicts recordings, such as those that were not fitted.

        For each degree of freedom the root mean square error of torques, and of motions that are
        simulated in windows, and the autocorrelation of torque errors: see `Validation`. settings:
        window=0.5 in s, observe, substeps and position, as of `Trial.of`, which also documents
        warnings and errors.
        """
        recordings = [recordings] if isinstance(recordings, Recording) else recordings
        system = self.system
        return [Trial.of(system, r, **settings).validation(system) for r in recordings]

    def report(self, folder: str | Path, validations: Sequence[Validation] = ()) -> Path:
        """Writes `report.html` and its pictures into a folder; returns the path of the page.

        With estimates and their standard errors, correlations, confidence ellipses, and the errors
        and pictures of the validations. Raises OSError for a folder that cannot be written.
        """
        from ..view.identification import write_report

        results = {"system": self.parameters.system.name, **self.results, "machine": machine()}
        results["validation"] = [row for v in validations for row in v.rows]
        pictures = [(v.recording.name, v.arrays) for v in validations]
        return write_report(Path(folder), results, pictures, self.correlations)


def fit(
    parameters: Parameters,
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

    start (n,), without unit: the initial x, by default parameters.start, with a warning of the
    bodies that this repairs; the x of an interrupted fit resumes it, together with its `own`, the
    unknowns (m,) of each problem. known_deviations: whether the standard deviations of the problems
    are those of the measurements; otherwise their common scale is estimated from the residuals.
    progress(step, cost) is called after each step, and improved(x, own) with each best. Ctrl-C ends
    the fit with the best so far, `converged` False.

    Standard errors with a robust loss are those of M-estimators: Huber and Ronchetti 2009, section
    7.6. Warns of zeros that start at a small value, of estimates more than three deviations from
    their prior, and of estimates at a bound. Raises DataError where nothing is free, where there
    are fewer measurements and priors than unknowns, and where the residuals at the start are not
    finite.
    """
    problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
    if start is None:
        _warn_of_small_starts(parameters)
    begun, best = search(parameters, problems, start, own, loss, minimiser, progress, improved)
    fitted = _fitted(parameters, problems, loss, known_deviations, begun, best)
    for warning in _warnings(fitted):
        warn(warning)
    return fitted


def _fitted(
    parameters: Parameters,
    problems: tuple[Problem, ...],
    loss: Loss,
    known_deviations: bool,
    begun: jax.Array,
    best: Outcome,
) -> Fit:
    """The `Fit` of a search that started at x = begun (n,), with standard errors."""
    x, states = best.unknown
    r, jacobian = residuals_and_jacobian(Residual(Squares()), best.unknown, (parameters, problems))
    there = jnp.concatenate([p.measured for p in problems])
    weak = loss(r[: there.size])
    cost = float(weak @ weak + jnp.sum(r[there.size :] ** 2)) / 2
    unknowns, known = jacobian.shape[1], int(jnp.sum(there)) + r.size - there.size
    r, jacobian = _as_squares(loss, r, jacobian, there)
    variance = float(r @ r) / (known - unknowns) if known > unknowns else np.nan
    names = (*parameters.names, *(f"state {k}" for k in range(unknowns - x.size)))
    free, others = np.split(jacobian, [x.size], axis=1)
    free = _by_values(free, np.asarray(jax.jacfwd(parameters.values)(x)))
    jacobian = np.concatenate((free, others), axis=1)
    whole = information(jacobian, 1.0 if known_deviations else variance, names)
    covariance = whole.covariance[: x.size, : x.size]
    alike = blockwise(whole, jacobian, r, [p.measured.size for p in problems])
    alike = alike[: x.size, : x.size]
    return Fit(
        parameters=parameters,
        x=np.asarray(x),
        own=tuple(np.asarray(o) for o in states),
        start=np.asarray(parameters.values(begun)),
        values=np.asarray(parameters.values(x)),
        standard_errors=np.sqrt(np.diag(covariance)),
        blockwise_errors=np.sqrt(np.maximum(np.diag(alike), 0)),
        correlations=correlations(covariance),
        information=whole,
        cost=cost,
        variance=variance,
        steps=best.steps,
        converged=best.converged,
        message=best.message,
    )


def _warn_of_small_starts(parameters: Parameters) -> None:
    """Warns of zero damping, friction and armature, which start at a small value instead."""
    start = np.asarray(parameters.values(parameters.start))
    rows = zip(parameters.names, start, np.asarray(parameters.initial), strict=True)
    leaves = "damping", "friction", "armature"
    small = ", ".join(
        f"{name} at {s:.3g}"
        for name, s, first in rows
        if s > 0 and first == 0 and name.rpartition("/")[2].startswith(leaves)
    )
    if small:
        warn(
            f"{parameters.system.name}: zero has no logarithm, and the fit starts {small} (SI "
            "units); give `start` for another"
        )


def _as_squares(
    loss: Loss, r: jax.Array, jacobian: jax.Array, there: jax.Array
) -> tuple[NDArray, NDArray]:
    """Residuals (k,) and derivatives (k, n) of least squares with the covariance of M-estimates.

    With psi and its mean slope m over measurements, psi / sqrt(m) and J sqrt(m): their covariance
    is sum(psi^2) / (m^2 (k - n)) (J^T J)^-1. there: which of the first residuals are measured;
    those after them, priors, are unchanged.
    """
    psi, slope = loss.influence(r[: there.size])
    size = jnp.sqrt(jnp.sum(jnp.where(there, slope, 0)) / jnp.maximum(jnp.sum(there), 1))
    r = jnp.concatenate((psi / size, r[there.size :]))
    rows = jnp.where(jnp.arange(len(r)) < there.size, size, 1)
    return np.asarray(r), np.asarray(rows[:, None] * jacobian)


def _warnings(fitted: Fit) -> list[str]:
    """A sentence for each estimate that is far from its prior or at a bound."""
    p, sentences = fitted.parameters, []
    off_prior = np.asarray(p.residual(fitted.x))
    for name, off in zip(p.prior_names, off_prior, strict=True):
        if abs(off) > _FAR:
            sentences.append(f"{name} is {abs(off):.3g} deviations from its prior; is this right?")
    for limit in p.limits:
        for name, value, start, bound, error in zip(
            p.names, fitted.values, fitted.start, limit, fitted.standard_errors, strict=True
        ):
            room = _NEAR * (error if np.isfinite(error) else abs(start - bound))
            if np.isfinite(bound) and abs(value - bound) <= room:
                sentences.append(f"{name} is {value:.4g}, at its bound {bound:.4g}; is this right?")
    return sentences


def _by_values(jacobian: NDArray, slopes: NDArray) -> NDArray:
    """The derivatives (k, n) by the values, from those by x and the values' slopes (n, n) by x.

    Zero for numbers on which residuals depend by rounding only, and for those so near to a bound
    that x does not change them.
    """
    rounding = np.sqrt(np.finfo(jacobian.dtype).eps)
    rows = np.abs(slopes).max(axis=1, initial=0)
    rows = np.where(rows > 0, rows, 1)[:, None]
    columns = np.abs(slopes / rows).max(axis=0, initial=0)
    columns = np.where(columns > 0, columns, 1)
    back = np.linalg.pinv(slopes / rows / columns)
    back = np.where(np.abs(back) > rounding * np.abs(back).max(initial=0), back, 0)
    back = back / columns[:, None] / rows.T
    found = jacobian @ back
    parts = np.linalg.norm(jacobian, axis=0) @ np.abs(back)
    return np.where(np.linalg.norm(found, axis=0) > rounding * parts, found, 0)
