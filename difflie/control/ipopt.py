"""Ipopt (Wächter and Biegler 2006), of a transcription, by the extra `ipopt`.

It gets exact derivatives, as blocks of sparse matrices. It is the referee of the other solvers, and
the choice for odd problems: its filter and its restoration of feasibility find a way where they do
not.
"""

from __future__ import annotations

import time
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..system.installation import extra
from .bounded_vector import Entries
from .conditions import kkt_of
from .discretization import Discretization, Motion
from .linear_quadratic import LinearQuadratic, with_bounds
from .model import Model, model_of
from .nonlinear_program import Program, constraints, curvatures, slopes, values
from .penalty import Bounds
from .plan import Plan
from .result import Result, Status
from .riccati import riccati
from .solver import Progress, Solver, bound_box, made_plan, tolerance_of
from .transcription import Shooting, Transcription

# Ipopt's own codes; all others say that it found no way.
_ENDINGS = {
    0: Status.CONVERGED,
    -1: Status.OUT_OF_ITERATIONS,
    -4: Status.OUT_OF_TIME,
    -5: Status.OUT_OF_TIME,
    -13: Status.NOT_FINITE,
}


class Ipopt(Solver):
    """Ipopt, of a transcription of the problem; needs the extra `ipopt`.

    options: Ipopt's own, such as {"mu_strategy": "adaptive"}; they come before what is set here.
    transcription: `Shooting`, the steps of the problem's method, or a collocation, `Trapezoidal` or
    `HermiteSimpson`. iterations: the most; tolerance: of the KKT conditions, relative as Ipopt has
    it, None for the root of the rounding. Of a plan that is a guess the motion is used.

    It is no compiled loop: under jax.jit and jax.vmap it raises TypeError; jax.grad outside of them
    has the derivative of its solution. Raises ModuleNotFoundError where ipyopt is not installed.
    """

    options: tuple[tuple[str, Any], ...] = eqx.field(
        static=True, default=(), converter=lambda o: tuple(dict(o).items())
    )
    transcription: Transcription = Shooting()
    iterations: int = eqx.field(static=True, default=500)
    tolerance: float | None = eqx.field(static=True, default=None)

    def solve(
        self,
        knots: Discretization,
        motion: Motion,
        multipliers: tuple[jax.Array, jax.Array] | None,
        progress: Progress | None,
        seconds: float | None,
    ) -> Plan:
        if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((knots, motion))):
            raise TypeError(
                "Ipopt is no compiled program and cannot run under jax.jit, jax.vmap or second "
                "derivatives; call solve plainly, or take InteriorPoint()"
            )
        self.transcription.check(knots)
        dtype = motion.u.dtype
        result = Result.start(self.iterations, tolerance_of(self.tolerance, dtype), dtype)
        search = _Search(Program(knots, self.transcription, motion), progress, seconds)
        options = {
            "print_level": 0,
            "sb": "yes",
            "tol": float(result.tolerance),
            "acceptable_iter": 0,
            "bound_relax_factor": 0.0,
            # What the cost can be off by is the sum of these.
            "compl_inf_tol": float(result.tolerance) / (1 + search.y.size + search.X.size),
            "max_iter": self.iterations,
            **dict(self.options),
        }
        status = search.run(options)
        return _plan(search, status, result)


