"""The normal along which two cores are separated most.

From the best of fixed directions, Newton's method climbs on the sphere while kinks are rounded less
and less. Around the summit all ways to lie on kinks are tried: on none, on one (n at right angles
to a segment or an edge), on two (their common normal) or on that of a disc (its axis); each is
climbed with its kinks held, and the one of greatest separation counts, which is measured without
rounding. So whatever is found is separated that far; that nothing is separated further is certain
for shapes apart, where there is one summit only. Overlapping ones have several, and the best of
those that are seen from 200 directions is taken.

Everything runs in loops on the numbers of one pair, whose counters choose: programs repeat these
instead of writing them out, and stop where nothing moves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from ...groups.components import Scalar, components
from .cores import Parts, Shares, separation, softened, softened_separation
from .witness import first_least, select

State = TypeVar("State")

DIRECTIONS = 200
STARTS = 8
# Cosine of the angle within which the better one of two directions is kept.
CLOSE = 0.94
TOPS = 8
# Over which lengths kinks are rounded: at first, when the best summits are chosen, and at last.
FIRST, MIDDLE = 0.03, 1e-3
LAST, LAST_SINGLE = 1e-9, 1e-4
# How far below the best one a summit may be when it is given up.
BEHIND = 0.05
LONGEST = 0.5  # radian


@components
@dataclass(frozen=True, slots=True)
class Kinks:
    """Up to two kinks: sums of parts that a normal on them is at right angles to, with weights of
    `Parts.sides` (2, g), `points` (2, n) and `opposite` (2, k); zero where there is none."""

    sides: jax.Array
    points: jax.Array
    opposite: jax.Array

    def edges(self, parts: Parts) -> jax.Array:
        """The directions (2, 3) of the segments and edges."""
        return (
            self.sides @ parts.sides + self.points @ parts.points + self.opposite @ parts.opposite
        )


@components
@dataclass(frozen=True, slots=True)
class Summit:
    """The normal (3,), the kinks it lies on, and discs (d,), which picks the disc whose axis it is,
    if it is one."""

    normal: jax.Array
    kinks: Kinks
    discs: jax.Array


def unit(v: jax.Array) -> jax.Array:
    """v / |v| of vectors (..., 3), zero where v is."""
    square = (v * v).sum(-1, keepdims=True)
    good = square > 0
    return jnp.where(good, v / jnp.sqrt(jnp.where(good, square, 1)), 0)


def repeated(
    count: int | jax.Array,
    step: Callable[[jax.Array, State], State],
    state: State,
    unfinished: Callable[[State], Scalar] = lambda _: True,
) -> State:
    """The state after so many steps, each of its number, or once it is finished."""

    def more(carried: tuple[jax.Array, State]) -> Scalar:
        return (carried[0] < count) & unfinished(carried[1])

    def following(carried: tuple[jax.Array, State]) -> tuple[jax.Array, State]:
        return carried[0] + 1, step(*carried)

    return jax.lax.while_loop(more, following, (jnp.asarray(0, jnp.int32), state))[1]


def row(of: jax.Array, i: jax.Array) -> jax.Array:
    """The row of this number."""
    return jax.lax.dynamic_index_in_dim(of, i, keepdims=False)


def rows(of: jax.Array, numbers: jax.Array) -> jax.Array:
    """The rows (k, ...) of these numbers (k,)."""
    return jnp.take(of, numbers, axis=0, mode="clip")


def picks(numbers: jax.Array, of: jax.Array) -> jax.Array:
    """Zeros (k, n), and ones at the places (k,), for an array of n rows."""
    places = jnp.arange(of.shape[0], dtype=jnp.int32)
    return (places == numbers[:, None]).astype(of.dtype)


def highest(points: jax.Array, n: jax.Array) -> jax.Array:
    """Picks the point of (n, 3) that is highest along n: zeros (n,) and a one."""
    return picks(jnp.argmax(points @ n).astype(jnp.int32)[None], points)[0]


def tops(points: jax.Array, n: jax.Array) -> jax.Array:
    """The numbers of the (at most 8) highest points along n, the highest first."""
    count = min(TOPS, points.shape[0])

    def next_one(k: jax.Array, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        found, heights = state
        i = jnp.argmax(heights).astype(jnp.int32)
        number = jnp.arange(points.shape[0], dtype=jnp.int32)
        found = jnp.where(jnp.arange(count, dtype=jnp.int32) == k, i, found)
        return found, jnp.where(number == i, -jnp.inf, heights)

    return repeated(count, next_one, (jnp.zeros(count, jnp.int32), points @ n))[0]


def tangents(n: jax.Array, edge: jax.Array) -> jax.Array:
    """Two directions (2, 3) in which n (3,) may turn: one, if it is to stay normal to an edge.

    `edge` is zero where there is none.
    """
    held = (edge * edge).sum() > 0.5
    z = jnp.abs(n[2]) < 0.6
    other = unit(
        jnp.where(z, jnp.stack([n[1], -n[0], 0 * n[0]]), jnp.stack([0 * n[0], n[2], -n[1]]))
    )
    axis = jnp.where(held, edge, other)
    return jnp.stack([jnp.cross(axis, n), jnp.where(held, 0, axis)])


def stiffness(gradient: jax.Array, hessian: jax.Array, n: jax.Array, t: jax.Array) -> jax.Array:
    """Minus the second derivative on the sphere along tangents t (2, 3), made positive: (2, 2)."""
    used = (t * t).sum(-1)  # 1, or 0 of a direction that is held
    a = jnp.diag((n @ gradient) * used + (1 - used)) - t @ hessian @ t.T
    middle = (a[0, 0] + a[1, 1]) / 2
    least = middle - jnp.hypot((a[0, 0] - a[1, 1]) / 2, a[0, 1])
    floor = 8 * jnp.finfo(n.dtype).eps
    shift = jnp.where(least > floor, 0, floor - least + jnp.abs(least))
    return a + shift * jnp.eye(2, dtype=n.dtype)


def solved(a: jax.Array, b: jax.Array) -> jax.Array:
    """a^-1 b of two equations."""
    x = jnp.stack([a[1, 1] * b[0] - a[0, 1] * b[1], a[0, 0] * b[1] - a[1, 0] * b[0]])
    return x / (a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0])


def climbed(parts: Parts, n: jax.Array, edge: jax.Array, mu: Scalar) -> jax.Array:
    """One step of Newton's method on the sphere, shortened until it climbs."""
    value, gradient, hessian, _ = softened(parts, n, mu)
    t = tangents(n, edge)
    x = solved(stiffness(gradient, hessian, n, t), t @ gradient)
    step = x * jnp.minimum(1, LONGEST / jnp.maximum(jnp.sqrt(x @ x), 1e-30)) @ t
    # Where rounding hides what is higher, the whole step counts.
    value = value - 64 * jnp.finfo(n.dtype).eps

    def tried(k: jax.Array, state: Any) -> Any:
        length = state[0]
        length = jnp.where(k < 5, length, 0)
        there = unit(n + length * step)
        return length * 0.3, there, softened_separation(parts, there, mu)

    start = jnp.ones_like(value), n, value - 1
    return repeated(6, tried, start, lambda state: state[2] < value)[1]


