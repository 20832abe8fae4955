"""Levenberg-Marquardt with exact Jacobians, damped by column. Moré 1978."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

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
    that near a minimum steps are Gauss-Newton steps. Moré 1978. Unknowns of windows are eliminated
    (`elimination`).

    It has converged where a Gauss-Newton step would lower the cost by less than the relative
    tolerance (Bates and Watts 1981), and where both a step and what it takes off the cost are
    within the tolerance.
    """

    max_steps: int = eqx.field(static=True, default=100, kw_only=True)
    tolerance: float = eqx.field(static=True, default=1e-8, kw_only=True)
    patience: int = eqx.field(static=True, default=3, kw_only=True)

    def begin(self, residual: Callable, unknown: Any, args: Any) -> _State:
        linear = Linearised.of(residual, unknown, args)
        return _State(unknown, linear, linear.lengths, _FIRST)

    def step(self, residual: Callable, state: _State, args: Any) -> tuple[Point, _State]:
        unknown, here, lengths, damping = state
        size = np.where(lengths > 0, lengths, 1)
        d, predicted = here.minimum(np.sqrt(damping) * size)
        if not np.isfinite(d).all():
            failure = "derivatives of the residuals are not finite"
            return Point(unknown, here.cost, False, failure=failure), state
        moved = _moved(unknown, d)
        there = Linearised.of(residual, moved, args)
        lower = here.cost - there.cost
        ratio = lower / predicted if predicted > 0 else 0.0
        accepted = bool(ratio > _POOR)
        done = self._is_done(here, unknown, d, size, lower if accepted else 0.0)
        if not accepted:
            damping *= _FACTOR
        elif ratio > _GOOD:
            damping = max(damping / _FACTOR, _LEAST)
        if accepted:
            unknown, here, lengths = moved, there, np.maximum(lengths, there.lengths)
        point = Point(unknown, here.cost, accepted, done)
        return point, _State(unknown, here, lengths, damping)

    def _is_done(
        self, here: Linearised, unknown: Any, d: NDArray, size: NDArray, lower: float
    ) -> bool:
        """Whether the fit ends with a step d (N,) that takes `lower` off the cost, 0 if refused."""
        flat = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(unknown)])
        eps = float(np.finfo(flat.dtype).eps)
        least = max(self.tolerance, eps)
        shift = float(np.max(np.abs(d) / (1 + np.abs(flat)), initial=0))
        if shift <= (least if lower > 0 else eps) and lower <= least * (1 + here.cost):
            return True
        if lower > least * here.cost:
            return False
        # Directions that the residuals do not determine are held.
        return here.minimum(_LEAST**0.5 * size)[1] <= least * here.cost


class _State(NamedTuple):
    """Unknowns, where they are linearised, the largest lengths (N,) of columns, and lambda."""

    unknown: Any
    linear: Linearised
    lengths: NDArray
    damping: float


def _moved(unknown: Any, d: NDArray) -> Any:
    """The unknowns, a pytree of N numbers, plus d (N,)."""
    leaves, structure = jax.tree.flatten(unknown)
    ends = np.cumsum([np.size(leaf) for leaf in leaves])[:-1]
    parts = zip(leaves, np.split(d, ends), strict=True)
    # In NumPy, which compiles nothing.
    moved = [jnp.asarray(np.asarray(x) + p.reshape(x.shape), x.dtype) for x, p in parts]
    return structure.unflatten(moved)
