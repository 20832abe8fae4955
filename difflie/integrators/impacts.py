"""A step in which the first impact of each tree is located in time, whatever law impacts have.

An impulse at a fixed place of a step makes the motion after an impact as a function of the start
one with steps: its derivative is not that of the motion. So what hits in a step flies to its impact
at the time tau, jumps there, and flies on,

    g(q(tau)) = 0,    q(tau) = q exp(tau v + tau^2 a / 2)
    M(q(tau)) (v' - v*) = A(q(tau))^T p,    v* = v + tau a + (h - tau) a',    u_0 = (h - tau) A_n a'
    q' = q(tau) exp((h - tau) v' - (h - tau)^2 a' / 2)

with the accelerations a before and a' after the jump. Both depend on tau, and so on the start, and
what they tell about it are the saltation matrices (Aizerman and Gantmacher 1958; Kong, Payne, Zhu
and Johnson 2024), with no loop over events. What does not bounce stays: then the last term is left
out. Trees that hit nothing take the step of their method, which is this one for another tau, h / 2
with `Moreau` and 0 with `ConvexContact`, without the terms in a.

Each impact of a tree has its own time tau, by which it bounces and moves the tree on, but all act
where the first one does.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..solvers.linear import product
from .method import Scalar


class Flights(eqx.Module):
    """A mechanical system that moves without impulses of contacts; q (nq,), v (nv,)."""

    @property
    @abc.abstractmethod
    def trees(self) -> np.ndarray:
        """(nv,) the number of the tree of each entry of v; trees that equations connect are one."""

    @abc.abstractmethod
    def gaps(self, q: Float[Array, " nq"]) -> Float[Array, " k"]:
        """The gaps (k,) of all that may hit at q (nq,), in m or rad."""

    @abc.abstractmethod
    def coast(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], h: Scalar
    ) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
        """q (nq,) and v (nv,) after the time h (s), () or (nv,) of each tree, without forces."""

    @abc.abstractmethod
    def accelerating(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], h: Scalar
    ) -> Float[Array, " nv"]:
        """The mean acceleration (nv,) without impulses in a step h (s) from q (nq,), v (nv,)."""

    @abc.abstractmethod
    def position(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> tuple[Float[Array, " nq"], Float[Array, " nv"], Bool[Array, ""]]:
        """q (nq,) and v (nv,) near q on the bilateral constraints; whether it converged ()."""


class Arrival(NamedTuple):
    """Where trees first hit in a step h (s), and how fast.

    place (nq,): q then. hits, times (k,): which contacts hit, and when. flies, time (nv,): which
    trees do, and when first. onset, before (nv,): v at the start and then, in the bodies then; a
    (nv,): the acceleration there.
    """

    place: jax.Array
    hits: jax.Array
    times: jax.Array
    flies: jax.Array
    time: jax.Array
    onset: jax.Array
    before: jax.Array
    a: jax.Array
    h: jax.Array

    def coming(self, normals: Float[Array, "k nv"]) -> Float[Array, " k"]:
        """The rates (k,) of gaps before: at their own time of those that hit."""
        at_hits = self.onset[None] + self.times[:, None] * self.a
        return jnp.sum(normals * jnp.where(self.hits[:, None], at_hits, self.before), axis=1)

    def free(self, after: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """v* (nv,) for an acceleration (nv,) after the jump."""
        rest = self.h - self.time
        return self.onset + jnp.where(
            self.flies, self.time * self.a + rest * after, self.h * self.a
        )

    def falling(
        self, normals: Float[Array, "k nv"], after: Float[Array, " nv"]
    ) -> Float[Array, " k"]:
        """By how much the rates (k,) of gaps change from their impacts to the end of the step."""
        return (self.h - self.times) * product(normals, after)


class Jump(NamedTuple):
    """How velocities jump: after (nv,), v' at the end of the step.

    moved (nv, k), change (nv,): by what each contact and all impulses change v. normals (k, nv) and
    rebound (k,): the rows of the gaps, and the rates at which impacts would let them go. presses
    (k,): whether contacts do. memory: that of the method. found (): whether all that was found.
    """

    after: jax.Array
    moved: jax.Array
    change: jax.Array
    normals: jax.Array
    rebound: jax.Array
    presses: jax.Array
    memory: Any
    found: jax.Array


def located(
    problem: Flights,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    touched: Bool[Array, "k trees"],
    closed: Bool[Array, " k"],
    h: Scalar,
    idle: float,
    jump: Callable[[Arrival, Callable[[jax.Array], jax.Array]], Jump],
) -> tuple[tuple, Any, Bool[Array, ""]]:
    """q (nq,) and v (nv,) at the end of a step h (s), the memory, and whether they were found ().

    touched: which trees each contact moves. closed (k,): which contacts do not hit, since they were
    closed before, say. idle: the part of the step after which trees jump that hit nothing. jump:
    how velocities jump at an arrival; with the acceleration (nv,) after a change (nv,) of v.
    """
    h = jnp.asarray(h, v.dtype)
    start = problem.accelerating(q, v, h)

    def path(time: jax.Array, flies: jax.Array) -> tuple[jax.Array, jax.Array]:
        """q after the time (nv,) without impulses, and the mean v on the way there."""
        return problem.coast(q, v + jnp.where(flies, time / 2, 0) * start, time)

    hits, times, time, flies = _impacts(problem, path, q, v, touched, closed, h, idle)
    place, mean = path(time, flies)
    a = problem.accelerating(place, mean, h)
    onset = mean - jnp.where(flies, time / 2, 0) * a
    before = onset + jnp.where(flies, time, 0) * a
    arrival = Arrival(place, hits, times, flies, time, onset, before, a, h)

    def again(change: jax.Array) -> jax.Array:
        return jnp.where(flies, problem.accelerating(place, before + change, h), a)

    ended = jump(arrival, again)

    # The rest of the way.
    after, rest = again(ended.change), h - time
    bounces = hits & (arrival.falling(ended.normals, after) + ended.rebound > 0)
    stays = ended.presses & ~bounces
    soars = flies & ~jnp.any(stays[:, None] & touched, axis=0)[problem.trees]
    late, hit = jnp.where(hits, times, 0), hits.astype(v.dtype)
    owed = jnp.sum(ended.moved * late, axis=1) - time * jnp.sum(ended.moved * hit, axis=1)
    owed = jnp.where(flies & (rest > 0), owed / jnp.where(rest > 0, rest, 1), 0)
    half = jnp.where(soars, rest / 2, 0)
    q, arrived = problem.coast(place, ended.after - half * after - owed, rest)
    arrived = arrived + half * problem.accelerating(q, arrived, h) + owed
    return (q, arrived), ended.memory, ended.found


def _impacts(
    problem: Flights,
    path: Callable[[jax.Array, jax.Array], tuple[jax.Array, jax.Array]],
    q: jax.Array,
    v: jax.Array,
    touched: jax.Array,
    closed: jax.Array,
    h: jax.Array,
    idle: float,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Which contacts hit (k,), and when (k,); when trees do first (nv,), and whether they do (nv,).

    path(time, flies): where trees are after times (nv,). The others: as of `located`.
    """
    trees = problem.trees
    member = np.array([np.argmax(trees == n) for n in range(touched.shape[1])], int)

    def gaps(time: jax.Array, flies: jax.Array) -> jax.Array:
        return problem.gaps(path(time, flies)[0])

    every = jnp.ones(v.shape, bool)
    begin, middle, end = problem.gaps(q), *(gaps(jnp.full_like(v, s * h), every) for s in (0.5, 1))
    hits = (begin > 0) & (end <= 0) & ~closed
    times = h * _crossing(begin, middle, end, hits)

    def first(times: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The time (nv,) of the first impact of each tree, or without one, and if it has one."""
        each = jnp.where(hits[:, None] & touched, times[:, None], jnp.inf)
        least = jnp.min(each, axis=0, initial=jnp.inf)
        flies = jnp.isfinite(least)
        return jnp.where(flies, least, idle * h)[trees], flies[trees]

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


def _crossing(begin: jax.Array, middle: jax.Array, end: jax.Array, hits: jax.Array) -> jax.Array:
    """Where (k,), from 0 to 1, parabolas through three values (k,) first come to zero."""
    slope, bend = -3 * begin + 4 * middle - end, 2 * (begin - 2 * middle + end)
    square = slope * slope - 4 * bend * begin
    root = jnp.sqrt(jnp.where(hits & (square > 0), square, 1))
    below = jnp.where(hits & (root - slope > 0), root - slope, 1)
    return jnp.clip(jnp.where(hits, 2 * begin / below, 0), 0, 1)
