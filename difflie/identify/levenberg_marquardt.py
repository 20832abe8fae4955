"""Levenberg-Marquardt with exact Jacobians, damped by column. Moré 1978."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from .bounded import Approach
from .elimination import Linearised
from .minimiser import Minimiser, Point

# The initial damping, in squares of the columns' lengths; the factor by which it changes, and
# between which ratios of actual and predicted reduction it does not. Poorer steps are not taken:
# those after a larger damping get further along curved valleys.
_FIRST = 0.1
_FACTOR = 10.0
_POOR, _GOOD = 0.25, 0.75
_LEAST = 1e-16


class LevenbergMarquardt(Minimiser):
    """For tens of parameters: few steps, each with the Jacobian (k, n).

        d = argmin |J d + r|^2 + lambda |D d|^2

    Each unknown is damped by the largest length D that its column of the Jacobian has had, so that
    units and sizes of unknowns do not matter. lambda falls wherever the linear model is good, so
    that near a minimum steps are Gauss-Newton steps. Moré 1978. Values with bounds are stepped
    instead of their free numbers, and settle at the bound where that is best (`bounded`). Unknowns
    of windows are eliminated (`elimination`).

    It has converged where a Gauss-Newton step would lower the cost by less than the relative
    tolerance (Bates and Watts 1981), and where both a step and what it takes off the cost are
    within the tolerance.
    """

    max_steps: int = eqx.field(static=True, default=100, kw_only=True)
    tolerance: float = eqx.field(static=True, default=1e-8, kw_only=True)
    patience: int = eqx.field(static=True, default=3, kw_only=True)

    def begin(self, residual: Callable, unknown: Any, args: Any) -> _State:
        linear = Linearised.of(residual, unknown, args)
        return _State(unknown, linear, linear.lengths, _FIRST, np.zeros(linear.lengths.size))

    def step(self, residual: Callable, state: _State, args: Any) -> tuple[Point, _State]:
        unknown, here, lengths, damping, last = state
        bounds = Approach.of(residual, unknown, args, here, lengths)
        d, predicted = here.minimum(np.sqrt(damping) * bounds.size, bounds.ahead)
        if not np.isfinite(d).all():
            failure = "derivatives of the residuals are not finite"
            return Point(unknown, here.cost, False, failure=failure), state
        part = _part(bounds.size * d, bounds.size * last)
        predicted *= part * (2 - part)
        d = part * d
        shift = bounds.shift(d)
        moved = _moved(unknown, shift)
        there = Linearised.of(residual, moved, args)
        lower = here.cost - there.cost
        ratio = lower / predicted if predicted > 0 else 0.0
        accepted = bool(ratio > _POOR)
        done = self._is_done(here, unknown, shift, bounds, lower if accepted else 0.0)
        if not accepted:
            damping *= _FACTOR
        elif ratio > _GOOD:
            damping = max(damping / _FACTOR, _LEAST)
        if accepted:
            unknown, here, lengths, last = moved, there, np.maximum(lengths, there.lengths), d
        point = Point(unknown, here.cost, accepted, done)
        return point, _State(unknown, here, lengths, damping, last)

    def _is_done(
        self, here: Linearised, unknown: Any, moved: NDArray, bounds: Approach, lower: float
    ) -> bool:
        """Whether the fit ends with a step that moves the unknowns (N,) and lowers the cost.

        lower: by how much, 0 if it is refused.
        """
        flat = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(unknown)])
        eps = float(np.finfo(flat.dtype).eps)
        least = max(self.tolerance, eps)
        shift = float(np.max(np.abs(moved) / (1 + np.abs(flat)), initial=0))
        if shift <= (least if lower > 0 else eps) and lower <= least * (1 + here.cost):
            return True
        if lower > least * here.cost:
            return False
        # Directions that the residuals do not determine are held.
        return here.minimum(_LEAST**0.5 * bounds.size, bounds.ahead)[1] <= least * here.cost


class _State(NamedTuple):
    """Unknowns, where they are linearised, and the largest lengths (N,) of columns.

    damping: lambda; last (N,): the step that led here, 0 at first.
    """

    unknown: Any
    linear: Linearised
    lengths: NDArray
    damping: float
    last: NDArray


def _part(d: NDArray, last: NDArray) -> float:
    """The part of a step d (N,) that leads to the limit of steps like this after the last (N,).

    Where residuals are large and curved, Gauss-Newton steps swing around the minimum, each back by
    one part of the one before. Aitken 1926.
    """
    length = float(last @ last)
    back = -float(d @ last) / length if length > 0 else 0.0
    return 1 / (1 + back) if back > 0 else 1.0


def _moved(unknown: Any, d: NDArray) -> Any:
    """The unknowns, a pytree of N numbers, plus d (N,)."""
    leaves, structure = jax.tree.flatten(unknown)
    ends = np.cumsum([np.size(leaf) for leaf in leaves])[:-1]
    parts = zip(leaves, np.split(d, ends), strict=True)
    # In NumPy, which compiles nothing.
    moved = [jnp.asarray(np.asarray(x) + p.reshape(x.shape), x.dtype) for x, p in parts]
    return structure.unflatten(moved)