class _Search:
    """One run: what Ipopt calls in it, and the last X (n,), with multipliers y (m,), y_X (n,)."""

    def __init__(self, program: Program, progress: Progress | None, seconds: float | None) -> None:
        self.program, self.progress, self.seconds = program, progress, seconds
        self.pattern = program.pattern()
        self.began, self.stopped = time.monotonic(), None
        self.costs: list[float] = []
        self.X = np.zeros(program.size)
        self.y_X = np.zeros(program.size)
        self.y = np.zeros(program.constraint_bounds()[0].size)

    def run(self, options: dict[str, Any]) -> Status:
        ipyopt, rows = _ipyopt(), self.pattern.rows
        problem = ipyopt.Problem(
            self.program.size,
            *map(_finite, self.program.variable_bounds()),
            rows.size,
            *(_finite(bound[rows]) for bound in self.program.constraint_bounds()),
            self.pattern.jacobian,
            self.pattern.hessian,
            self._cost,
            self._gradient,
            self._constraints,
            self._jacobian,
            self._hessian,
            self._iterated,
            ipopt_options=options,
        )
        X, y = self.X.copy(), np.zeros(rows.size)
        below, above = np.zeros_like(X), np.zeros_like(X)
        try:
            *_, code = problem.solve(X, mult_g=y, mult_x_L=below, mult_x_U=above)
        except KeyboardInterrupt:
            return Status.INTERRUPTED
        self.X, self.y_X = X, above - below
        self.y[rows] = y
        return self.stopped or _ENDINGS.get(code, Status.NO_PROGRESS)

    def _cost(self, X: np.ndarray) -> float:
        v = values(self.program, jnp.asarray(X))
        return float(jnp.sum(v.cost) + v.end_cost)

    def _gradient(self, X: np.ndarray, out: np.ndarray) -> None:
        self.X = X.copy()
        s = slopes(self.program, jnp.asarray(X))
        out[:] = self.program.gathered(s.cost, s.end_cost)

    def _constraints(self, X: np.ndarray, out: np.ndarray) -> None:
        out[:] = constraints(values(self.program, jnp.asarray(X)))[self.pattern.rows]

    def _jacobian(self, X: np.ndarray, out: np.ndarray) -> None:
        blocks = constraints(slopes(self.program, jnp.asarray(X)))
        out[:] = blocks[self.pattern.of_jacobian]

    def _hessian(self, X: np.ndarray, y: np.ndarray, factor: float, out: np.ndarray) -> None:
        every = np.zeros_like(self.y)
        every[self.pattern.rows] = y
        weights = self.program.weights(factor, every)
        blocks = curvatures(self.program, jnp.asarray(X), weights)
        out[:] = np.concatenate([np.ravel(b) for b in blocks])[self.pattern.of_hessian]

    def _iterated(self, mode: int, count: int, cost: float, *_: Any) -> bool:
        try:
            self.costs.append(cost)
            if self.progress is not None:
                self.progress(count, cost)
        except KeyboardInterrupt:
            self.stopped = Status.INTERRUPTED
        if self.seconds is not None and time.monotonic() - self.began > self.seconds:
            self.stopped = Status.OUT_OF_TIME
        return self.stopped is None


def _plan(search: _Search, status: Status, start: Result) -> Plan:
    """The plan at the end of a search."""
    program, knots = search.program, search.program.knots
    X, weights = jnp.asarray(search.X, program.motion.u.dtype), program.weights(1.0, search.y)
    v, motion, bounds = values(program, X), program.moved(X), Bounds.of(knots)
    made = _model(knots, motion)
    # A collocation has costs and gaps of its own.
    model = made._replace(gap=v.gaps, along=made.along._replace(cost=v.cost))
    left = program.lagrangian(slopes(program, X), weights)
    box = jnp.asarray(search.y_X, X.dtype)
    after = jnp.asarray(program.gathered(*left), X.dtype) + box
    y = Entries(weights.bounded, weights.end_bounded, *program.controls(box))
    lq, gains, products = _gains(knots, motion, model, y, start.tolerance)
    stationarity, pull = program.controls(after)
    kkt = kkt_of(lq, model, bounds, stationarity, pull, products)
    costs = np.full(start.costs.size, np.nan)
    costs[: len(search.costs)] = search.costs[: costs.size]
    result = Result(
        jnp.asarray(int(status), jnp.int32),
        jnp.asarray(max(len(search.costs) - 1, 0), jnp.int32),
        kkt,
        jnp.asarray(costs, X.dtype),
        start.tolerance,
    )
    if status == Status.CONVERGED:
        limits = Entries.bounds(knots, bounds)
        motion, y = Entries.values(model, motion).settled(motion, y, limits, model.cost)
    costates = jnp.concatenate((left[0][:1, : knots.nx], weights.gaps))
    multipliers = y.along, y.end
    return made_plan(knots, motion, model.cost, v.gaps, gains, costates, multipliers, result)


@eqx.filter_jit
def _gains(
    knots: Discretization, motion: Motion, model: Model, y: Entries, tolerance: jax.Array
) -> tuple[LinearQuadratic, jax.Array, jax.Array]:
    """The problem about a solution, its feedback (N, nu, nx), zero where one sweep finds none.

    Also the multipliers times the distances. Bounds with multipliers are as stiff as a barrier.
    """
    values = Entries.values(model, motion)
    a, b = (part.flat for part in Entries.bounds(knots, Bounds.of(knots)))
    distance = jnp.where(y.flat > 0, b - values.flat, values.flat - a)
    stiff = y.like(jnp.abs(y.flat) / jnp.maximum(distance, tolerance))
    lq = with_bounds(model, knots.nz, (y.along, stiff.along), (y.end, stiff.end))
    sweep = riccati(lq, bound_box(knots, motion), jnp.zeros((), motion.u.dtype))
    products = jnp.where(y.flat == 0, 0.0, y.flat * distance)
    return lq, jnp.where(sweep.fine, sweep.K, 0.0), products[None]


_model = eqx.filter_jit(model_of)


def _finite(bound: np.ndarray) -> np.ndarray:
    """Bounds as Ipopt has them, where 1e20 is infinite."""
    return np.clip(bound.astype(float), -1e20, 1e20)


def _ipyopt() -> Any:
    try:
        import ipyopt
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            f"control: Ipopt is called by ipyopt, which is not installed; {extra('ipopt')}"
        ) from None
    return ipyopt
