"""The search for the unknowns that minimise the residuals of problems, from a checked start.

With squares as the loss, the torque errors of any number of samples have the sum of squares of a
triangle (`LinearTorques`), however the numbers of bodies and joints depend on what is free. A step
of a fit then takes milliseconds.

Where the search has ended, derivatives by the free x become those by the physical values.
"""

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
from .elimination import Windowed, Windows, compressed, residuals_and_jacobian, triangle
from .inverse_dynamics import InverseDynamics
from .least_squares import Bounded, Improved, LevenbergMarquardt, Minimiser, Outcome, Progress
from .losses import Loss, Squares
from .problem import Problem, check_machines
from .recordings import DataError, refuse
from .torque_rows import JOINTS, LinearTorques, torque_rows

# With fewer free numbers the columns take longer to compile than they save.
_MANY = 30
_BODIES = "mass", "com", "inertia"


def in_few_rows(parameters: Any, problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
    """The problems, with errors of torques as triangles where that is possible and worth it."""
    torques = any(isinstance(p, InverseDynamics) for p in problems)
    if not (isinstance(parameters, Parameters) and torques) or parameters.start.size < _MANY:
        return problems
    joints = _joints_moved(parameters)
    if joints is None:
        return problems
    system = parameters.system_at(parameters.start)
    return tuple(_few(p, system, joints) if isinstance(p, InverseDynamics) else p for p in problems)


def _few(problem: InverseDynamics, system: Any, joints: tuple[str, ...]) -> LinearTorques:
    w, y = (np.asarray(x) for x in torque_rows(problem, system, joints))
    r = triangle(np.column_stack((w.reshape(y.size, -1), y.ravel())))
    return LinearTorques(
        jnp.asarray(r[:, :-1]), jnp.asarray(r[:, -1]), jnp.ones(len(r), bool), joints
    )


def _joints_moved(parameters: Parameters) -> tuple[str, ...] | None:
    """Which of the joints' linear numbers a fit moves; None where it moves others as well.

    Found by moving all free numbers: what then stays does not depend on them.
    """
    start = parameters.start
    elsewhere = start + 0.1 + 0.05 * jnp.cos(jnp.arange(start.size))
    before, after = (
        jax.tree_util.tree_flatten_with_path(parameters.system_at(x))[0] for x in (start, elsewhere)
    )
    linear = {f".bodies.{leaf}" for leaf in _BODIES} | {f".joints.{leaf}" for leaf in JOINTS}
    moved = {
        jax.tree_util.keystr(path)
        for (path, one), (_, other) in zip(before, after, strict=True)
        if not np.array_equal(np.asarray(one), np.asarray(other), equal_nan=True)
    }
    if not moved <= linear:
        return None
    return tuple(leaf for leaf in JOINTS if f".joints.{leaf}" in moved)


def by_values(jacobian: NDArray, slopes: NDArray) -> NDArray:
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


class _OfValues(eqx.Module):
    """All residuals (k,), those of the parameters' priors left out, of some of the values."""

    at: jax.Array

    def __call__(self, part: jax.Array, args: tuple) -> jax.Array:
        parameters, problems, values, own = args
        system = parameters.with_values(values.at[self.at].set(part))
        return jnp.concatenate([p.residual(system, o) for p, o in zip(problems, own, strict=True)])


def at_values(
    parameters: Parameters | SharedParameters,
    problems: tuple[Problem, ...],
    values: NDArray,
    own: tuple[jax.Array, ...],
    at: NDArray,
) -> NDArray:
    """The derivatives (k, len(at)) of all residuals by some of the values (p,), at the bounds too.

    Of the parameters' own priors they are zero: at a bound these tell nothing.
    """
    all_values = jnp.asarray(values)
    args = parameters, problems, all_values, own
    found = residuals_and_jacobian(_OfValues(jnp.asarray(at)), all_values[at], args)[1]
    return np.pad(np.asarray(found), ((0, len(parameters.prior_names)), (0, 0)))


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
        return tuple(_windows(problem) for problem in args[1])

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
    given, unknowns = [o.shape for o in states], x.size + sum(o.size for o in states)
    count = sum(int(np.sum(p.measured)) for p in problems)
    refuse(
        parameters.title,
        (
            given != shapes,
            f"unknowns of the problems' own have the shapes {given}; give those of {shapes}",
        ),
        (not unknowns, "no free parameters; declare one that is not fixed"),
        (
            count + parameters.residual(x).size < unknowns,
            f"{count} measurements are fewer than the {unknowns} unknowns to find; give more, or "
            "fix some",
        ),
    )
    return x, states
