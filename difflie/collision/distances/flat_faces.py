"""The contact points of two cores that lie flat on each other, for a given normal.

Of each core the points that are furthest along eight directions are taken, which are tilted a
little from the normal: the corners of a face, the ends of an edge or of the side of a cylinder, or
eight points of a rim. Seen along the normal they are convex polygons in one plane, and contact
points are corners of what these share: four of them that span it. The gap of a point is the way
from one polygon to the plane of the other along the normal. Which corners these are is found
without derivatives.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from ...groups.components import Scalar, components
from .cores import Core
from .normals import highest, picks, row, solved, tangents, unit
from .witness import FAR, first_least, select

CORNERS = 8
AROUND = np.stack([f(2 * np.pi * np.arange(CORNERS) / CORNERS) for f in (np.cos, np.sin)], 1)
TILT = 0.05  # radian
# How wide what has no area counts, by its length: lines that cross at a small angle share a part.
WIDE = 0.02


@components
@dataclass(frozen=True, slots=True)
class Polygon:
    """The points (8, 3) of a core around a normal, their places (8, 2) across it and heights (8,)
    along it.

    single: whether it is a point, for which another polygon stands; thin: whether it has no area;
    wider: by how much it counts as wider in m.
    """

    points: jax.Array
    places: jax.Array
    heights: jax.Array
    single: Scalar
    thin: Scalar
    wider: Scalar


@components
@dataclass(frozen=True, slots=True)
class Corner:
    """A corner of what two polygons share, by numbers: the side of one (of the first, or not), the
    end of it, and the side of the other polygon that cuts it off there, -1 if none does."""

    of_first: Scalar
    side: Scalar
    end: Scalar
    cut: Scalar


def polygon(
    core: Core, sense: float, n: jax.Array, t: jax.Array, origin: jax.Array, size: Scalar
) -> Polygon:
    """What of a core faces along `sense` n, with tangents t (2, 3); places are from the origin."""
    stop = jax.lax.stop_gradient
    directions = sense * n + TILT * jnp.asarray(AROUND, n.dtype) @ t
    signs = jnp.where(stop(directions @ core.sides.T) < 0, -1, 1).astype(n.dtype)
    points = core.centre + signs @ core.sides
    if core.points.shape[0] > 1:
        tops = [highest(stop(core.points), stop(d)) for d in directions]
        points += jnp.stack(tops) @ core.points
    for i in range(core.rounds.shape[0]):
        m = core.rounds[i]
        bent = sense * m @ n
        # A curved side is met along the normal, a flat one by its rim.
        size = jnp.sqrt((m * m).sum() / 2)
        curved = stop((bent @ bent) > (TILT * size) ** 2)
        points += unit(jnp.where(curved, bent, directions @ m.T)) @ m
    steps = points - origin
    places = steps @ t.T
    # Another polygon stands for a point: whatever follows has derivatives.
    single = stop(jnp.maximum(*jnp.ptp(places, 0))) <= 1e-6 * size
    places = jnp.where(single, size * jnp.asarray(AROUND, n.dtype), places)
    heights = jnp.where(single, 0, steps @ n)
    width = stop(jnp.maximum(*jnp.ptp(places, 0)))
    turned = jnp.roll(places, -1, 0)
    area = stop(places[:, 0] * turned[:, 1] - places[:, 1] * turned[:, 0]).sum()
    eps = jnp.finfo(n.dtype).eps
    thin = area <= WIDE * width * width
    wider = width * jnp.where(thin, WIDE, 64 * eps)
    return Polygon(points, places, heights, single, thin, wider)


def cross(a: jax.Array, b: jax.Array) -> jax.Array:
    """The cross product of vectors (..., 2)."""
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def borders(polygon: Polygon) -> tuple[jax.Array, jax.Array]:
    """The directions (8, 2) of a polygon's sides, and by how much (8,) it reaches over them.

    Where one has no length it is that across its direction, the end of what is thin.
    """
    places = polygon.places
    sides = jnp.roll(places, -1, 0) - places
    around = jnp.asarray(AROUND, places.dtype)
    across = jnp.stack([-around[:, 1], around[:, 0]], 1)
    width = jnp.maximum(*jnp.ptp(places, 0))
    none = jax.lax.stop_gradient((sides * sides).sum(1) <= (1e-6 * width) ** 2)
    wider = jnp.where(none, 0, polygon.wider)
    return jnp.where(none[:, None], across, unit(sides)), wider


def within(place: jax.Array, polygon: Polygon, size: Scalar) -> Scalar:
    """Whether a place (2,) is in a polygon, however thin that is."""
    e, _ = borders(polygon)
    return (cross(e, place - polygon.places) >= -1e-6 * size).all()


def corners(own: Polygon, other: Polygon, of_first: bool) -> tuple[Corner, jax.Array, jax.Array]:
    """The ends (16,) of the parts of one polygon's sides that lie over the other: these, whether
    there are such, and where along their sides they lie."""
    (a, b), (e, wider) = (own.places, other.places), borders(other)
    d = jnp.roll(a, -1, 0) - a
    length = jnp.sqrt((d * d).sum(1))
    eps = jnp.finfo(a.dtype).eps
    low, high = jnp.zeros_like(length), jnp.ones_like(length)
    good = jnp.ones(CORNERS, bool)
    first = last = jnp.full(CORNERS, -1, jnp.int32)
    for j in range(CORNERS):
        inside, rate = cross(e[j], a - b[j]) + wider[j], cross(e[j], d)
        level = jnp.abs(rate) <= eps**0.6 * length
        at = -inside / jnp.where(level, 1, rate)
        good &= ~level | (inside >= -64 * eps)
        later, sooner = ~level & (rate > 0) & (at > low), ~level & (rate < 0) & (at < high)
        low, first = jnp.where(later, at, low), jnp.where(later, j, first)
        high, last = jnp.where(sooner, at, high), jnp.where(sooner, j, last)
    # What is thin cuts off nothing but what is thin, too.
    good &= (low <= high + 64 * eps) & (~other.thin | (own.thin & of_first))
    numbers = jnp.arange(CORNERS, dtype=jnp.int32)
    ends = jnp.repeat(jnp.arange(2, dtype=jnp.int32), CORNERS)
    flags = jnp.full(2 * CORNERS, of_first)
    found = Corner(flags, jnp.append(numbers, numbers), ends, jnp.append(first, last))
    return found, jnp.append(good, good), jnp.append(low, high)


def plane(polygon: Polygon) -> tuple[jax.Array, Scalar, jax.Array]:
    """The plane next to a polygon: a place (2,), the height and the slopes (2,) there."""
    middle, height = polygon.places.mean(0), polygon.heights.mean()
    places, heights = polygon.places - middle, polygon.heights - height
    spread = places.T @ places
    # What has no width has no slope across.
    least = jnp.finfo(places.dtype).eps ** 0.5 * jax.lax.stop_gradient(jnp.trace(spread))
    return middle, height, solved(spread + least * jnp.eye(2, dtype=places.dtype), heights @ places)


def raised(plane: tuple[jax.Array, Scalar, jax.Array], places: jax.Array) -> jax.Array:
    """The heights of a plane at places (..., 2)."""
    middle, height, slope = plane
    return height + (places - middle) @ slope


def placed_corner(
    first: Polygon, second: Polygon, n: jax.Array, corner: Corner
) -> tuple[jax.Array, jax.Array]:
    """The gap at a corner, and its point (3,) on the first core."""
    own, other = select(corner.of_first, (first, second), (second, first))

    def at(rows: jax.Array, number: Scalar) -> jax.Array:
        return picks(number[None], rows)[0] @ rows

    following = jnp.where(corner.side == CORNERS - 1, 0, corner.side + 1)
    a, b = at(own.places, corner.side), at(own.places, following)
    (e, wider), start = (at(x, corner.cut) for x in borders(other)), at(other.places, corner.cut)
    inside, rate = cross(e, a - start) + wider, cross(e, b - a)
    free = corner.cut < 0
    along = jnp.where(free, corner.end, -inside / jnp.where(free, 1, rate))
    place = a + along * (b - a)
    p, q = at(own.points, corner.side), at(own.points, following)
    h, k = at(own.heights, corner.side), at(own.heights, following)
    point, height = p + along * (q - p), h + along * (k - h)
    gap = raised(plane(other), place) - height
    gap = jnp.where(corner.of_first, gap, -gap)
    return gap, jnp.where(corner.of_first, point, point - gap * n)


def spanning(
    places: jax.Array, good: jax.Array, start: jax.Array, near: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Three of the places (m, 2) that span most with a given one: their numbers (3,), and whether
    they are good and further from each other than `near`."""
    numbers = jnp.arange(places.shape[0], dtype=jnp.int32)
    steps = places - start
    square = jnp.where(good, (steps * steps).sum(1), -1)
    far, way = first_least(-square, numbers, steps)
    size = jnp.sqrt((way * way).sum())
    aside = cross(way, steps)
    left, most = first_least(jnp.where(good, -aside, FAR), numbers, aside)
    right, least = first_least(jnp.where(good, aside, FAR), numbers, aside)
    some = good.any() & (size > near)
    valid = jnp.stack([some, some & (most > near * size), some & (-least > near * size)])
    return jnp.stack([far, left, right]), valid


