"""Moreau's time stepping: velocities jump, and impulses decide whether contacts open and slide.

    q_m = q exp(h v / 2)
    M (v' - v) = h f(q_m, v) + A_b^T p_b + sum over closed contacts (A_n^T p_n + A_t^T p_t)
    q' = q_m exp(h v' / 2)

Free bodies, and ball joints on the world, go straight on in the world from q to q_m and to q', with
their momentum (`difflie.dynamics.free_flight`).

    A_b v' = 0,    0 <= p_n  |_  A_n v' + e A_n v >= 0,    p_t = proj of the disk |p_t| <= mu p_n

A contact closes where its gap g_m at q_m is not positive. One that pressed in the step before stays
closed as long as what acts would close its gap again within a step, g_m + h A_n v < 0: the motion
bends away from the tangent along which impulses let it go, by h^2. Then A_n v' + g_m / h >= 0. How
the impulses are found, and that they gain no energy: `difflie.integrators.jumps`.

An impulse belongs to a whole step. Impacts, any number of them in a step, and steady forces are
treated alike, and no event has to be located in time. Moreau 1988; Jean 1999; the
conditions as projections after Alart and Curnier 1991.

The step in which an impact falls is not differentiated. Derivatives by what changes the time of an
impact are therefore wrong, in sign too: with e = 1 the height after a bounce rises by 1 with that
of the start, where it falls by 1. `Moreau(located=True)` locates impacts within the step
(`difflie.integrators.impacts`). Impacts that come at once, as of balls that touch each other, have
no unique outcome; the impulses found are one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from ..solvers.linear import product
from .impacts import Arrival, Jump, located
from .jumps import Closing, Memory, NonsmoothMechanics, jumped
from .method import Method, Scalar, State, chosen


class Moreau(Method):
    """Order 1, for contacts and stops: a contact may overlap by the path of one step.

    The memory is the impulses p (m,) of the step before. located: whether the first impact of each
    tree is located within the step, so that derivatives by what changes its time are right; with
    some more evaluations of the dynamics. Moreau 1988.
    """

    located: bool = False

    equations: ClassVar[type] = NonsmoothMechanics
    implicit: ClassVar[bool] = True
    order: ClassVar[int] = 1
    steps_alike: ClassVar[bool] = False
    stability: ClassVar[tuple[float, float]] = 2.0, 2.0

    def init(self, problem: NonsmoothMechanics, t: Scalar, y: Any, h: Scalar) -> State:
        none, zero = jnp.zeros(problem.size, y[0].dtype), jnp.zeros((), y[0].dtype)
        return State(y, Memory(none, zero, zero, jnp.asarray(h, zero.dtype)))

    def step(
        self, problem: NonsmoothMechanics, t: Scalar, state: State, h: Scalar
    ) -> tuple[State, Bool[Array, ""]]:
        (q, v), last = state.y, state.memory
        if self.located:
            y, memory, found = _located(problem, q, v, last, h)
        else:
            y, memory, found = _step(problem, q, v, last, h)
        *y, reached = problem.position(*y)
        found = found & reached
        memory = memory._replace(impulses=last.usual / h * memory.impulses, usual=last.usual)
        nothing = jax.tree.map(jnp.zeros_like, memory)._replace(usual=last.usual)
        return State(*chosen(found, (tuple(y), memory), (state.y, nothing))), found


def _step(
    problem: NonsmoothMechanics, q: jax.Array, v: jax.Array, last: Memory, h: Scalar
) -> tuple[tuple, Memory, Bool[Array, ""]]:
    """q and v at the end of the step, its impulses, and whether they were found ()."""
    middle, before = problem.coast(q, v, h / 2)
    contacts = problem.constraints(middle)
    free = problem.free(middle, before, h)
    pressed = problem.pressures(last.impulses) > 0
    closed, still = contacts.closed(free, pressed, h), contacts.still(h)
    closing = Closing(
        closed, product(contacts.normals, before), still, jnp.full_like(still, -jnp.inf)
    )
    after, memory, found = jumped(contacts, closing, before, free)
    # What comes faster than what acts can let it in a step.
    gained = product(contacts.normals, free - before)
    hits = closed & ~pressed & (closing.coming < -jnp.abs(gained))
    impacts = last.impacts + jnp.sum(hits.astype(v.dtype))
    return problem.coast(middle, after, h / 2), memory._replace(impacts=impacts), found


def _located(
    problem: NonsmoothMechanics, q: jax.Array, v: jax.Array, last: Memory, h: Scalar
) -> tuple[tuple, Memory, Bool[Array, ""]]:
    """As `_step`, with impacts at their times."""
    pressed = problem.pressures(last.impulses) > 0

    def jump(arrival: Arrival, again: Callable[[jax.Array], jax.Array]) -> Jump:
        contacts = problem.constraints(arrival.place)
        normals, hits = contacts.normals, arrival.hits
        coming = arrival.coming(normals)

        def flown(after: jax.Array) -> tuple[jax.Array, jax.Array]:
            still = jnp.where(hits, arrival.falling(normals, after), contacts.still(h))
            return arrival.free(after), still

        free, still = flown(arrival.a)
        closed = hits | contacts.closed(free, pressed, h)
        closing = Closing(closed, coming, still, jnp.where(hits, 0, -jnp.inf))
        after, memory, found = jumped(
            contacts, closing, arrival.before, free, lambda change: flown(again(change))
        )
        moved = contacts.Y * memory.impulses
        each = moved[:, moved.shape[1] - 3 * len(hits) :].reshape(len(v), -1, 3)
        presses = closed & (problem.pressures(memory.impulses) > 0)
        rebound = -contacts.restitution * coming
        total = jnp.sum(moved, axis=1)
        return Jump(after, jnp.sum(each, axis=2), total, normals, rebound, presses, memory, found)

    touched = jnp.asarray(problem.touched)
    return located(problem, q, v, touched, pressed, h, 0.5, jump)
