"""Levenberg-Marquardt with exact Jacobians (Marquardt 1963; More 1978).

Of J = Q R and z = Q^T r, n numbers each way, a step p makes

    |R p + z|^2 + damping |D p|^2

least, D being the largest lengths of J's columns so far, so that units do not matter. The damping
falls where the linear model foretells the cost well, and rises where it does not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jax.flatten_util import ravel_pytree
from numpy.typing import NDArray

from .jacobian import residuals_and_jacobian, triangle
from .minimiser import Minimiser, Point

# Near a minimum steps are those of Gauss and Newton: the damping falls wherever the model is good.
_FIRST, _GOOD, _BAD, _FACTOR = 0.1, 0.75, 0.25, 10.0


class LevenbergMarquardt(Minimiser):
    """For parameters by the dozen: few steps, each with the derivatives by all of them.

    It also ends where a step without damping would lower the cost by less than the relative
    tolerance (Bates and Watts 1981), and where a step changes no unknown by more than that.
    """

    max_steps: int = eqx.field(static=True, default=100, kw_only=True)
    tolerance: float = eqx.field(static=True, default=1e-8, kw_only=True)
    patience: int = eqx.field(static=True, default=3, kw_only=True)

    def begin(self, residual: Callable, unknown: Any, args: Any) -> Any:
        here = _linearised(residual, unknown, args)
        return here, np.linalg.norm(here.r, axis=0), _FIRST

    def step(self, residual: Callable, state: Any, args: Any) -> tuple[Point, Any]:
        here, lengths, damping = state
        flat, whole = ravel_pytree(here.unknown)
        p = _damped(here, lengths, damping)
        there = _linearised(residual, whole(flat + p), args)
        foretold = here.cost - here.foretold(p)
        gain = here.cost - there.cost
        accepted = bool(gain > 0)
        if not gain >= _BAD * foretold:
            damping *= _FACTOR
        elif gain > _GOOD * foretold:
            damping /= _FACTOR
        if accepted:
            here, lengths = there, np.maximum(lengths, np.linalg.norm(there.r, axis=0))
        tolerance = max(self.tolerance, 4 * np.finfo(p.dtype).eps)
        small = bool(np.all(np.abs(p) <= tolerance * (1 + np.abs(flat))))
        lost = small and not np.isfinite(there.cost)
        done = small or here.reducible(lengths) <= tolerance * here.cost
        failure = "no residuals near the best are finite" if lost else ""
        return Point(here.unknown, here.cost, accepted, done, failure), (here, lengths, damping)


class _Linearised(NamedTuple):
    """R (n, n) and z (n,) of a point with the least squares that are left beyond its tangents."""

    unknown: Any
    cost: float
    r: NDArray
    z: NDArray

    def foretold(self, p: NDArray) -> float:
        """The cost after a step, in the linear model."""
        change = self.r @ p + self.z
        return self.cost + float(change @ change - self.z @ self.z) / 2

    def reducible(self, lengths: NDArray) -> float:
        """By how much the cost falls in the minimum of the linear model."""
        u, s, _ = np.linalg.svd(self.r / np.where(lengths > 0, lengths, 1))
        seen = s > len(s) * np.finfo(s.dtype).eps * s.max(initial=0)
        return float(np.sum((u.T @ self.z)[seen] ** 2)) / 2


def _linearised(residual: Callable, unknown: Any, args: Any) -> _Linearised:
    r, jacobian = map(np.asarray, residuals_and_jacobian(residual, unknown, args))
    n = jacobian.shape[1]
    with np.errstate(over="ignore"):
        cost = float(r @ r) / 2
    if not (np.isfinite(cost) and np.isfinite(jacobian).all()):
        return _Linearised(unknown, np.inf, np.full((n, n), np.nan), np.full(n, np.nan))
    rows = triangle(np.column_stack((jacobian, r)))
    return _Linearised(unknown, cost, rows[:n, :n], rows[:n, n])


def _damped(here: _Linearised, lengths: NDArray, damping: float) -> NDArray:
    """The step p (n,)."""
    weights = np.where(lengths > 0, lengths, 1) * np.sqrt(damping).astype(lengths.dtype)
    rows = np.concatenate((here.r, np.diag(weights)))
    return np.linalg.lstsq(rows, -np.concatenate((here.z, 0 * here.z)), rcond=None)[0]
