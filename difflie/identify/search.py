"""The search for the unknowns that minimise the residuals of problems, from a checked start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ..parameters import Parameters, SharedParameters
from ..system.validation import warn
from .bounded import Bounded
from .elimination import Windowed, Windows, compressed
from .few_rows import in_few_rows
from .levenberg_marquardt import LevenbergMarquardt
from .losses import Loss, Squares
from .minimiser import Improved, Minimiser, Outcome, Progress
from .of_machine import check_machines
from .problem import Problem
from .recordings import DataError


class Residual(Windowed, Bounded):
    """All residuals (k,), weighted by the loss, and those of the priors."""

    loss: Loss

    def __call__(self, unknown: tuple, args: tuple) -> jax.Array:
        (x, own), (parameters, problems) = unknown, args
        system = parameters.system_at(x)
        parts = [p.residual(system, o) for p, o in zip(problems, own, strict=True)]
        return jnp.concatenate([*(self.loss(r) for r in parts), parameters.residual(x)])

    def windows(self, args: tuple) -> tuple[Windows, ...]:
        """Those of each problem."""
        _, problems = args
        return tuple(_windows(problem) for problem in problems)

    def bounded(self, args: tuple) -> tuple[NDArray, NDArray]:
        """Those of the parameters."""
        return args[0].bounded


@eqx.filter_jit
def evaluated(residual: Callable, unknown: Any, args: Any) -> jax.Array:
    """residual(unknown, args) (k,)."""
    return residual(unknown, args)


def search(
    parameters: Parameters | SharedParameters,
    problems: tuple[Problem, ...],
    start: Any = None,
    own: Sequence[Any] | None = None,
    loss: Loss = Squares(),
    minimiser: Minimiser = LevenbergMarquardt(),
    progress: Progress | None = None,
    improved: Improved | None = None,
) -> tuple[jax.Array, Outcome]:
    """The x (n,) with which the search starts, and its outcome; arguments as of `fit`.

    Warns, where no start is given, of bodies that start at the nearest inertia which a rigid body
    can have. Raises DataError where nothing is free, where there are fewer measurements and priors
    than unknowns, and where the residuals at the start are not finite.
    """
    check_machines(parameters, problems)
    begin = _beginning(parameters, problems, start, own)
    few = in_few_rows(parameters, problems) if isinstance(loss, Squares) else problems
    residual, args = Residual(loss), (parameters, few)
    r, *_ = compressed(residual, begin, args)
    cost = float(r @ r) / 2
    if not np.isfinite(cost):
        raise DataError(
            "the residuals at the start are not finite: the simulated motion diverges, or the "
            "start is no machine; start nearer, use shorter windows, or fit the torques first"
        )

    def kept(unknown: tuple) -> None:
        if improved is not None:
            improved(np.asarray(unknown[0]), tuple(np.asarray(o) for o in unknown[1]))

    return begin[0], minimiser.minimised(residual, begin, args, cost, progress, kept)


def _windows(problem: Problem) -> Windows:
    unknowns, of = problem.own.size, problem.windows
    of = of if unknowns else np.zeros_like(of)
    count = int(of.max(initial=0)) + 1
    if unknowns % count:
        raise ValueError(
            f"{type(problem).__name__}: {unknowns} own unknowns are not equal parts for {count} "
            "windows"
        )
    return Windows(of, count, unknowns // count)


def _beginning(
    parameters: Parameters | SharedParameters,
    problems: tuple[Problem, ...],
    start: Any,
    own: Sequence[Any] | None,
) -> tuple[jax.Array, tuple[jax.Array, ...]]:
    """x and the unknowns of each problem with which a fit begins, checked."""
    x = jnp.asarray(parameters.start if start is None else start)
    if start is None and parameters.repaired:
        warn(
            f"{parameters.title}: no rigid body has the inertia of "
            f"{', '.join(parameters.repaired)}, and the fit starts at the nearest that one has "
            "(difflie.parameters.nearest_consistent); give `start` for another"
        )
    shapes = [p.own.shape for p in problems]
    own = [p.own for p in problems] if own is None else own
    states = tuple(jnp.asarray(o, x.dtype) for o in own)
    if [o.shape for o in states] != shapes:
        raise DataError(
            f"unknowns of the problems' own have the shapes {[o.shape for o in states]}; give "
            f"those of {shapes}"
        )
    unknowns = x.size + sum(o.size for o in states)
    if not unknowns:
        raise DataError(f"{parameters.title}: no free parameters; declare one that is not fixed")
    count = sum(int(np.sum(p.measured)) for p in problems)
    if count + parameters.residual(x).size < unknowns:
        raise DataError(
            f"{count} measurements are fewer than the {unknowns} unknowns to find; give more, or "
            "fix some"
        )
    return x, states
