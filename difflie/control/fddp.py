"""Feasibility-driven differential dynamic programming, with boxes and with other bounds.

Multiple shooting: points and controls are unknowns, the guess may have gaps between its steps, and
a step of length alpha leaves (1 - alpha) of them, and what is of second order (Mastalli et al.
2020). At first points move straight, so that unstable machines do no harm; from the first step that
brings less than a tenth of what it promised they move by rollouts of the machine. The controls stay
within their box at all times, by a quadratic problem at each knot of the sweep (Tassa, Mansard,
Todorov 2014). Other bounds, and equalities, enter by an augmented Lagrangian (Howell, Jackson,
Manchester 2019). The length of a step is that at which cost, penalties and gaps, weighted, fall
(Nocedal and Wright 2006, 18.3).
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import native
from .conditions import conditions
from .discretization import Discretization, Motion, Point
from .linear_quadratic import LinearQuadratic, Sweep, costates, linear_rollout, with_exact_hessian
from .model import Model, model_of, values_of
from .penalty import Bounds, Penalty
from .plan import Plan
from .result import KKT, Result, Status
from .riccati import riccati
from .solver import IteratedSolver, bound_box, made_plan, rounding_shift, tolerance_of

Value = TypeVar("Value")

# Of the decrease that is expected of a step: for a rollout, and for points that move straight.
_SUFFICIENT, _STRAIGHT = 1e-4, 0.1
_SHORTEST = 1e-3
# Of the cost, what a step of Gauss-Newton's promises where the exact Hessian takes over.
_NEAR = 0.1
_FIRST_SHIFT, _LARGEST_SHIFT = 1e-6, 1e12


class State(NamedTuple):
    """Points, controls, what weighs gaps and bounds, and how it goes.

    cost (): at the start of the last iteration. shift (): on the diagonal of the controls;
    gap_weight (N, nx): of the gaps, in the merit; violated (): at the last change of multipliers.
    rolls (): whether points move by rollouts. gains, costates: of the last iteration, for the plan.
    """

    motion: Motion
    penalty: Penalty
    cost: jax.Array
    shift: jax.Array
    gap_weight: jax.Array
    rolls: jax.Array
    violated: jax.Array
    result: Result
    gains: jax.Array
    costates: jax.Array


class _Direction(NamedTuple):
    """Where an iteration starts, and where to: the KKT conditions, costates, and values there.

    d, end: the changes in the linear model under the sweep, slope () of the cost along them, and
    next_costates (N, nx) after them; least_shift (): the least but zero.
    """

    kkt: KKT
    costates: jax.Array
    values: Model
    sweep: Sweep
    d: jax.Array
    end: jax.Array
    slope: jax.Array
    next_costates: jax.Array
    least_shift: jax.Array


class _Trial(NamedTuple):
    """A step of length alpha () to a motion, and whether it is good ()."""

    alpha: jax.Array
    good: jax.Array
    motion: Motion


class FDDP(IteratedSolver):
    """Feasibility-driven differential dynamic programming, with bounds of all kinds.

    iterations: the most. tolerance: of the KKT conditions, None for the root of the rounding unit.
    exact: near an optimum, second derivatives of the steps and residuals are used as well, not
    Gauss-Newton's matrix alone: fewer iterations there, each of which takes longer. penalty: the
    first weight of the squares of bounds other than those of the controls.
    """

    iterations: int = eqx.field(static=True, default=200)
    tolerance: float | None = eqx.field(static=True, default=None)
    exact: bool = eqx.field(static=True, default=False)
    penalty: float = eqx.field(static=True, default=10.0)

    def init(
        self, knots: Discretization, motion: Motion, multipliers: tuple[jax.Array, jax.Array] | None
    ) -> State:
        bounds, dtype = Bounds.of(knots), motion.u.dtype
        zero = jnp.zeros((), dtype)
        if multipliers is None:
            multipliers = jnp.zeros_like(bounds.lower), jnp.zeros_like(bounds.end_lower)
        motion = motion._replace(u=jnp.clip(motion.u, knots.u_lower[None], knots.u_upper[None]))
        along, end = multipliers
        penalty = Penalty(along, end, jnp.asarray(self.penalty, dtype), bounds)
        result = Result.start(self.iterations, tolerance_of(self.tolerance, dtype), dtype)
        gains = jnp.zeros((knots.steps, knots.nu, knots.nx), dtype)
        lam = jnp.zeros((knots.steps + 1, knots.nx), dtype)
        weight, far = jnp.zeros((knots.steps, knots.nx), dtype), zero + jnp.inf
        return State(motion, penalty, far, zero, weight, zero > 0, far, result, gains, lam)

    def iterate(self, knots: Discretization, state: State) -> State:
        to = chunked_vmap(self._direction, knots, state.motion, state.penalty, state.shift)
        tolerance, kkt, values = state.result.tolerance, to.kkt, to.values
        done = kkt.stationary(tolerance) & (kkt.violation <= tolerance)
        solved = kkt.stationary(jnp.maximum(tolerance, 0.1 * kkt.violation))
        finite = jnp.isfinite(values.cost + state.penalty.paid(values) + kkt.gap)
        result = state.result.after(values.cost, kkt, done, finite)
        state = state._replace(
            result=result, cost=values.cost, costates=to.costates, gains=to.sweep.K
        )
        going = result.status == Status.RUNNING
        moved = lambda: self._moved(knots, to, state)  # noqa: E731
        updated = lambda: self._with_multipliers(state, to)  # noqa: E731
        if state.penalty.along.size or state.penalty.end.size:
            return jax.lax.switch(going * (1 + solved), (lambda: state, moved, updated))
        return jax.lax.cond(going, moved, lambda: state)

    def _direction(
        self, knots: Discretization, motion: Motion, penalty: Penalty, shift: jax.Array
    ) -> _Direction:
        """All that is made of a model of second order, which is the largest part of a search."""
        model = model_of(knots, motion)
        lq, lam, kkt = conditions(knots, model, motion, penalty)
        swept = functools.partial(self._swept, knots, motion, shift)
        lq, sweep = swept(lq)
        if self.exact:
            exact = with_exact_hessian(knots, motion, lam, penalty.after(model), lq)
            exact, found = swept(exact)
            # Far from an optimum it may have no least value, or one that is far from any motion.
            near = -lq.change(*linear_rollout(lq, sweep))[0] <= _NEAR * jnp.abs(model.cost)
            curved = exact.change(*linear_rollout(exact, found))[1] > 0
            lq, sweep = jax.tree.map(
                lambda a, b: jnp.where(found.fine & curved & near, a, b),
                (exact, found),
                (lq, sweep),
            )
        d, end = linear_rollout(lq, sweep)
        slope, _ = lq.change(d, end)
        after, _ = costates(lq.at(d, end))
        least = _FIRST_SHIFT * (1 + jnp.max(jnp.abs(lq.H[:, lq.nx :, lq.nx :])))
        return _Direction(kkt, lam, model.values, sweep, d, end, slope, after[1:], least)

    def _swept(
        self, knots: Discretization, motion: Motion, shift: jax.Array, lq: LinearQuadratic
    ) -> tuple[LinearQuadratic, Sweep]:
        return lq, riccati(lq, bound_box(knots, motion), shift + rounding_shift(lq))

    def _with_multipliers(self, state: State, to: _Direction) -> State:
        """The next multipliers, with a larger weight where bounds are broken almost as before."""
        along, end = state.penalty.after(to.values)
        slow = to.kkt.violation > 0.25 * state.violated
        weight = jnp.where(slow, 10 * state.penalty.weight, state.penalty.weight)
        penalty = state.penalty._replace(along=along, end=end, weight=weight)
        none = jnp.zeros_like(state.gap_weight)
        return state._replace(penalty=penalty, violated=to.kkt.violation, gap_weight=none)

    def _moved(self, knots: Discretization, to: _Direction, state: State) -> State:
        """The state after a step of the search, or with a larger shift where none is found."""
        motion, penalty, sweep, gap = state.motion, state.penalty, to.sweep, to.values.gap
        # Gaps weigh at least as much as what they would change of the cost (Powell 1978).
        gap_weight = jnp.maximum(jnp.abs(to.next_costates), state.gap_weight)
        gap_weight = jnp.where(sweep.fine, gap_weight, state.gap_weight)
        descent = to.slope - jnp.sum(gap_weight * jnp.abs(gap))

        def merit(model: Model) -> jax.Array:
            return model.cost + penalty.paid(model) + jnp.sum(gap_weight * jnp.abs(model.gap))

        before = merit(to.values)
        allowed = before + 10 * jnp.finfo(before.dtype).eps * jnp.abs(before)

        def rolled(trial: _Trial) -> _Trial:
            alpha = trial.alpha / 2
            there = rollout(knots, motion, gap, sweep, alpha)
            found = values_of(knots, there, (1 - alpha) * gap)
            good = merit(found) <= allowed + _SUFFICIENT * alpha * descent
            return _Trial(alpha, good & jnp.all(jnp.isfinite(there.x.q)), there)

        def refused(trial: _Trial) -> jax.Array:
            return ~trial.good & (trial.alpha > 2 * _SHORTEST) & sweep.fine

        there = motion.moved(knots, to.d, to.end)
        far = jnp.full_like(before, jnp.inf)
        full = jax.lax.cond(state.rolls, lambda: far, lambda: merit(values_of(knots, there)))
        straight = ~state.rolls & (full <= allowed + _STRAIGHT * descent)
        begin = _Trial(2 * jnp.ones((), before.dtype), straight, there)
        alpha, good, there = jax.lax.while_loop(refused, rolled, begin)
        accepted = good & sweep.fine
        larger = jnp.maximum(10 * state.shift, to.least_shift)
        smaller = jnp.where(state.shift <= 10 * to.least_shift, 0.0, state.shift / 10)
        kept = jnp.where(alpha > 0.3, smaller, state.shift)
        shift = jnp.where(accepted, kept, larger)
        return state._replace(
            motion=jax.tree.map(lambda new, old: jnp.where(accepted, new, old), there, motion),
            shift=shift,
            gap_weight=gap_weight,
            rolls=~straight & sweep.fine,
            result=state.result.stuck(~accepted & (shift > _LARGEST_SHIFT * to.least_shift)),
        )

    def plan(self, knots: Discretization, state: State) -> Plan:
        values = values_of(knots, state.motion)
        multipliers = state.penalty.after(values)
        return made_plan(
            knots,
            state.motion,
            values.cost,
            values.gap,
            state.gains,
            state.costates,
            multipliers,
            state.result,
        )


def rollout(
    knots: Discretization,
    about: Motion,
    gap: Float[Array, "N nx"],
    sweep: Sweep,
    alpha: Float[Array, ""],
) -> Motion:
    """The motion with u = u_k + alpha k + K dx, clipped to the box, whose gaps are (1 - alpha) gap.

    about: the motion of which the sweep is, with these gaps (Mastalli et al. 2020).
    """
    k = jnp.arange(knots.steps, dtype=about.u.dtype)

    def turn(x: Point, row: Any) -> tuple[Point, Any]:
        k, ref, end, u, gap, feed, K = row
        u = u + alpha * feed + K @ knots.difference(ref, x)
        u = jnp.clip(u, knots.u_lower, knots.u_upper)
        moved = knots.difference(end, knots.step(x, u, k)) + (alpha - 1) * gap
        return knots.retract(end, moved), (x, u)

    ref, end = jax.tree.map(lambda a: a[:-1], about.x), jax.tree.map(lambda a: a[1:], about.x)
    start = jax.tree.map(lambda a: a[0], about.x)
    z = jnp.clip(start.z + alpha * sweep.dz, knots.z_lower, knots.z_upper)
    rows = k, ref, end, about.u, gap, sweep.k, sweep.K
    loop = native.scan if knots.tree.topology.unrolled else jax.lax.scan
    last, (x, u) = loop(turn, start._replace(z=z), rows, knots.steps)
    return Motion(jax.tree.map(lambda a, b: jnp.concatenate((a, b[None])), x, last), u)


def chunked_vmap(f: Callable[..., Value], *args: Any) -> Value:
    """f(*args), under jax.vmap for as many problems at once as there are processors.

    What is computed and used up within f stays in their caches; for a large batch it would not.
    Only on CPUs: other devices have all of a batch computed at once.
    """
    arrays, static = eqx.partition(args, eqx.is_array)

    def applied(arrays: Any) -> Value:
        return f(*eqx.combine(arrays, static))

    run = jax.custom_batching.custom_vmap(applied)

    @run.def_vmap
    def rule(size: int, batched: Any, arrays: Any) -> tuple[Any, Any]:
        (batched,) = batched
        each, shared = eqx.partition(arrays, batched)

        def one(each: Any) -> Value:
            return applied(eqx.combine(each, shared))

        def in_turn(each: Any) -> Any:
            count = min(size, _processors())
            turns = -(-size // count)
            # The last turn may have some problems for a second time.
            rows = np.minimum(np.arange(turns * count), size - 1).reshape(turns, count)
            some = jax.vmap(one)
            found = jax.lax.map(lambda row: some(jax.tree.map(lambda x: x[row], each)), rows)
            return jax.tree.map(lambda y: y.reshape(turns * count, *y.shape[2:])[:size], found)

        results = jax.lax.platform_dependent(each, cpu=in_turn, default=jax.vmap(one))
        return results, jax.tree.map(lambda _: True, results)

    return run(arrays)


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