def climb(
    parts: Parts, n: jax.Array, edge: jax.Array, mu: Scalar, rate: float, count: int | jax.Array
) -> jax.Array:
    """Steps of Newton's method while mu falls by a rate; ends where n stays at a mu that does."""
    still = 4 * jnp.finfo(n.dtype).eps

    def step(_: jax.Array, state: Any) -> Any:
        n, mu, _ = state
        after = climbed(parts, n, edge, mu)
        moved = jnp.abs(after - n).max() if rate == 1 else jnp.ones_like(mu)
        return after, mu * rate, moved

    mu = jnp.asarray(mu, n.dtype)
    top = repeated(count, step, (n, mu, jnp.ones_like(mu)), lambda s: s[2] > still)[0]
    # Where a step had no number there is no direction, and none would count as touching.
    return jnp.where(top @ top > 0.5, top, n)


def far_and_wide(parts: Parts) -> tuple[jax.Array, jax.Array]:
    """The best of 200 directions along a spiral, not close to each other (8, 3); their f (8,)."""
    dtype = parts.step.dtype
    angle = np.pi * (3 - 5**0.5)
    cosine, sine = float(np.cos(angle)), float(np.sin(angle))

    def look(i: jax.Array, state: Any) -> Any:
        best, heights, c, s = state
        z = 1 - (2 * i.astype(dtype) + 1) / DIRECTIONS
        r = jnp.sqrt(1 - z * z)
        n = jnp.stack([r * c, r * s, z])
        height = separation(parts, n)
        # It competes with one close to it, or with the least of all.
        rivals = jnp.where(best @ n > CLOSE, heights - 1e6, heights)
        (place,) = first_least(rivals, jnp.eye(STARTS, dtype=bool))
        wins = place & (height > heights)
        best = jnp.where(wins[:, None], n, best)
        heights = jnp.where(wins, height, heights)
        return best, heights, c * cosine - s * sine, c * sine + s * cosine

    none = jnp.full(STARTS, -1e3, dtype)
    one = jnp.ones((), dtype)
    start = jnp.zeros((STARTS, 3), dtype), none, one, 0 * one
    return repeated(DIRECTIONS, look, start)[:2]