def flat_points(
    a: Core, b: Core, n: jax.Array, gap: jax.Array, point: jax.Array, size: Scalar
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The gaps (4,), points (4, 3) on the first core and whether there are so many.

    gap and point: the signed distance and the point of the first core there, which comes first
    unless a corner is as near. Everything has derivatives.
    """
    t = tangents(n, jnp.zeros_like(n))
    origin = jax.lax.stop_gradient(point)
    first, second = (
        polygon(core, sense, n, t, origin, size) for core, sense in ((a, 1.0), (b, -1.0))
    )
    still = jax.lax.stop_gradient((first, second))
    one, two = corners(still[0], still[1], True), corners(still[1], still[0], False)
    found, good, along = jax.tree.map(lambda x, y: jnp.concatenate((x, y)), one, two)
    levels = plane(still[0]), plane(still[1])

    def between(own: Polygon, along: jax.Array) -> tuple[jax.Array, jax.Array]:
        along = along.reshape(2, CORNERS)
        places, heights = own.places, own.heights
        d, k = jnp.roll(places, -1, 0) - places, jnp.roll(heights, -1) - heights
        return (places + along[..., None] * d).reshape(-1, 2), (heights + along * k).ravel()

    m = 2 * CORNERS
    places, heights = between(still[0], along[:m])
    places_b, heights_b = between(still[1], along[m:])
    below, below_b = -heights, -raised(levels[0], places_b)
    gaps = raised(levels[1], places) + below, heights_b + below_b
    gaps, places = jnp.concatenate(gaps), jnp.concatenate((places, places_b))
    below = jnp.concatenate((below, below_b))
    least = jax.lax.stop_gradient(gap)
    doubt = 0.01 * jnp.finfo(n.dtype).eps ** 0.5 * size
    numbers = jnp.arange(2 * m, dtype=jnp.int32)
    deepest, start, lowest, below = first_least(
        jnp.where(good, gaps, FAR), numbers, places, gaps, below
    )
    # A corner stands for the given point if it is as near, as far along the normal, and on both.
    covered = good.any() & (jnp.abs(lowest - least) <= doubt) & (jnp.abs(below) <= doubt)
    covered &= within(start, still[0], size) & within(start, still[1], size)
    # Of thin ones that cross, the ends of the crossing are too near to be two.
    thin = still[0].thin & still[1].thin
    wider = jnp.minimum(still[0].wider, still[1].wider)
    near = jnp.where(thin, 20 * wider, 1e-3 * size)
    more, valid = spanning(places, good, jnp.where(covered, start, 0), near)
    covered &= ~thin | valid[0]
    several = ~jnp.stack([x.single for x in still]).any()
    covered, valid = covered & several, valid & several
    chosen = jnp.append(deepest, more)
    taken = [jax.tree.map(lambda x, k=k: row(x, k), found) for k in chosen]
    placed = [placed_corner(first, second, n, corner) for corner in taken]
    gaps, points = (jnp.stack(x) for x in zip(*placed, strict=True))
    # No corner is nearer than the signed distance: where polygons stand for curved faces.
    stop = jax.lax.stop_gradient
    gaps = gaps + stop(jnp.maximum(least - gaps, 0))
    gaps = gaps.at[0].set(jnp.where(covered, gaps[0] + stop(least - gaps[0]), gap))
    points = points.at[0].set(jnp.where(covered, points[0], point))
    return gaps, points, jnp.append(True, valid)
