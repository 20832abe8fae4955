"""A step of `Moreau` in which the first impact of each tree is located in time.

An impulse at a fixed place of a step makes the motion after an impact as a function of the start
one with steps: its derivative is not that of the motion. So what hits in a step flies to its impact
at the time tau, jumps there, and flies on,

    g(q(tau)) = 0,    q(tau) = q exp(tau v + tau^2 a / 2)
    M(q(tau)) (v' - v*) = A(q(tau))^T p,    v* = v + tau a + (h - tau) a',    u_0 = (h - tau) A_n a'
    q' = q(tau) exp((h - tau) v' - (h - tau)^2 a' / 2)

with the accelerations a before and a' after the jump. Both depend on tau, and so on the start, and
what they tell about it are the saltation matrices (Aizerman and Gantmacher 1958; Kong, Payne, Zhu
and Johnson 2024), with no loop over events. What does not bounce stays: then the last term is left
out. Trees that hit nothing take the step of `Moreau`, which is this one for tau = h / 2 without the
terms in a.

Each impact of a tree has its own time tau, by which it bounces and moves the tree on, but all act
where the first one does.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..solvers.linear import product
from .jumps import Closing, Memory, NonsmoothMechanics, jumped
from .method import Scalar


def located(
    problem: NonsmoothMechanics,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    last: Float[Array, " m"],
    h: Scalar,
) -> tuple[tuple, Memory, Bool[Array, ""]]:
    """q (nq,) and v (nv,) at the end of a step h (s), its impulses, and whether they were found ().

    last (m,): the impulses of the step before.
    """
    h = jnp.asarray(h, v.dtype)
    trees, touched, pressed = problem.trees, problem.touched, problem.pressures(last) > 0

    def accelerating(q: jax.Array, v: jax.Array) -> jax.Array:
        return (problem.free(q, v, h) - v) / h

    start = accelerating(q, v)

    def path(time: jax.Array, flies: jax.Array) -> tuple[jax.Array, jax.Array]:
        """q after the time (nv,) without impulses, and the mean v on the way there."""
        return problem.coast(q, v + jnp.where(flies, time / 2, 0) * start, time)

    hits, times, time, flies = _impacts(problem, path, q, v, pressed, h)
    rest = h - time
    place, mean = path(time, flies)
    contacts = problem.constraints(place)
    a = accelerating(place, mean)
    onset = mean - jnp.where(flies, time / 2, 0) * a
    before = onset + jnp.where(flies, time, 0) * a
    at_hits = onset[None] + times[:, None] * a
    coming = jnp.sum(contacts.normals * jnp.where(hits[:, None], at_hits, before), axis=1)

    def flown(after: jax.Array) -> tuple[jax.Array, jax.Array]:
        """v* and u_0 for an acceleration after the jump."""
        free = onset + jnp.where(flies, time * a + rest * after, h * a)
        falling = (h - times) * product(contacts.normals, after)
        return free, jnp.where(hits, falling, -jnp.maximum(contacts.gaps, 0) / h)

    def again(jump: jax.Array) -> tuple[jax.Array, jax.Array]:
        return flown(jnp.where(flies, accelerating(place, before + jump), a))

    free, still = flown(a)
    opens = contacts.gaps + h * product(contacts.normals, free) > 0
    closed = hits | (contacts.gaps <= 0) | (pressed & ~opens)
    least = jnp.where(hits, 0, -jnp.inf)
    ended, memory, found = jumped(
        contacts, Closing(closed, coming, still, least), before, free, again
    )

    # The rest of the way.
    p = memory.impulses
    jumps = contacts.Y * p
    after = jnp.where(flies, accelerating(place, before + jnp.sum(jumps, axis=1)), a)
    bounces = hits & (flown(after)[1] > contacts.restitution * coming)
    stays = closed & ~bounces & (problem.pressures(p) > 0)
    soars = flies & ~jnp.any(stays[:, None] & touched, axis=0)[trees]
    late = jnp.where(hits, times, 0)
    owed = _of_contacts(jumps, late) - time * _of_contacts(jumps, hits.astype(v.dtype))
    owed = jnp.where(flies & (rest > 0), owed / jnp.where(rest > 0, rest, 1), 0)
    half = jnp.where(soars, rest / 2, 0)
    q, arrived = problem.coast(place, ended - half * after - owed, rest)
    return (q, arrived + half * accelerating(q, arrived) + owed), memory, found


def _impacts(
    problem: NonsmoothMechanics,
    path: Callable[[jax.Array, jax.Array], tuple[jax.Array, jax.Array]],
    q: jax.Array,
    v: jax.Array,
    pressed: jax.Array,
    h: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Which contacts hit (k,), and when (k,); when trees do first (nv,), and whether they do (nv,).

    path(time, flies): where trees are after times (nv,). pressed (k,): what did in the step before.
    """
    trees, touched = problem.trees, problem.touched
    member = np.array([np.argmax(trees == n) for n in range(touched.shape[1])], int)

    def gaps(time: jax.Array, flies: jax.Array) -> jax.Array:
        return problem.gaps(path(time, flies)[0])

    every = jnp.ones(v.shape, bool)
    begin, middle, end = problem.gaps(q), *(gaps(jnp.full_like(v, s * h), every) for s in (0.5, 1))
    hits = (begin > 0) & (end <= 0) & ~pressed
    times = h * _crossing(begin, middle, end, hits)

    def first(times: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The time (nv,) of the first impact of each tree, h / 2 for none, and if it has one."""
        each = jnp.where(hits[:, None] & touched, times[:, None], jnp.inf)
        least = jnp.min(each, axis=0, initial=jnp.inf)
        flies = jnp.isfinite(least)
        return jnp.where(flies, least, h / 2)[trees], flies[trees]

    def latest(time: jax.Array) -> jax.Array:
        """The larger time (k,) of the trees of a contact."""
        return jnp.max(jnp.where(touched, time[member], 0), axis=1, initial=0)

    # Newton's method, differentiated with all that the gaps depend on. Of later impacts of a tree
    # the parabola tells the time.
    for _ in range(2):
        time, flies = first(times)
        moving = flies.astype(v.dtype)
        gap, rate = jax.jvp(lambda time, flies=flies: gaps(time, flies), (time,), (moving,))
        near = hits & (times <= latest(time)) & (rate < 0)
        times = jnp.where(near, jnp.clip(times - gap / jnp.where(near, rate, -1), 0, h), times)

    return hits, times, *first(times)


def _of_contacts(jumps: jax.Array, weights: jax.Array) -> jax.Array:
    """The sum (nv,) of jumps (nv, m) of v by the contacts, with weights (k,)."""
    each = jumps[:, jumps.shape[1] - 3 * len(weights) :]
    return jnp.sum(each * jnp.repeat(weights, 3), axis=1)


def _crossing(begin: jax.Array, middle: jax.Array, end: jax.Array, hits: jax.Array) -> jax.Array:
    """Where (k,), from 0 to 1, parabolas through three values (k,) first come to zero."""
    slope, bend = -3 * begin + 4 * middle - end, 2 * (begin - 2 * middle + end)
    square = slope * slope - 4 * bend * begin
    root = jnp.sqrt(jnp.where(hits & (square > 0), square, 1))
    below = jnp.where(hits & (root - slope > 0), root - slope, 1)
    return jnp.clip(jnp.where(hits, 2 * begin / below, 0), 0, 1)
