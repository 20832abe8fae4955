"""The parameters of a machine that explain measurements, and how well they are known."""

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


# Deviations from a prior, and parts of an error from a bound.
_FAR = 3.0
_NEAR = 1e-2


@dataclasses.dataclass(frozen=True)
class Fit:
    """A fitted machine and how well it is known.

    x (n,): the free numbers as `parameters` takes them; values, standard_errors (p,), start (p,),
    with which the fit began: the physical values named by parameters.names, in SI units; errors are
    infinite of what is not identifiable from the measurements. blockwise_errors (p,):
    standard errors that allow for residuals alike over up to a fiftieth of a problem, as those of
    smoothed data and imperfect models are; much larger ones are the ones to believe. correlations
    (p, p). information: of these numbers and, behind them, of the problems' own unknowns. cost:
    half the sum of squared residuals. variance: of the residuals in their standard deviations;
    about 1 where these are right. converged and message: how it ended. own: the unknowns of each
    problem, such as initial states.
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
        """The machine that was found."""
        return self.parameters.machine(jnp.asarray(self.x))

    @property
    def results(self) -> dict[str, Any]:
        """What was found by name, as `difflie identify` writes it.

        parameters: of each its unit, start, value, and standard errors, which are infinite of those
        that fit.undetermined names. fit: how it ended; fit.unidentifiable has the directions in
        which parameters may move together, with the share of each. states: `own`.
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

        In each degree of freedom the root mean square of the errors of torques and of motions that
        are simulated in windows, and how alike neighbouring errors are: see `Validation`. settings:
        window=0.5 in s, observe, substeps and position, as `Trial.of` takes them, which says what
        is judged, warned of, and raised.
        """
        recordings = [recordings] if isinstance(recordings, Recording) else recordings
        system = self.system
        return [Trial.of(system, r, **settings).validation(system) for r in recordings]

    def report(self, folder: str | Path, validations: Sequence[Validation] = ()) -> Path:
        """Writes `report.html` into a folder, and its pictures beside it; returns its path.

        Estimates with their standard errors, correlations, confidence ellipses, and the errors and
        pictures of what `validate` returned. Raises OSError for a folder that cannot be written.
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

    start (n,), without unit: where to begin, by default parameters.start; the x of a fit that was
    interrupted takes it up again, with its `own`, the unknowns (m,) of each problem.
    known_deviations: whether the standard deviations given with the problems are those of the
    measurements; otherwise their common scale is estimated from what is left over. progress(step,
    cost) is called after each step, and improved(x, own) with each best. Ctrl-C ends the fit with
    the best so far, `converged` False.

    Standard errors behind a robust loss are those of M-estimators: Huber and Ronchetti 2009,
    section 7.6. Warns of zeros that start at a small value, of estimates more than three deviations
    from their prior, and of those at a bound. Raises DataError where nothing is free, where there
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
    """What is known of the parameters at the end of a search that began at x = begun (n,)."""
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
    """Of damping, friction and armature of zero, with which no fit can start."""
    start = np.asarray(parameters.values(parameters.start))
    rows = zip(parameters.names, start, np.asarray(parameters.initial), strict=True)
    small = ", ".join(f"{name} at {s:.3g}" for name, s, first in rows if s > 0 and first == 0)
    if small:
        warn(
            f"{parameters.system.name}: zero has no logarithm, and the fit starts {small} (SI "
            "units); give `start` for another"
        )


def _as_squares(
    loss: Loss, r: jax.Array, jacobian: jax.Array, there: jax.Array
) -> tuple[NDArray, NDArray]:
    """Residuals (k,) and derivatives (k, n) of the least squares with the errors of M-estimates.

    With psi and its mean slope m over measurements, J sqrt(m) and psi / sqrt(m): their covariance
    is sum(psi^2) / (m^2 (k - n)) (J^T J)^-1. there: which of the first residuals are measured; what
    is behind them, priors, is not weakened.
    """
    psi, slope = loss.influence(r[: there.size])
    size = jnp.sqrt(jnp.sum(jnp.where(there, slope, 0)) / jnp.maximum(jnp.sum(there), 1))
    r = jnp.concatenate((psi / size, r[there.size :]))
    rows = jnp.where(jnp.arange(len(r)) < there.size, size, 1)
    return np.asarray(r), np.asarray(rows[:, None] * jacobian)


def _warnings(found: Fit) -> list[str]:
    """A sentence for each estimate that is far from its prior or at a bound."""
    p, said = found.parameters, []
    off_prior = np.asarray(p.residual(found.x))
    for name, off in zip(p.prior_names, off_prior, strict=True):
        if abs(off) > _FAR:
            said.append(f"{name} is {abs(off):.3g} deviations from its prior; is this right?")
    for limit in p.limits:
        for name, value, start, bound, error in zip(
            p.names, found.values, found.start, limit, found.standard_errors, strict=True
        ):
            room = _NEAR * (error if np.isfinite(error) else abs(start - bound))
            if np.isfinite(bound) and abs(value - bound) <= room:
                said.append(f"{name} is {value:.4g}, at its bound {bound:.4g}; is this right?")
    return said


def _by_values(jacobian: NDArray, slopes: NDArray) -> NDArray:
    """The derivative (k, n) by the values, of that by x and theirs by x (n, n).

    Zero by numbers on which only rounding depends, and by those so near to a bound that no x
    changes them.
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
