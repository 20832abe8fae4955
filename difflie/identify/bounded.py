"""Steps of values with bounds, which are at infinity in their free numbers x.

Residuals are nearer to linear in a value than in its x, the logarithm of its distance from the
bound. So a step d is one of the value, in units of that distance, and does not pass the bound:

    e^x <- (1 + d) e^x,    d >= -1.

In x a best value at the bound would be pursued for ever, and one that is far below its best would
overshoot.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np
from numpy.typing import NDArray

from .elimination import Linearised

# A step leaves this part of a value's distance from its bound, so that values which only a poor
# linear model sends there are not lost.
_LEFT = 0.1
# But a value goes to its bound where that changes the residuals by less than this part of their
# length, or of its own largest share in them: so near that this is the part.
_NEAR, _THERE = 1e-2, 1e-10


class Bounded(eqx.Module):
    """residual(unknown, args) whose first n unknowns are free numbers of values."""

    @abc.abstractmethod
    def bounded(self, args: Any) -> tuple[NDArray, NDArray]:
        """Whether the values near a bound as x goes to -infinity, and to infinity (n,)."""


@dataclasses.dataclass(frozen=True)
class Approach:
    """Where the bounds are.

    outward (n,): -1 or 1, in which direction of x the nearer bound is; 0 for numbers without one.
    ahead (n,): the limit of d in this direction; left (n,): the least part of the distance that a
    step leaves. size (N,): the lengths by which steps are damped.
    """

    outward: NDArray
    ahead: NDArray
    left: NDArray
    size: NDArray

    @staticmethod
    def of(
        residual: Callable, unknown: Any, args: Any, here: Linearised, lengths: NDArray
    ) -> Approach:
        """At the unknowns, of a residual linearised there; lengths (N,): the largest of columns.

        No number has a bound unless the residual is `Bounded`.
        """
        n = here.rest.shape[1] - 1
        outward = np.zeros(n)
        now = here.lengths[:n]
        if isinstance(residual, Bounded):
            x = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(unknown)])[:n]
            low, high = residual.bounded(args)
            outward = np.where(low & ((x < 0) | ~high), -1.0, np.where(high, 1.0, 0.0))
            outward = np.where(now > 0, outward, 0.0)
        size = np.where(lengths > 0, lengths, 1)
        # In the value's unit the lengths of columns hardly change.
        size[:n] = np.where(outward == 0, size[:n], now)
        part = np.maximum(np.sqrt(2 * here.cost), lengths[:n]) / np.where(now > 0, now, 1)
        near = _NEAR * part >= 1
        left = np.where(near, np.minimum(_THERE * part, 1), _LEFT)
        return Approach(outward, outward * np.where(near, 1, 1 - _LEFT), left, size)

    def shift(self, d: NDArray) -> NDArray:
        """How far the unknowns move (N,) in a step d (N,)."""
        at = np.flatnonzero(self.outward)
        outward, moved = self.outward[at], np.array(d)
        moved[at] = -outward * np.log(np.maximum(1 - outward * d[at], self.left[at]))
        return moved
