"""The parameters of a machine that explain measurements, and how well they are known."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ..system.system import System
from .estimate import Information, blockwise, correlations, information
from .jacobian import residuals_and_jacobian
from .levenberg_marquardt import LevenbergMarquardt
from .losses import Loss, Squares
from .minimiser import Minimiser, Progress
from .parameters import Parameters
from .problem import Problem
from .recordings import DataError


@dataclasses.dataclass(frozen=True)
class Fit:
    """A fitted machine and how well it is known.

    x (n,): the free numbers as `parameters` takes them; values, standard_errors (p,), start (p,):
    of the numbers named by parameters.names, as they are read in tables, in SI units; errors are
    infinite where the measurements do not tell. blockwise_errors (p,): standard errors that allow
    for residuals alike over up to a fiftieth of a problem, as those of smoothed data and imperfect
    models are; much larger ones are the ones to believe. correlations (p, p). information: of these
    numbers and, behind them, of the problems' own unknowns. cost: half the sum of squared
    residuals. variance: of the residuals in their standard deviations; about 1 where these are
    right. converged and message: how it ended. own: the unknowns of each problem, such as initial
    states.
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


def fit(
    parameters: Parameters,
    problems: Problem | Sequence[Problem],
    *,
    start: Any = None,
    loss: Loss = Squares(),
    known_deviations: bool = False,
    minimiser: Minimiser = LevenbergMarquardt(),
    progress: Progress | None = None,
) -> Fit:
    """The parameters that explain measurements best, in the sense of the losses.

    start (n,), without unit: where to begin, by default parameters.start; the x of a fit that was
    interrupted takes it up again. known_deviations: whether the standard deviations given with the
    problems are those of the measurements; otherwise their common scale is estimated from what is
    left over. progress(step, cost) is called after each step. Ctrl-C ends the fit with the best so
    far, `converged` False.

    Raises DataError where nothing is free, where there are fewer measurements and priors than
    unknowns, and where the residuals at the start are not finite.
    """
    problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
    x = jnp.asarray(parameters.start if start is None else start)
    own = tuple(p.own.astype(x.dtype) for p in problems)
    unknowns = x.size + sum(o.size for o in own)
    if not unknowns:
        raise DataError(
            f"{parameters.system.name}: no number is free; declare one that is not fixed"
        )
    count = sum(int(np.sum(p.measured)) for p in problems)
    known = count + parameters.residual(x).size
    if known < unknowns:
        raise DataError(
            f"{count} measurements are fewer than the {unknowns} unknowns to find; give more, or "
            "fix some"
        )

    residual, args = _Residual(loss), (parameters, problems)
    r, _ = residuals_and_jacobian(residual, (x, own), args)
    cost = float(r @ r) / 2
    if not np.isfinite(cost):
        raise DataError(
            "the residuals at the start are not finite: the simulated motion diverges, or the "
            "start is no machine; start nearer, use shorter windows, or fit the torques first"
        )
    best = minimiser.minimised(residual, (x, own), args, cost, progress)
    x, own = best.unknown
    r, jacobian = map(np.asarray, residuals_and_jacobian(residual, best.unknown, args))
    cost = float(r @ r) / 2
    variance = 2 * cost / (known - unknowns) if known > unknowns else np.nan
    names = (*parameters.names, *(f"state {k}" for k in range(unknowns - x.size)))
    free, others = np.split(jacobian, [x.size], axis=1)
    free = _by_tables(free, np.asarray(jax.jacfwd(parameters.values)(x)))
    jacobian = np.concatenate((free, others), axis=1)
    found = information(jacobian, 1.0 if known_deviations else variance, names)
    covariance = found.covariance[: x.size, : x.size]
    alike = blockwise(found, jacobian, r, [p.measured.size for p in problems])
    alike = alike[: x.size, : x.size]
    return Fit(
        parameters=parameters,
        x=np.asarray(x),
        own=tuple(np.asarray(o) for o in own),
        start=np.asarray(parameters.values(jnp.asarray(parameters.start))),
        values=np.asarray(parameters.values(x)),
        standard_errors=np.sqrt(np.diag(covariance)),
        blockwise_errors=np.sqrt(np.maximum(np.diag(alike), 0)),
        correlations=correlations(covariance),
        information=found,
        cost=cost,
        variance=variance,
        steps=best.steps,
        converged=best.converged,
        message=best.message,
    )


class _Residual(eqx.Module):
    """All residuals (k,), weakened by the loss, and those of the priors."""

    loss: Loss

    def __call__(self, unknown: tuple, args: tuple) -> jax.Array:
        (x, own), (parameters, problems) = unknown, args
        system = parameters.machine(x)
        parts = [p.residual(system, o) for p, o in zip(problems, own, strict=True)]
        return jnp.concatenate([*(self.loss(r) for r in parts), parameters.residual(x)])


def _by_tables(jacobian: NDArray, slopes: NDArray) -> NDArray:
    """The derivative (k, n) by the numbers in tables, of that by x and theirs by x (n, n).

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
