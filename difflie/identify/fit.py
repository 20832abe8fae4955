"""Levenberg-Marquardt over the parameters of a machine, with exact derivatives."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from jax.flatten_util import ravel_pytree
from numpy.typing import NDArray

from ..system.system import System
from .estimate import Information, correlations, information
from .losses import Loss, Squares
from .parameters import Parameters
from .problem import Problem
from .recordings import DataError

Progress = Callable[[int, float], None]

# So many steps that change nothing are enough.
_LEVEL = 3

# Near a minimum steps are those of Gauss and Newton: the damping falls wherever the model is good.
_DAMPING = optx.ClassicalTrustRegion(
    high_cutoff=0.75, low_cutoff=0.25, high_constant=10.0, low_constant=0.1
)


@dataclasses.dataclass(frozen=True)
class Fit:
    """A fitted machine and how well it is known.

    x (n,): the free numbers as `parameters` takes them; values, standard_errors (p,), start (p,):
    of the numbers named by parameters.names, as they are read in tables; errors are infinite where
    the measurements do not tell. correlations (p, p). information: of the free numbers. cost: half
    the sum of squared residuals. variance: of the residuals in their standard deviations; about 1
    where these are right. converged and message: how it ended. own: the unknowns of each problem,
    such as initial states.
    """

    parameters: Parameters
    x: NDArray
    own: tuple[NDArray, ...]
    start: NDArray
    values: NDArray
    standard_errors: NDArray
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
    max_steps: int = 100,
    tolerance: float = 1e-8,
    progress: Progress | None = None,
) -> Fit:
    """The parameters that explain measurements best, in the sense of the losses.

    start (n,): where to begin, by default parameters.start; the x of a fit that was interrupted
    takes it up again. known_deviations: whether the standard deviations given with the problems are
    those of the measurements; otherwise their common scale is estimated from what is left over.
    tolerance: of the last step and of the cost, relative. progress(step, cost) is called after each
    step. Ctrl-C ends the fit with the best so far, `converged` False.

    Raises DataError where there are fewer measurements and priors than unknowns, and where the
    residuals at the start are not finite. Nocedal and Wright 2006, chapter 10.
    """
    problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
    x = jnp.asarray(parameters.start if start is None else start)
    own = tuple(p.own.astype(x.dtype) for p in problems)
    unknowns = x.size + sum(o.size for o in own)
    count = sum(int(np.sum(p.measured)) for p in problems)
    known = count + parameters.residual(x).size
    if known < unknowns:
        raise DataError(f"{count} measurements are fewer than the {unknowns} unknowns to find")

    residual, args = _Residual(loss), (parameters, problems)
    cost, _ = _linearised(residual, (x, own), args)
    if not np.isfinite(cost):
        raise DataError(
            "the residuals at the start are not finite: the simulated motion diverges, or the "
            "start is no machine; start nearer, use shorter windows, or fit the torques first"
        )
    best, steps, converged, message = _minimised(
        residual, (x, own), args, cost, max_steps, tolerance, progress
    )
    x, own = best
    cost, jacobian = _linearised(residual, best, args)
    variance = 2 * cost / (known - unknowns) if known > unknowns else np.nan
    names = (*parameters.names, *(f"state {k}" for k in range(unknowns - x.size)))
    found = information(jacobian, 1.0 if known_deviations else variance, names)
    through = np.asarray(jax.jacfwd(parameters.values)(x))
    covariance = _through(through, found.covariance[: x.size, : x.size])
    return Fit(
        parameters=parameters,
        x=np.asarray(x),
        own=tuple(np.asarray(o) for o in own),
        start=np.asarray(parameters.values(jnp.asarray(parameters.start))),
        values=np.asarray(parameters.values(x)),
        standard_errors=np.sqrt(np.diag(covariance)),
        correlations=correlations(covariance),
        information=found,
        cost=cost,
        variance=variance,
        steps=steps,
        converged=converged,
        message=message,
    )


class _Residual(eqx.Module):
    """All residuals (k,), weakened by the loss, and those of the priors."""

    loss: Loss

    def __call__(self, unknown: tuple, args: tuple) -> jax.Array:
        (x, own), (parameters, problems) = unknown, args
        system = parameters.machine(x)
        parts = [p.residual(system, o) for p, o in zip(problems, own, strict=True)]
        return jnp.concatenate([*(self.loss(r) for r in parts), parameters.residual(x)])

    def with_aux(self, unknown: tuple, args: tuple) -> tuple[jax.Array, None]:
        return self(unknown, args), None


def _through(jacobian: NDArray, covariance: NDArray) -> NDArray:
    """The covariance of a function of the unknowns; infinite where these are and matter."""
    lost = ~np.isfinite(np.diag(covariance))
    finite = np.where(np.isfinite(covariance), covariance, 0)
    found = jacobian @ finite @ jacobian.T
    touched = (np.abs(jacobian[:, lost]) > 0).any(axis=1)
    found[np.diag(touched)] = np.inf
    return found


def _minimised(residual, unknown, args, cost, max_steps, tolerance, progress):
    """The best unknowns, the steps taken, whether they are a minimum, and a sentence.

    A value whose best is on its bound, infinitely far in the unknowns, makes these go on for ever:
    it is enough that the cost falls no more.
    """
    solver = optx.LevenbergMarquardt(rtol=tolerance, atol=tolerance)
    solver = eqx.tree_at(lambda s: s.search, solver, _DAMPING)
    state = _start(solver, residual, unknown, args)
    best, k, accepted, level = unknown, 0, 0, 0
    try:
        for k in range(1, max_steps + 1):
            unknown, state, done, result = _step(solver, residual, unknown, args, state)
            now = float(state.f_info.as_min())
            if np.isfinite(now) and now <= cost:
                if int(state.num_accepted_steps) > accepted:
                    level = level + 1 if now >= cost * (1 - tolerance) else 0
                best, cost = unknown, now
            accepted = int(state.num_accepted_steps)
            if progress is not None:
                progress(k, cost)
            if bool(done) and bool(result != optx.RESULTS.successful):
                return best, k, False, f"stopped after {k} steps: {optx.RESULTS[result]}"
            if bool(done) or level == _LEVEL:
                return best, k, True, f"converged after {k} steps"
    except KeyboardInterrupt:
        return best, k, False, f"interrupted after {k} steps; the best so far is kept"
    return best, k, False, f"not converged after {k} steps; start there again for more"


@eqx.filter_jit
def _start(solver, residual, unknown, args):
    shape = jax.eval_shape(residual, unknown, args)
    return solver.init(residual.with_aux, unknown, args, {}, shape, None, frozenset())


@eqx.filter_jit
def _step(solver, residual, unknown, args, state):
    given = args, {}, state, frozenset()
    unknown, state, _ = solver.step(residual.with_aux, unknown, *given)
    given = args, {}, state, frozenset()
    done, result = solver.terminate(residual.with_aux, unknown, *given)
    return unknown, state, done, result


def _linearised(residual, unknown, args) -> tuple[float, NDArray]:
    """The cost, and the derivatives (k, n) of the residuals by all unknowns."""
    r, jacobian = _residuals_and_jacobian(residual, unknown, args)
    return float(r @ r) / 2, np.asarray(jacobian)


@eqx.filter_jit
def _residuals_and_jacobian(residual, unknown, args):
    flat, whole = ravel_pytree(unknown)
    r, slopes = jax.linearize(lambda flat: residual(whole(flat), args), flat)
    return r, jax.vmap(slopes, out_axes=-1)(jnp.eye(len(flat), dtype=flat.dtype))
