"""Distances whose gradients are continuous: those of shapes with rounded edges and faces.

With kinks of a separation rounded over a length mu (`cores.softened`), each segment and each disc
reaches at most mu further, and the hull of n points at most mu log n. All reaches stay convex, so
that they are those of two bodies around the shapes, whose surfaces are smooth and nowhere flat. Of
bodies apart the signed distance is the only maximum of this separation: it is smooth, and with

    mu (segments + discs and ellipsoids + log n + log k) = r

at most r less than that of the shapes, and never more. Where bodies overlap, gradients still jump
where two ways out are equally short, such as past two corners. Along a plane the normal is known,
and nothing jumps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ...groups.components import Matrix, Scalar, Vector
from ...spatial import Transform
from .cores import Parts, core, parts_of, softened, softened_separation
from .normals import FIRST, climb, far_and_wide, repeated, row, solved, stiffness, tangents, unit
from .support import extent
from .witness import Witness, along, first_least, placed, relative, swapped

# Kinks are rounded less and less, by this factor so many times.
_FASTER, _TIMES = 0.25, 10


def smooth_points(
    kind_a: str, kind_b: str, radius: Scalar
) -> Callable[[Transform, Any, Transform, Any], Witness]:
    """The function that finds the nearest points, k = 1, of shapes rounded over a radius r in m.

    As of `contact_points`. Raises ValueError for two planes and for height fields.
    """
    if "heights" in (kind_a, kind_b) or kind_a == kind_b == "plane":
        raise ValueError(
            "distances of height fields and of two planes are not smoothed: leave out the pair, or "
            "the smoothing"
        )
    if kind_b == "plane":
        found = smooth_points(kind_b, kind_a, radius)
        return lambda pose, a, other, b: swapped(found(other, b, pose, a))
    find = _above if kind_a == "plane" else _between
    return lambda pose, a, other, b: find(kind_a, kind_b, radius, pose, a, other, b)


def rounding(parts: Parts, radius: Scalar) -> Scalar:
    """The length mu over which kinks are rounded so that reaches grow by no more than a radius.

    1 where nothing has kinks.
    """
    corners = (math.log(points.shape[0]) for points in (parts.points, parts.opposite))
    count = parts.sides.shape[0] + parts.rounds.shape[0] + sum(corners)
    return radius / count if count else jnp.ones_like(radius)


def _above(
    kind_a: str, kind_b: str, radius: Scalar, pose: Transform, a: Any, other: Transform, b: Any
) -> Witness:
    """A plane, the first, and a shape."""
    seen = relative(pose, other)
    body, ball = core(kind_b, seen, b)
    none = jnp.zeros((1, 3), body.centre.dtype)
    nothing = type(body)(none[0], body.sides[:0], body.rounds[:0], none)
    parts = parts_of(nothing, body)
    n = jnp.array([0.0, 0.0, 1.0], body.centre.dtype)
    mu = rounding(parts, radius)
    gap, gradient, _, _ = softened(parts, n, mu)
    # The second point less its height is on the plane.
    first = Vector.from_array(gradient - n * gradient[2])
    return placed(pose, _one(Vector.from_array(n), gap - ball, first))


def _between(
    kind_a: str, kind_b: str, radius: Scalar, pose: Transform, a: Any, other: Transform, b: Any
) -> Witness:
    """Two bounded shapes."""
    seen = relative(pose, other)
    zero = jnp.zeros_like(seen.translation.x)
    home = Transform(Matrix.scaled_identity(zero + 1), Vector(zero, zero, zero))
    (one, ball_a), (two, ball_b) = core(kind_a, home, a), core(kind_b, seen, b)
    parts = parts_of(one, two)
    mu = rounding(parts, radius)
    size = jax.lax.stop_gradient(extent(parts))
    plain = jax.lax.stop_gradient(jax.tree.map(lambda x: x / size, parts))
    start = jax.lax.stop_gradient(crest(plain, jax.lax.stop_gradient(mu) / size))
    _, gradient, hessian, _ = softened(parts, start, mu)
    t = tangents(start, jnp.zeros_like(start))
    matrix = jax.lax.stop_gradient(stiffness(gradient, hessian, start, t))
    n = unit(start + solved(matrix, t @ gradient) @ t)
    gap = softened_separation(parts, n, mu)
    # The point of the first body furthest along n: across it, as its parts have it.
    alone = parts_of(one, type(two)(one.centre, two.sides[:0], two.rounds[:0], 0 * two.points[:1]))
    reach, across, _, _ = softened(alone, n, mu)
    place = -(across - n * (n @ across)) - n * reach
    first = Vector.from_array(one.centre + place + n * ball_a)
    return placed(pose, _one(Vector.from_array(n), gap - ball_a - ball_b, first))


def crest(parts: Parts, mu: Scalar) -> jax.Array:
    """The normal (3,) of the greatest separation with kinks rounded over mu; sizes about 1."""
    ways, _ = far_and_wide(parts)
    ways = jnp.concatenate((ways, unit(parts.step)[None]))
    free = jnp.zeros(3, parts.step.dtype)
    count = ways.shape[0]

    def improve(j: jax.Array, state: Any) -> Any:
        ways, heights = state

        def finer(k: jax.Array, n: jax.Array) -> jax.Array:
            sharp = FIRST * _FASTER ** k.astype(n.dtype)
            steps = jnp.where(sharp > mu, 6, 0)
            return climb(parts, n, free, jnp.maximum(sharp, mu), 1, steps)

        n = repeated(_TIMES, finer, row(ways, j))
        n = climb(parts, n, free, mu, 1, 40)
        here = jnp.arange(count, dtype=jnp.int32) == j
        height = softened_separation(parts, n, mu)
        return jnp.where(here[:, None], n, ways), jnp.where(here, height, heights)

    heights = jnp.full(count, -1e9, parts.step.dtype)
    ways, heights = repeated(count, improve, (ways, heights))
    return first_least(-heights, ways)[0]


def _one(normal: Vector, gap: Scalar, first: Vector) -> Witness:
    """A single contact point, k = 1."""
    one = along(normal, gap, first)
    return jax.tree.map(lambda x: jnp.asarray(x)[None], one)
