"""Nonlinear least squares, step by step: Levenberg-Marquardt within bounds, first-order descent.

Levenberg-Marquardt (Moré 1978) has exact Jacobians and is damped by column; `Descent` takes any
optimiser of optax.

Values with bounds have these at infinity in their free numbers x. Residuals are nearer to linear in
a value than in its x, the logarithm of its distance from the bound. So a step d is one of the
value, in units of that distance, and does not pass the bound:

    e^x <- (1 + d) e^x,    d >= -1.

In x a best value at the bound would be pursued for ever, and one that is far below its best would
overshoot.
"""

from __future__ import annotations

import abc
import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

from ..io.interrupt_guard import unhurried
from .elimination import Linearised

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
    within the tolerance. It ends after max_steps, or when `patience` successive steps have each
    lowered the cost by less than the tolerance.
    """

    max_steps: int = eqx.field(static=True, default=100, kw_only=True)
    tolerance: float = eqx.field(static=True, default=1e-8, kw_only=True)
    patience: int = eqx.field(static=True, default=3, kw_only=True)

    def begin(self, residual: Callable[..., Any], unknown: Any, args: Any) -> _State:
        linear = Linearised.of(residual, unknown, args)
        return _State(unknown, linear, linear.lengths, _FIRST, np.zeros(linear.lengths.size))

    def step(self, residual: Callable[..., Any], state: _State, args: Any) -> tuple[Point, _State]:
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


class Descent(Minimiser):
    """For thousands of unknowns: many steps, each with one gradient in reverse mode.

    optimiser: such as optax.adam(1e-2) or optax.lbfgs(); it steps in the free numbers x (n,), which
    are logarithms for positive values, so that learning rates have no unit. It ends after
    max_steps, or when `patience` successive steps have each lowered the cost by less than the
    relative tolerance. Slow for strongly correlated parameters: use `LevenbergMarquardt` for these.
    """

    optimiser: optax.GradientTransformation = eqx.field(static=True)
    max_steps: int = eqx.field(static=True, default=1000, kw_only=True)
    tolerance: float = eqx.field(static=True, default=1e-6, kw_only=True)
    patience: int = eqx.field(static=True, default=50, kw_only=True)

    def begin(self, residual: Callable[..., Any], unknown: Any, args: Any) -> Any:
        return unknown, self.optimiser.init(unknown)

    def step(self, residual: Callable[..., Any], state: Any, args: Any) -> tuple[Point, Any]:
        cost, following = _stepped(self, residual, state, args)
        return Point(state[0], float(cost), True), following


@eqx.filter_jit
def _stepped(method, residual, state, args):
    unknown, inner = state

    def half_square(unknown):
        return jnp.sum(residual(unknown, args) ** 2) / 2

    cost, slope = jax.value_and_grad(half_square)(unknown)
    update, inner = optax.with_extra_args_support(method.optimiser).update(
        slope, inner, unknown, value=cost, grad=slope, value_fn=half_square
    )
    return cost, (optax.apply_updates(unknown, update), inner)
