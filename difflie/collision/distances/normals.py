"""The normal along which two cores are separated most.

From the best of fixed directions, Newton's method climbs on the sphere while kinks are rounded less
and less. Around the summit all ways to lie on kinks are tried: on none, on one (n at right angles
to a segment or an edge), on two (their common normal) or on that of a disc (its axis); each is
climbed with its kinks held, and the one of greatest separation counts, which is measured without
rounding. So whatever is found is separated that far; that nothing is separated further is certain
for shapes apart, where there is one summit only. Overlapping ones have several, and the best of
those that are seen from 200 directions is taken.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from ...groups.components import Scalar, components
from .cores import Parts, Shares, separation, softened
from .witness import first_least

DIRECTIONS = 200
NEIGHBOURS = 8
STARTS = 8
TOPS = 8
# Over which lengths kinks are rounded, at first and at last.
FIRST, LAST, LAST_SINGLE = 0.03, 1e-9, 1e-4


def _spread(n: int) -> np.ndarray:
    """Unit vectors (n, 3), evenly spread along a spiral."""
    z = 1 - (2 * np.arange(n) + 1) / n
    angle = np.pi * (3 - 5**0.5) * np.arange(n)
    r = np.sqrt(1 - z * z)
    return np.stack([r * np.cos(angle), r * np.sin(angle), z], 1)


SPREAD = _spread(DIRECTIONS)
NEAR = np.argsort(-SPREAD @ SPREAD.T, axis=1)[:, 1 : NEIGHBOURS + 1]


@components
@dataclass(frozen=True, slots=True)
class Summit:
    """The normal (3,), and the kinks it lies on.

    edge (e,): picks one of `edges`, if on one kink; both (c,): picks one of `crossings`, with its
    sense, if on two. tops and opposite_tops: pick the highest points of the hulls (up to 8, n).
    """

    normal: jax.Array
    edge: jax.Array
    both: jax.Array
    tops: jax.Array
    opposite_tops: jax.Array


def unit(v: jax.Array) -> jax.Array:
    """v / |v| of vectors (..., 3), zero where v is."""
    square = (v * v).sum(-1, keepdims=True)
    good = square > 0
    return jnp.where(good, v / jnp.sqrt(jnp.where(good, square, 1)), 0)


def highest(points: jax.Array, n: jax.Array) -> jax.Array:
    """Picks the (at most) four points (n, 3) that are highest along n: rows of zeros and a one."""
    count = min(TOPS, points.shape[0])
    _, index = jax.lax.top_k(points @ n, count)
    return (index[:, None] == jnp.arange(points.shape[0])).astype(points.dtype)


def kinked(e: int) -> np.ndarray:
    """Which of e edges each of the `crossings` of two belongs to: (c, e)."""
    pairs = list(itertools.combinations(range(e), 2))
    return np.array([[i in pair for i in range(e)] for pair in pairs], float).reshape(len(pairs), e)


def edges(parts: Parts, tops: jax.Array, opposite_tops: jax.Array) -> jax.Array:
    """What a normal on a kink is at right angles to: segments, and edges of the hulls (e, 3)."""
    a, b = tops @ parts.points, opposite_tops @ parts.opposite
    return jnp.concatenate((parts.sides, a[1:] - a[:1], b[1:] - b[:1]))


def crossings(parts: Parts, edges: jax.Array, discs: tuple[int, ...]) -> jax.Array:
    """Normals of two edges each, and of the discs among the rounds (c, 3)."""
    pairs = np.array(list(itertools.combinations(range(edges.shape[0]), 2)), int).reshape(-1, 2)
    rounds = parts.rounds[np.array(discs, int)]
    crosses = jnp.cross(unit(edges)[pairs[:, 0]], unit(edges)[pairs[:, 1]])
    return unit(jnp.concatenate((crosses, jnp.cross(rounds[:, 0], rounds[:, 1]))))


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


LENGTHS = np.array([1, 0.5, 0.2, 0.05, 0.01, 0])
LONGEST = 0.5  # radian


def climbed(parts: Parts, n: jax.Array, edge: jax.Array, mu: Scalar) -> jax.Array:
    """One step of Newton's method on the sphere, of the length that climbs most."""
    _, gradient, hessian, _ = softened(parts, n, mu)
    t = tangents(n, edge)
    x = solved(stiffness(gradient, hessian, n, t), t @ gradient)
    step = x * jnp.minimum(1, LONGEST / jnp.maximum(jnp.sqrt(x @ x), 1e-30)) @ t
    tried = unit(n + jnp.asarray(LENGTHS, n.dtype)[:, None] * step)
    heights = jax.vmap(lambda m: softened(parts, m, mu)[0])(tried)
    # Where rounding hides what is higher, the whole step counts.
    heights += jnp.where(LENGTHS == 1, 64 * jnp.finfo(n.dtype).eps, 0)
    return first_least(-heights, tried)[0]


