"""A primal-dual interior point method on the horizon: bounds of all kinds, without active sets.

Points and controls are unknowns, with gaps between the steps as in `fddp.py`. Bounds have slacks
and a barrier; what these add to the costs is a diagonal, so one Riccati sweep solves for all of a
step (Rao, Wright, Rawlings 1998). The step ends short of every bound, and where cost, barrier, gaps
and residuals fall, each of these weighted by its own multiplier (Powell 1978; Nocedal and Wright
2006, 19.4): without a weight they would grow for a lower cost. The barrier is lowered whenever a
step no longer promises more than it costs (Fiacco and McCormick 1968), in the end faster than
linearly.

The barrier (Nocedal and Wright 2006, 19.3): an entry c >= a has a distance t > 0, with c - a - t ->
0, and a multiplier z > 0, with z t -> mu. A step dc of the entry changes t by dt = dc + r, r = c -
a - t, and z to (mu - z dt) / t. Once these are eliminated, dc costs

    first . dc + second dc^2 / 2,    first = -(mu - z r) / t,    second = z / t,

and likewise at upper bounds. An equality c = a has a multiplier y and a large weight w instead,
first = y + w (c - a), second = w, and a step changes y by w (dc + c - a), see Friedlander and Orban
2012.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .bounded_vector import Entries
from .conditions import kkt_of
from .discretization import Discretization, Motion
from .linear_quadratic import (
    LinearQuadratic,
    Sweep,
    costates,
    linear_rollout,
    with_bounds,
    with_exact_hessian,
)
from .model import Model, model_of
from .penalty import Bounds
from .plan import Plan
from .result import Result, Status
from .riccati import riccati
from .solver import IteratedSolver, made_plan, tolerance_of

# How much of the way to a bound a step may take.
_MOST = 0.995
# The distances of c from its lower and from its upper bound are _SIGN (c - bound).
_SIGN = np.array([[1], [-1]])


def inside(
    c: Float[Array, " M"], a: Float[Array, " M"], b: Float[Array, " M"], off: float
) -> Float[Array, " M"]:
    """The values nearest to c that are off the bounds, relative to these or to what is between."""
    least = off * jnp.minimum(b - a, 1 + jnp.minimum(jnp.abs(a), jnp.abs(b)))
    least = jnp.where(jnp.isfinite(least), least, 0.0)
    return jnp.clip(c, a + least, b - least)


class Barrier(NamedTuple):
    """Distances t and multipliers z of lower and upper bounds, and the bounds, all (2, M); y (M,).

    y: the multipliers of equalities, zero elsewhere; t is infinite where there is no inequality.
    """

    t: jax.Array
    z: jax.Array
    y: jax.Array
    bounds: jax.Array

    @staticmethod
    def start(
        c: Float[Array, " M"], y: Float[Array, " M"], a: Float[Array, " M"], b: Float[Array, " M"]
    ) -> Barrier:
        """The distances of c from the bounds a, b, between which it is; y: the multipliers."""
        bounds = jnp.stack((a, b))
        is_open = jnp.isfinite(bounds) & (a != b)
        t = jnp.where(is_open, _SIGN * (c - bounds), jnp.inf)
        z = jnp.where(is_open, jnp.maximum(-_SIGN * y, 0), 0.0)
        return Barrier(t, z, jnp.where(a == b, y, 0.0), bounds)

    @property
    def is_equality(self) -> jax.Array:
        return self.bounds[0] == self.bounds[1]

    @property
    def is_open(self) -> jax.Array:
        """Which bounds (2, M) are inequalities."""
        return jnp.isfinite(self.t)

    @property
    def multipliers(self) -> jax.Array:
        """Of the entries (M,), positive at upper bounds."""
        return self.y + self.z[1] - self.z[0]

    @property
    def count(self) -> jax.Array:
        """The number () of inequalities, at least 1."""
        return jnp.maximum(jnp.sum(self.is_open), 1).astype(self.t.dtype)

    @property
    def products(self) -> jax.Array:
        """Multipliers times distances (2, M)."""
        return jnp.where(self.is_open, self.z * self.t, 0.0)

    def centred(self, mu: jax.Array) -> Barrier:
        """The same with multipliers of at least mu over the distance."""
        return self._replace(z=jnp.maximum(self.z, mu / self.t))

    def residual(self, c: jax.Array) -> jax.Array:
        """The distances that c (M,) has, less t (2, M); for equalities c - a, once."""
        first = jnp.arange(2)[:, None] == 0
        equal = jnp.where(self.is_equality & first, c - self.bounds, 0.0)
        return jnp.where(self.is_open, _SIGN * (c - self.bounds) - self.t, equal)

    def paid(self, mu: jax.Array) -> jax.Array:
        """The barrier (), -mu sum of log t."""
        return -mu * jnp.sum(jnp.where(self.is_open, jnp.log(self.t), 0.0))

    def condensed(
        self, c: jax.Array, mu: jax.Array, weight: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """first and second (M,), at entries c (M,)."""
        r = self.residual(c)
        inner = -jnp.sum(_SIGN * (mu - self.z * r) / self.t, axis=0)
        first = jnp.where(self.is_equality, self.y + weight * r[0], inner)
        return first, jnp.where(self.is_equality, weight, jnp.sum(self.z / self.t, axis=0))

    def towards(self, c: jax.Array, dc: jax.Array, mu: jax.Array, weight: jax.Array) -> Barrier:
        """The changes of t, z and y that a change dc (M,) brings, with the same bounds."""
        r = self.residual(c)
        dt = jnp.where(self.is_open, r + _SIGN * dc, 0.0)
        dz = (mu - self.z * dt) / self.t - self.z
        dy = jnp.where(self.is_equality, weight * (r[0] + dc), 0.0)
        return Barrier(dt, dz, dy, self.bounds)

    def after(self, change: Barrier) -> jax.Array:
        """The multipliers (2, M) after a change; those of equalities in both rows."""
        return jnp.where(self.is_equality, self.y + change.y, self.z + change.z)

    def longest(self, change: Barrier) -> tuple[jax.Array, jax.Array]:
        """The lengths () of a step, at most 1, at which t and z stay positive."""

        def until_zero(x: jax.Array, dx: jax.Array) -> jax.Array:
            shrinks = dx < 0
            return jnp.min(
                jnp.where(shrinks, _MOST * x / -jnp.where(shrinks, dx, 1.0), 1.0), initial=1.0
            )

        return until_zero(self.t, change.t), until_zero(self.z, change.z)

    def moved(self, change: Barrier, alpha: jax.Array, alpha_z: jax.Array) -> Barrier:
        """After alpha () of a change of t and y, and alpha_z () of that of z."""
        return Barrier(
            self.t + alpha * change.t,
            self.z + alpha_z * change.z,
            self.y + alpha * change.y,
            self.bounds,
        )


_SUFFICIENT, _SHORTEST = 1e-4, 1e-4
_LARGEST_SHIFT = 1e12
# Least distance of the first slacks to their bounds, relative.
_COLD, _WARM = 1e-2, 1e-4


class Weights(NamedTuple):
    """Of gaps (N, nx), and of residuals of bounds (2, M), in the merit."""

    gaps: jax.Array
    residuals: jax.Array

    @staticmethod
    def none(model: Model, barrier: Barrier) -> Weights:
        return Weights(jnp.zeros_like(model.gap), jnp.zeros_like(barrier.z))

    def towards(self, multipliers: Weights) -> Weights:
        """At least the sizes of multipliers, and half of what they were before (Powell 1978)."""

        def after(weight: jax.Array, multiplier: jax.Array) -> jax.Array:
            return jnp.maximum(multiplier, (weight + multiplier) / 2)

        return jax.tree.map(after, self, jax.tree.map(jnp.abs, multipliers))

    def off(self, model: Model, barrier: Barrier, values: jax.Array) -> jax.Array:
        """The weighted sum () of all gaps and residuals."""
        residuals = jnp.abs(barrier.residual(values))
        return jnp.sum(self.gaps * jnp.abs(model.gap)) + jnp.sum(self.residuals * residuals)


class State(NamedTuple):
    """Points, controls, the model about them, the bounds, and how it goes.

    mu (): of the barrier; shift (): on the diagonal of the controls; weights: of gaps and
    residuals, in the merit. gains, costates: of the last iteration, for the plan.
    """

    motion: Motion
    model: Model
    barrier: Barrier
    mu: jax.Array
    shift: jax.Array
    weights: Weights
    result: Result
    gains: jax.Array
    costates: jax.Array

    @property
    def cost(self) -> jax.Array:
        """The cost () of the points and controls."""
        return self.model.cost


class InteriorPoint(IteratedSolver):
    """A primal-dual interior point method on the horizon, for bounds of all kinds.

    iterations: the most. tolerance: of the KKT conditions, None for the root of the rounding unit.
    The multipliers times the distances to the bounds, all together, are by how much the cost can be
    off; relative to it, they end below tolerance^1.25. exact: second derivatives of steps,
    residuals and bounds are used as well, where they have a minimum. barrier: the cost of the first
    barrier, relative to that of the guess.
    """

    iterations: int = eqx.field(static=True, default=200)
    tolerance: float | None = eqx.field(static=True, default=None)
    exact: bool = eqx.field(static=True, default=False)
    barrier: float = eqx.field(static=True, default=0.1)

    def init(
        self, knots: Discretization, motion: Motion, multipliers: tuple[jax.Array, jax.Array] | None
    ) -> State:
        bounds, dtype = Bounds.of(knots), motion.u.dtype
        zero = jnp.zeros((), dtype)
        lower, upper = (part.flat for part in Entries.bounds(knots, bounds))
        model = model_of(knots, motion)
        values = Entries.values(model, motion)
        y, off = jnp.zeros_like(values.flat), _COLD
        if multipliers is not None:
            y, off = _with_those_of_controls(knots, model, values, multipliers).flat, _WARM
        start = inside(values.flat, lower, upper, off)
        barrier = Barrier.start(start, y, lower, upper)
        mu = self.barrier * jnp.maximum(jnp.abs(model.cost), 1) / barrier.count
        if multipliers is not None:
            mu = jnp.minimum(mu, jnp.sum(barrier.products) / barrier.count)
            mu = jnp.maximum(mu, _least_mu(model, barrier, tolerance_of(self.tolerance, dtype)))
        # The controls are moved inside, too, and stay there.
        start = values.like(start)
        motion = motion._replace(u=start.u, x=motion.x._replace(z=motion.x.z.at[0].set(start.z)))
        result = Result.start(self.iterations, tolerance_of(self.tolerance, dtype), dtype)
        gains = jnp.zeros((knots.steps, knots.nu, knots.nx), dtype)
        lam = jnp.zeros((knots.steps + 1, knots.nx), dtype)
        model = model_of(knots, motion)
        barrier, weights = barrier.centred(mu), Weights.none(model, barrier)
        return State(motion, model, barrier, mu, zero, weights, result, gains, lam)

    def iterate(self, knots: Discretization, state: State) -> State:
        motion, model, barrier = state.motion, state.model, state.barrier
        values = Entries.values(model, motion)
        y = values.like(barrier.multipliers)
        products = barrier.products
        priced, lam, slope, pull = _priced(knots, model, y)
        bounds = Bounds.of(knots)
        kkt = kkt_of(priced, model, bounds, slope + y.u, pull + y.z, products)
        tolerance = state.result.tolerance
        done = kkt.stationary(tolerance) & (kkt.violation <= tolerance)
        done &= jnp.sum(products) <= _allowed(model, tolerance)
        finite = jnp.isfinite(model.cost + kkt.gap)
        result = state.result.after(model.cost, kkt, done, finite)
        weight = _weight_of_equalities(model)
        first, second = (
            values.like(part) for part in barrier.condensed(values.flat, state.mu, weight)
        )
        lq = _with_all_bounds(knots, model, first, second)
        sweep = riccati(lq, None, state.shift)
        if self.exact:
            exact = with_exact_hessian(knots, motion, lam, (y.along, y.end), lq)
            better = riccati(exact, None, state.shift)
            # Where the exact matrix has no minimum, Gauss-Newton's is taken.
            pick = lambda new, old: jnp.where(better.fine, new, old)  # noqa: E731
            lq, sweep = jax.tree.map(pick, (exact, better), (lq, sweep))
        state = state._replace(result=result, costates=lam, gains=sweep.K)
        return jax.lax.cond(
            result.status == Status.RUNNING,
            lambda: self._moved(knots, lq, sweep, weight, state),
            lambda: state,
        )

    def _moved(
        self,
        knots: Discretization,
        lq: LinearQuadratic,
        sweep: Sweep,
        weight: jax.Array,
        state: State,
    ) -> State:
        """The state after a step of the search, or with a larger shift where none is found."""
        barrier, mu = state.barrier, state.mu
        step = _step(knots, lq, sweep, weight, state)
        alpha, motion, model = _searched(knots, step, sweep.fine, state)
        accepted = (alpha > _SHORTEST * step.longest) & sweep.fine & (step.descent <= 0)
        least = 1e-9 * (1 + jnp.max(jnp.abs(lq.H[:, lq.nx :, lq.nx :])))
        larger = jnp.maximum(10 * state.shift, least)
        smaller = jnp.where(state.shift <= 10 * least, 0.0, state.shift / 10)
        kept = jnp.where(alpha > 0.3 * step.longest, smaller, state.shift)
        shift = jnp.where(accepted, kept, larger)
        central = accepted & (-step.descent <= barrier.count * mu) & (alpha > 0.3)
        lower = jnp.where(central, _lower(mu, model, barrier, state.result.tolerance), mu)
        pick = lambda new, old: jnp.where(accepted, new, old)  # noqa: E731
        return state._replace(
            motion=jax.tree.map(pick, motion, state.motion),
            model=jax.tree.map(pick, model, state.model),
            barrier=jax.tree.map(pick, barrier.moved(step.change, alpha, step.alpha_z), barrier),
            mu=lower,
            shift=shift,
            weights=jax.tree.map(
                lambda w: jnp.where(sweep.fine & (lower == mu), w, 0.0), step.weights
            ),
            result=state.result.stuck(~accepted & (shift > _LARGEST_SHIFT * least)),
        )

    def plan(self, knots: Discretization, state: State) -> Plan:
        model, motion, result = state.model, state.motion, state.result
        values = Entries.values(model, motion)
        y = values.like(state.barrier.multipliers)
        bounds = Entries.bounds(knots, Bounds.of(knots))
        settled = values.settled(motion, y, bounds, model.cost)
        pick = lambda new, old: jnp.where(result.converged, new, old)  # noqa: E731
        motion, y = jax.tree.map(pick, settled, (motion, y))
        return made_plan(
            knots,
            motion,
            model.cost,
            model.gap,
            state.gains,
            state.costates,
            (y.along, y.end),
            result,
        )


class _Step(NamedTuple):
    """d (N, n), dx_N (nx,) and the change of the barrier, with how far they may be gone.

    longest, alpha_z (): the lengths for distances and for multipliers. weights: of gaps and
    residuals in the merit; descent (): its derivative along the step.
    """

    d: jax.Array
    end: jax.Array
    change: Barrier
    longest: jax.Array
    alpha_z: jax.Array
    weights: Weights
    descent: jax.Array


def _step(
    knots: Discretization, lq: LinearQuadratic, sweep: Sweep, weight: jax.Array, state: State
) -> _Step:
    """The step under a sweep; weight: that of the squares of equalities."""
    model, barrier, mu = state.model, state.barrier, state.mu
    d, end = linear_rollout(lq, sweep)
    values = Entries.values(model, state.motion).flat
    dc = Entries.changes(model, knots, d, end).flat
    change = barrier.towards(values, dc, mu, weight)
    slope = jnp.sum(model.along.g * d) + model.end.g @ end - mu * jnp.sum(change.t / barrier.t)
    lam, _ = costates(lq.at(d, end))
    weights = state.weights.towards(Weights(lam[1:], barrier.after(change)))
    descent = slope - weights.off(model, barrier, values)
    return _Step(d, end, change, *barrier.longest(change), weights, descent)


def _searched(
    knots: Discretization, step: _Step, fine: jax.Array, state: State
) -> tuple[jax.Array, Motion, Model]:
    """The length () at which the merit falls, and the motion and the model there."""
    barrier, mu = state.barrier, state.mu

    def merit(motion: Motion, model: Model, barrier: Barrier) -> jax.Array:
        values = Entries.values(model, motion).flat
        return model.cost + barrier.paid(mu) + step.weights.off(model, barrier, values)

    before = merit(state.motion, state.model, barrier)
    values = Entries.values(state.model, state.motion).flat
    size = jnp.abs(before) + jnp.sum(step.weights.residuals * jnp.abs(values))
    allowed = before + 10 * jnp.finfo(before.dtype).eps * size

    def shorter(trial: tuple) -> tuple:
        alpha = trial[0] / 2
        there = state.motion.moved(knots, alpha * step.d, alpha * step.end)
        return alpha, there, model_of(knots, there)

    def refused(trial: tuple) -> jax.Array:
        alpha, there, model = trial
        moved = barrier.moved(step.change, alpha, step.alpha_z)
        good = merit(there, model, moved) <= allowed + _SUFFICIENT * alpha * step.descent
        return ~good & (alpha > _SHORTEST * step.longest) & fine

    first = shorter((2 * step.longest, state.motion, state.model))
    return jax.lax.while_loop(refused, shorter, first)


def _with_those_of_controls(
    knots: Discretization, model: Model, values: Entries, multipliers: tuple
) -> Entries:
    """The multipliers of bounds, and those of the controls that make a motion stationary."""
    along, end = multipliers
    nothing = Entries(along, end, jnp.zeros_like(values.u), jnp.zeros_like(values.z))
    _, _, slope, pull = _priced(knots, model, nothing)
    return nothing._replace(u=-slope, z=-pull)


def _priced(
    knots: Discretization, model: Model, y: Entries
) -> tuple[LinearQuadratic, jax.Array, jax.Array, jax.Array]:
    """The problem with bounds at the price of their multipliers, those of the controls left out.

    Also its costates (N + 1, nx), and the derivatives of its cost by the controls (N, nu), and by z
    at the start (nz,).
    """
    lq = with_bounds(model, knots.nz, (y.along, 0 * y.along), (y.end, 0 * y.end))
    lam, slope = costates(lq)
    return lq, lam, slope, lam[0, knots.nx - knots.nz :]


def _with_all_bounds(
    knots: Discretization, model: Model, first: Entries, second: Entries
) -> LinearQuadratic:
    """The problem of a model with what all bounds add."""
    lq = with_bounds(model, knots.nz, (first.along, second.along), (first.end, second.end))
    n, nx = lq.H.shape[-1], knots.nx
    controls, start = jnp.arange(nx, n), jnp.arange(nx - knots.nz, nx)
    g = lq.g.at[:, controls].add(first.u).at[0, start].add(first.z)
    H = lq.H.at[:, controls, controls].add(second.u).at[0, start, start].add(second.z)
    return lq._replace(g=g, H=H)


def _weight_of_equalities(model: Model) -> jax.Array:
    """As much as their squares may weigh () with half of the digits left for the costs."""
    largest = 1 + jnp.maximum(jnp.max(jnp.abs(model.along.H)), jnp.max(jnp.abs(model.end.H)))
    return largest / jnp.finfo(largest.dtype).eps ** 0.5


def _allowed(model: Model, tolerance: Any) -> jax.Array:
    """By how much the cost may be off: the sum () of multipliers times distances."""
    return tolerance**1.25 * (jnp.abs(model.cost) + tolerance)


def _least_mu(model: Model, barrier: Barrier, tolerance: Any) -> jax.Array:
    return _allowed(model, tolerance) / (3 * barrier.count)


def _lower(mu: jax.Array, model: Model, barrier: Barrier, tolerance: jax.Array) -> jax.Array:
    """The next mu ()."""
    share = jnp.sqrt(barrier.count * mu / (jnp.abs(model.cost) + tolerance))
    lower = mu * jnp.clip(share, 0.01, 0.2)
    return jnp.minimum(mu, jnp.maximum(lower, _least_mu(model, barrier, tolerance)))
