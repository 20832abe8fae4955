"""How the solution of a control problem ended."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import DTypeLike


class Status(enum.IntEnum):
    """How a search ended.

    CONVERGED: the conditions of an optimum hold to the tolerance. OUT_OF_ITERATIONS: they do not
    after the most that were allowed. NO_PROGRESS: no step improves the plan. NOT_FINITE: a cost, a
    state or a derivative is not finite. OUT_OF_TIME, INTERRUPTED: by `seconds`, by Ctrl-C. RUNNING:
    not finished.
    """

    RUNNING = 0
    CONVERGED = 1
    OUT_OF_ITERATIONS = 2
    NO_PROGRESS = 3
    NOT_FINITE = 4
    OUT_OF_TIME = 5
    INTERRUPTED = 6


class KKT(NamedTuple):
    """What is left of the conditions of an optimum, each the largest entry ().

    stationarity (): the derivative of the Lagrangian by the controls, relative to the costs' own,
    without unit. gap (): of the steps, in the units of the tangent space.
    violation (): of bounds, in the units of what they bound. complementarity (): multiplier times
    distance to the bound. stationarity_knot, gap_knot, violation_knot (): where the first three are
    largest.
    """

    stationarity: jax.Array
    gap: jax.Array
    violation: jax.Array
    complementarity: jax.Array
    stationarity_knot: jax.Array
    gap_knot: jax.Array
    violation_knot: jax.Array

    def stationary(self, tolerance: jax.Array) -> jax.Array:
        """Whether only bounds are left ()."""
        return (self.stationarity <= tolerance) & (self.gap <= tolerance)


class Result(eqx.Module):
    """The end of a search: status (), iterations (), kkt; costs (m,): at every iteration, then NaN.

    status: a `Status`. tolerance (): of all conditions but complementarity, in their units.
    """

    status: jax.Array
    iterations: jax.Array
    kkt: KKT
    costs: jax.Array
    tolerance: jax.Array

    @staticmethod
    def start(iterations: int, tolerance: float, dtype: DTypeLike) -> Result:
        """The result before the first iteration."""
        zero, nothing = jnp.zeros((), dtype), jnp.zeros((), jnp.int32)
        costs = jnp.full(iterations + 1, jnp.nan, dtype)
        kkt = KKT(*4 * (zero,), *3 * (nothing,))
        return Result(nothing, nothing, kkt, costs, jnp.asarray(tolerance, dtype))

    def after(self, cost: jax.Array, kkt: KKT, done: jax.Array, finite: jax.Array) -> Result:
        """The result at the beginning of another iteration, which is not made if it is done."""
        code = lambda status: jnp.asarray(int(status), jnp.int32)  # noqa: E731
        last = self.iterations >= self.costs.shape[0] - 1
        status = jnp.where(last, code(Status.OUT_OF_ITERATIONS), code(Status.RUNNING))
        status = jnp.where(done, code(Status.CONVERGED), status)
        status = jnp.where(finite, status, code(Status.NOT_FINITE))
        costs = self.costs.at[self.iterations].set(cost)
        count = self.iterations + jnp.where(status == Status.RUNNING, 1, 0).astype(jnp.int32)
        return Result(status, count, kkt, costs, self.tolerance)

    def stuck(self, is_stuck: jax.Array) -> Result:
        """The result of a search that makes no more progress, if so."""
        code = jnp.asarray(int(Status.NO_PROGRESS), jnp.int32)
        status = jnp.where(is_stuck, code, self.status)
        return Result(status, self.iterations, self.kkt, self.costs, self.tolerance)

    @property
    def converged(self) -> jax.Array:
        """Whether the status () is CONVERGED."""
        return self.status == Status.CONVERGED

    @property
    def nearly_optimal(self) -> jax.Array:
        """Whether the conditions of an optimum hold to 100 times the tolerance ()."""
        most = _NEARLY * self.tolerance
        return self.kkt.stationary(most) & (self.kkt.violation <= most)

    def __repr__(self) -> str:
        if not isinstance(self.status, jax.Array | np.ndarray):
            return super().__repr__()  # of a mask
        if isinstance(self.status, Tracer) or np.ndim(self.status):
            return "a result under a transformation, or a batch of them"
        return "; ".join([self.ending, *self._advice()])

    @property
    def ending(self) -> str:
        """How the search ended, and what is left; of concrete results."""
        status, kkt, tolerance = Status(int(self.status)), self.kkt, float(self.tolerance)
        if status == Status.CONVERGED:
            return f"converged after {int(self.iterations)} iterations"
        ending = _WORDS[status].format(iterations=int(self.iterations))
        left = [
            f"{words} is {float(value):.3g} at knot {int(knot)}"
            for words, value, knot in (
                ("the derivative by the controls", kkt.stationarity, kkt.stationarity_knot),
                ("the gap of a step", kkt.gap, kkt.gap_knot),
                ("the violation of a bound", kkt.violation, kkt.violation_knot),
            )
            if not float(value) <= tolerance
        ]
        return f"{ending}: {', '.join(left) or 'no condition is left'} ({tolerance:.3g} is allowed)"

    def _advice(self) -> Iterator[str]:
        """What to think of a search that has not converged, and what to try."""
        status = Status(int(self.status))
        if status in _ADVICE and bool(self.nearly_optimal):
            yield f"the plan is nearly optimal, within {_NEARLY} times of that"
        if status in _ADVICE:
            yield _ADVICE[status].format(iterations=2 * max(int(self.iterations), 1))


_WORDS = {
    Status.RUNNING: "not finished after {iterations} iterations",
    Status.OUT_OF_ITERATIONS: "out of iterations after {iterations}",
    Status.NO_PROGRESS: "no step makes progress after {iterations} iterations",
    Status.NOT_FINITE: "not finite after {iterations} iterations",
    Status.OUT_OF_TIME: "out of time after {iterations} iterations",
    Status.INTERRUPTED: "interrupted after {iterations} iterations",
}


# Times the tolerance.
_NEARLY = 100
_TOLERANCE = "or a larger tolerance=... if this is near enough"
_ADVICE = {
    Status.OUT_OF_ITERATIONS: (
        f"try more, iterations={{iterations}} of the solver, another guess, {_TOLERANCE}"
    ),
    Status.NO_PROGRESS: f"try another guess, {_TOLERANCE}",
    Status.NOT_FINITE: "try another guess, or a smaller dt",
    Status.OUT_OF_TIME: f"try more seconds, the plan as the guess, {_TOLERANCE}",
    Status.INTERRUPTED: "solve(problem, guess=plan) goes on from there",
}


def largest(a: Any) -> tuple[jax.Array, jax.Array]:
    """The largest size () in an array (N, m), and its row (); zeros without entries."""
    if not a.size:
        return jnp.zeros((), a.dtype), jnp.zeros((), jnp.int32)
    rows = jnp.max(jnp.abs(a.reshape(a.shape[0], -1)), axis=1)
    rows = jnp.where(jnp.isnan(rows), jnp.inf, rows)
    return jnp.max(rows), jnp.argmax(rows).astype(jnp.int32)
