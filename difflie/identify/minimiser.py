"""The minimiser protocol: least squares, step by step."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from numpy.typing import NDArray

from ..io.unbroken import unhurried

Progress = Callable[[int, float], None]
Improved = Callable[[NDArray, tuple[NDArray, ...]], None]
_COARSEST = 1e-2
# So many steps in a row that lower nothing, each shorter than the one before, end below the
# rounding of the unknowns: they are at a minimum.
_SHORTEST = 30


class Point(NamedTuple):
    """The result of a step: unknowns, their cost, and whether they are new.

    done: whether the method has converged; failure: why it cannot go on, or "".
    """

    unknown: Any
    cost: float
    accepted: bool
    done: bool = False
    failure: str = ""


class Outcome(NamedTuple):
    """The best unknowns, the number of steps, whether it converged, and a sentence."""

    unknown: Any
    steps: int
    converged: bool
    message: str


class Minimiser(eqx.Module):
    """A method that minimises half the sum of squares of residual(unknown, args).

    It ends after max_steps, or when `patience` successive steps have each lowered the cost by less
    than the relative tolerance: a value whose optimum is on its bound, at infinity in the unknowns,
    would otherwise be pursued for ever. It ends, too, where no step lowers the cost, however short.
    """

    max_steps: eqx.AbstractVar[int]
    tolerance: eqx.AbstractVar[float]
    patience: eqx.AbstractVar[int]

    def __check_init__(self) -> None:
        if not 0 < self.tolerance <= _COARSEST:
            raise ValueError(
                f"{type(self).__name__}: the tolerance is {self.tolerance}; it must be positive "
                f"and at most {_COARSEST}, of the cost"
            )
        for name in ("max_steps", "patience"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"{type(self).__name__}: {name} is {getattr(self, name)}; it must be 1 or more"
                )

    @abc.abstractmethod
    def begin(self, residual: Callable, unknown: Any, args: Any) -> Any:
        """The state of the method before its first step."""

    @abc.abstractmethod
    def step(self, residual: Callable, state: Any, args: Any) -> tuple[Point, Any]:
        """A point whose cost is known, and the next state."""

    def minimised(
        self,
        residual: Callable,
        unknown: Any,
        args: Any,
        cost: float,
        progress: Progress | None = None,
        improved: Callable[[Any], None] | None = None,
    ) -> Outcome:
        """The best unknowns, from a start with this cost; Ctrl-C keeps the best so far.

        improved(unknowns) is called with each best, before progress(step, cost).
        """
        # The first point may be the start itself.
        best, k, level, refused = unknown, 0, -1, 0
        steps = contextlib.ExitStack()
        try:
            state = self.begin(residual, unknown, args)
            for k in range(1, self.max_steps + 1):
                point, state = self.step(residual, state, args)
                if k == 1:  # the first step compiles, and there is nothing to keep before
                    steps.enter_context(unhurried())
                refused = 0 if point.accepted else refused + 1
                if point.accepted:
                    level = level + 1 if not point.cost < cost * (1 - self.tolerance) else 0
                    if np.isfinite(point.cost) and point.cost <= cost:
                        best, cost = point.unknown, point.cost
                        if improved is not None:
                            improved(best)
                if progress is not None:
                    progress(k, cost)
                if point.accepted and not np.isfinite(point.cost):
                    message = f"stopped after {k} steps: the cost is not finite; take smaller steps"
                    return Outcome(best, k, False, message)
                if point.failure:
                    return Outcome(best, k, False, f"stopped after {k} steps: {point.failure}")
                if point.done or level == self.patience or refused == _SHORTEST:
                    return Outcome(best, k, True, f"converged after {k} steps")
        except KeyboardInterrupt:
            message = f"interrupted after {k} steps; the best so far is kept"
            return Outcome(best, k, False, message)
        finally:
            steps.close()
        return Outcome(best, k, False, f"not converged after {k} steps; start there again for more")