def summit(parts: Parts, discs: tuple[int, ...]) -> Summit:
    """The normal of the greatest separation; no derivative passes. Sizes of parts about 1."""
    dtype = parts.step.dtype
    spread = jnp.asarray(SPREAD, dtype)
    heights = separation(parts, spread)
    tops = (heights[:, None] >= heights[NEAR]).all(1)
    _, index = jax.lax.top_k(jnp.where(tops, heights, heights - 1e3), STARTS)
    n = jnp.concatenate((spread[index], unit(parts.step)[None]))
    free = jnp.zeros_like(n)
    last, steps = (LAST, 34) if dtype == jnp.float64 else (LAST_SINGLE, 14)
    rate = (last / FIRST) ** (2 / (steps - 2))

    def step(i: jax.Array, n: jax.Array) -> jax.Array:
        mu = FIRST * jnp.asarray(rate, dtype) ** (i // 2)
        return jax.vmap(climbed, (None, 0, 0, None))(parts, n, free, mu)

    n = jax.lax.fori_loop(0, steps, step, n)
    (n,) = first_least(-separation(parts, n), n)
    # Where corners nearly touch, the highest points are seen from there alone.
    return on_kinks(parts, discs, on_kinks(parts, discs, n).normal)


def shares_at(parts: Parts, n: jax.Array) -> Shares:
    """Which points meet at the summit n (3,): those on rounded kinks, where these balance."""
    mu = jnp.asarray(1e-6 if n.dtype == jnp.float64 else 1e-3, n.dtype)
    free = jnp.zeros_like(n)
    n = jax.lax.fori_loop(0, 16, lambda _, n: climbed(parts, n, free, mu), n)
    return softened(parts, n, mu)[3]


def on_kinks(parts: Parts, discs: tuple[int, ...], n: jax.Array) -> Summit:
    """The summit near a normal (3,), the best of those on all kinks around it."""
    dtype = n.dtype
    eps = jnp.finfo(dtype).eps
    picked, opposite = highest(parts.points, n), highest(parts.opposite, n)
    lines = unit(edges(parts, picked, opposite))
    corners = crossings(parts, lines, discs)
    corners = jnp.concatenate((corners, -corners))
    held = jnp.concatenate((lines, jnp.zeros((1, 3), dtype)))
    ways = unit(n - (held @ n)[:, None] * held)

    def polish(_: jax.Array, n: jax.Array) -> jax.Array:
        mu = jnp.asarray(1e-13 if dtype == jnp.float64 else 1e-6, dtype)
        return jax.vmap(climbed, (None, 0, 0, None))(parts, n, held, mu)

    ways = jax.lax.fori_loop(0, 6, polish, ways)
    ways = jnp.concatenate((corners, ways))
    c, e = corners.shape[0], lines.shape[0]
    good = ((ways * ways).sum(-1) > 0.5) & jnp.concatenate(
        (jnp.ones(c, bool), (lines * lines).sum(-1) > 0.5, jnp.ones(1, bool))
    )
    kinks = np.repeat([2, 1, 0], [c, e, 1])
    score = jnp.where(good, -separation(parts, ways) - 32 * eps * kinks, 1e9)
    chosen, n = first_least(score, jnp.eye(c + e + 1, dtype=dtype), ways)
    both = chosen[: c // 2] - chosen[c // 2 : c]
    return Summit(n, chosen[c : c + e], both, picked, opposite)