def summit(parts: Parts, discs: tuple[int, ...]) -> Summit:
    """The normal of the greatest separation; no derivative passes. Sizes of parts about 1."""
    dtype = parts.step.dtype
    last, before, after = (LAST, 8, 26) if dtype == jnp.float64 else (LAST_SINGLE, 6, 8)
    free = jnp.zeros(3, dtype)
    ways, heights = far_and_wide(parts)
    ways = jnp.concatenate((ways, unit(parts.step)[None]))
    heights = jnp.append(heights, separation(parts, ways[STARTS]))
    count = ways.shape[0]

    def improved(first: float, last: float, steps: int) -> Callable[..., Any]:
        def improve(j: jax.Array, state: Any) -> Any:
            ways, heights = state
            best = heights.max()
            # Apart there is one summit only.
            least = jnp.where(best > 0, best, best - (BEHIND if steps == after else 1e2))
            n = row(ways, j)
            twins = (ways @ n > 1 - 1e-5) & (jnp.arange(count) < j)
            wanted = (row(heights, j) >= least) & ~twins.any()
            rate = (last / first) ** (1 / (steps - 1))
            n = climb(parts, n, free, first, rate, jnp.where(wanted, steps, 0))
            here = wanted & (jnp.arange(count, dtype=jnp.int32) == j)
            return jnp.where(here[:, None], n, ways), jnp.where(here, separation(parts, n), heights)

        return improve

    state = repeated(count, improved(FIRST, MIDDLE, before), (ways, heights))
    ways, heights = repeated(count, improved(MIDDLE, last, after), state)
    (n,) = first_least(-heights, ways)
    # Where corners nearly touch, the highest points are seen from there alone.
    like = jax.eval_shape(lambda n: on_kinks(parts, discs, n), n)
    start = replace(jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), like), normal=n)
    return repeated(2, lambda _, top: on_kinks(parts, discs, top.normal), start)


def shares_at(parts: Parts, n: jax.Array) -> Shares:
    """Which points meet at the summit n (3,): those on rounded kinks, where these balance."""
    mu = jnp.asarray(1e-6 if n.dtype == jnp.float64 else 1e-3, n.dtype)
    return softened(parts, climb(parts, n, jnp.zeros_like(n), mu, 1, 16), mu)[3]


def on_kinks(parts: Parts, discs: tuple[int, ...], start: jax.Array) -> Summit:
    """The summit near a normal (3,), the best of those on all kinks around it."""
    dtype, eps = start.dtype, jnp.finfo(start.dtype).eps
    mu = 1e-13 if dtype == jnp.float64 else 1e-6
    one, two = tops(parts.points, start), tops(parts.opposite, start)
    a, b = rows(parts.points, one), rows(parts.opposite, two)
    lines = unit(jnp.concatenate((parts.sides, a[1:] - a[:1], b[1:] - b[:1])))
    axes = unit(disc_axes(parts, discs))
    g, m, e = parts.sides.shape[0], a.shape[0], lines.shape[0]
    none = jnp.asarray(-1, jnp.int32)
    # The score, the normal, the numbers of two edges and of a disc.

    def better(best: Any, n: jax.Array, kinks: int, good: Any, *which: jax.Array) -> Any:
        score = jnp.where(good, separation(parts, n) + 32 * eps * kinks, -1e9)
        return select(score > best[0], (score, n, *which), best)

    def upwards(n: jax.Array) -> jax.Array:
        return jnp.where(n @ start < 0, -n, n)

    def corner(_: jax.Array, state: Any) -> Any:
        best, i, j = state
        n = upwards(unit(jnp.cross(row(lines, i), row(lines, j))))
        last = j == e - 1
        after = jnp.where(last, i + 1, i), jnp.where(last, i + 2, j + 1)
        return better(best, n, 2, n @ n > 0.5, i, j, none), *after

    def cap(k: jax.Array, best: Any) -> Any:
        n = upwards(row(axes, k))
        return better(best, n, 2, n @ n > 0.5, none, none, k)

    def line(i: jax.Array, best: Any) -> Any:
        edge = row(lines, i)
        n = unit(start - (edge @ start) * edge)
        # Edges that are far from level meet no others up there.
        good = (edge @ edge > 0.5) & (n @ start > 0.9)
        n = climb(parts, n, edge, mu, 1, jnp.where(good, 6, 0))
        return better(best, n, 1, good, i, none, none)

    n = climb(parts, start, jnp.zeros_like(start), mu, 1, 6)
    best = better((jnp.asarray(-2e9, dtype), n, none, none, none), n, 0, True, none, none, none)
    if e:
        best = repeated(e, line, best)
    if discs:
        best = repeated(len(discs), cap, best)
    if e > 1:
        places = jnp.asarray(0, jnp.int32), jnp.asarray(1, jnp.int32)
        best = repeated(e * (e - 1) // 2, corner, (best, *places))[0]
    _, n, i, j, k = best
    numbers = jnp.stack([i, j])

    def weights(tops: jax.Array, first: int, points: jax.Array) -> jax.Array:
        """Of the points in the two edges, which begin at the highest one."""
        if tops.shape[0] < 2:
            return jnp.zeros((2, points.shape[0]), dtype)
        at = numbers - first + 1
        own = (at >= 1) & (at < tops.shape[0])
        ends = jnp.stack([row(tops, jnp.where(own[k], at[k], 0)) for k in (0, 1)])
        return picks(ends, points) - picks(tops[:1], points)

    kinks = Kinks(
        picks(numbers, parts.sides),
        weights(one, g, parts.points),
        weights(two, g + m - 1, parts.opposite),
    )
    return Summit(n, kinks, picks(k[None], axes)[0])


def disc_axes(parts: Parts, discs: tuple[int, ...]) -> jax.Array:
    """Normals (d, 3) of the discs among the rounds, of any length."""
    sides = parts.rounds[np.array(discs, int)]
    return jnp.cross(sides[:, 0], sides[:, 1])
