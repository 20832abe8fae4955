"""A height field, solid below, and balls: spheres, those on the axis of a capsule, and corners.

The surface is made of triangles, two for each cell of the grid, divided from the corner of least x
and y to that of greatest, as in MuJoCo. Looked at are the cells around a ball, `REACH` on each
side. The nearest triangle, edge or vertex is found without derivatives, and the gap to it has them.
A ball in a valley touches a second triangle, too. Below the surface the triangle above counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...groups.components import Scalar, Vector, components
from ...spatial import Transform
from .boxes import SIGNS, scaled
from .normals import repeated, row, rows, unit
from .witness import FAR, Witness, first_least, placed, select, select_rows

# How many cells to each side of a ball are looked at, and the radius of the largest in cells.
REACH = 2


@components
@dataclass(frozen=True, slots=True)
class Feature:
    """What a ball is nearest to: the numbers (3,) of the corners of a triangle, row by row, and
    which of them (3,) span it: all, those of an edge, or one."""

    numbers: jax.Array
    corners: jax.Array


def sphere(field: Transform, numbers: Any, pose: Transform, numbers_b: Any) -> Witness:
    """The nearest point, and one of a second triangle, k = 2."""
    (radius,) = numbers_b
    return balls(field, numbers, pose, jnp.zeros((1, 3), radius.dtype), radius)


def capsule(field: Transform, numbers: Any, pose: Transform, numbers_b: Any) -> Witness:
    """Those of balls at both ends and in the middle, k = 6."""
    radius, half_length = numbers_b
    along = jnp.asarray([[0, 0, 1], [0, 0, -1], [0, 0, 0]], half_length.dtype)
    return balls(field, numbers, pose, along * half_length, radius)


def box(field: Transform, numbers: Any, pose: Transform, numbers_b: Any) -> Witness:
    """All corners, k = 16."""
    corners = scaled(SIGNS, numbers_b[0]).to_array()
    return balls(field, numbers, pose, corners, jnp.zeros((), corners.dtype))


def hull(field: Transform, numbers: Any, pose: Transform, numbers_b: Any) -> Witness:
    """All n corners, k = 2 n."""
    return balls(field, numbers, pose, numbers_b[0], jnp.zeros((), numbers_b[0].dtype))


def balls(
    field: Transform, numbers: Any, pose: Transform, centres: jax.Array, radius: Scalar
) -> Witness:
    """Two points for each ball around centres (k, 3), which are given in the second frame."""
    at = pose.rotation @ Vector.from_array(centres) + (pose.translation - field.translation)
    points = field.rotation.transposed_times(at).to_array()
    still = jax.lax.stop_gradient((points, *numbers))
    k, none = points.shape[0], jnp.asarray(-1, jnp.int32)
    of_none = Feature(jnp.full(3, none), jnp.ones(3, bool))
    like = of_none, of_none, jnp.asarray(False)
    start = jax.tree.map(lambda x: jnp.broadcast_to(x, (k, *x.shape)), like)

    # A loop over balls: programs do not write it out.
    def look(j: jax.Array, features: Any) -> Any:
        found = nearest(row(still[0], j), *still[1:])
        here = jnp.arange(k, dtype=jnp.int32) == j
        return jax.tree.map(lambda x, y: select_rows(here, x[None], y), found, features)

    one, two, second = repeated(k, look, start)
    over = (jnp.abs(points[:, :2]) <= numbers[0]).all(1)
    found = []
    for feature, valid in ((one, over), (two, over & second)):
        gap, normal = jax.vmap(lambda p, f: distance(p, f, *numbers))(points, feature)
        first, surface = points - gap[:, None] * normal, points - radius * normal
        normal, first, surface = (Vector.from_array(x) for x in (normal, first, surface))
        found.append(Witness(jnp.where(valid, gap - radius, FAR), normal, first, surface, valid))
    return placed(field, jax.tree.map(lambda *x: jnp.concatenate(x), *found))


def around(p: jax.Array, half_sizes: jax.Array, heights: jax.Array) -> jax.Array:
    """The numbers (rows, columns) of the vertices around a point (3,)."""
    shape = np.array(heights.shape[::-1])
    size = np.minimum(2 * REACH + 2, shape)
    start = jnp.floor((p[:2] / half_sizes + 1) / 2 * (shape - 1)) - REACH
    i, j = jnp.clip(start, 0, shape - size).astype(jnp.int32)
    x, y = np.arange(size[0], dtype=np.int32), np.arange(size[1], dtype=np.int32)[:, None]
    return (j + y) * np.int32(shape[0]) + (i + x)


def divided(grid: jax.Array) -> jax.Array:
    """The corners (n, 3, ...) of the triangles of a grid (rows, columns, ...)."""
    least, most = grid[:-1, :-1], grid[1:, 1:]
    halves = (least, most, grid[1:, :-1]), (least, grid[:-1, 1:], most)
    return jnp.concatenate([jnp.stack(x, 2).reshape(-1, 3, *grid.shape[2:]) for x in halves])


def vertices(numbers: jax.Array, half_sizes: jax.Array, heights: jax.Array) -> jax.Array:
    """The vertices (..., 3) of these numbers (...,), row by row."""
    count = heights.shape[1]
    j = jnp.floor((numbers + 0.5) / count)
    places = jnp.stack([numbers - j * count, j], -1)
    cell = 2 * half_sizes / (np.array(heights.shape[::-1]) - 1)
    z = rows(heights.ravel(), numbers.ravel()).reshape(*numbers.shape, 1)
    return jnp.concatenate((places * cell - half_sizes, z), -1).astype(heights.dtype)


def upwards(triangles: jax.Array) -> jax.Array:
    """The unit normals (..., 3) of triangles (..., 3, 3)."""
    a, b, c = (triangles[..., k, :] for k in range(3))
    return unit(jnp.cross(b - a, c - a))


def nearest(
    p: jax.Array, half_sizes: jax.Array, heights: jax.Array
) -> tuple[Feature, Feature, Scalar]:
    """The nearest feature, the nearest other triangle that is met inside, and whether there is."""
    grid = around(p, half_sizes, heights)
    corner_numbers = divided(grid)
    triangles = divided(vertices(grid, half_sizes, heights))
    normals = upwards(triangles)
    height = ((p - triangles[:, 0]) * normals).sum(1)
    inside = over = True
    distance, corners = jnp.full_like(height, FAR), jnp.zeros(triangles.shape[:2], bool)
    for k in range(3):
        a, edge = triangles[:, k], triangles[:, (k + 1) % 3] - triangles[:, k]
        step = p - a
        inside &= (jnp.cross(edge, step) * normals).sum(1) >= 0
        over &= edge[:, 0] * step[:, 1] - edge[:, 1] * step[:, 0] >= 0
        t = (step * edge).sum(1) / (edge * edge).sum(1)
        square = ((step - jnp.clip(t, 0, 1)[:, None] * edge) ** 2).sum(1)
        ends = jnp.stack([t < 1, t > 0], 1)
        both = jnp.zeros_like(corners).at[:, np.array([k, (k + 1) % 3])].set(ends)
        closer = square < distance
        distance, corners = (
            jnp.where(closer, square, distance),
            jnp.where(closer[:, None], both, corners),
        )
    distance = jnp.sqrt(distance)
    inside &= height >= 0
    distance = jnp.where(inside, height, distance)
    under = over & (height < 0)
    distance = jnp.where(under.any() & ~under, FAR, distance)
    corners |= (inside | under)[:, None]
    numbers = jnp.arange(height.shape[0], dtype=jnp.int32)
    one, which, normal = first_least(distance, numbers, corners, normals)
    met = inside & ~under.any() & (numbers != one) & (normals @ normal < 1 - 1e-6)
    two, score = first_least(jnp.where(met, distance, FAR), numbers, jnp.where(met, distance, FAR))
    first = Feature(row(corner_numbers, one), which)
    second = Feature(row(corner_numbers, two), jnp.ones(3, bool))
    return first, second, score < FAR


def distance(
    p: jax.Array, feature: Feature, half_sizes: jax.Array, heights: jax.Array
) -> tuple[Scalar, jax.Array]:
    """How far a point (3,) is from a feature, and the unit vector (3,) from there."""
    triangle = vertices(feature.numbers, half_sizes, heights)
    normal, which = upwards(triangle), feature.corners
    start = jnp.where(which[0], triangle[0], jnp.where(which[1], triangle[1], triangle[2]))
    end = jnp.where(which[2], triangle[2], jnp.where(which[1], triangle[1], triangle[0]))
    edge, step = end - start, p - start
    square = edge @ edge
    along = jnp.where(square > 0, (step @ edge) / jnp.where(square > 0, square, 1), 0)
    step = step - along * edge
    square = step @ step
    # Where it lies on an edge or a vertex the normal is that of the triangle.
    good = ~which.all() & (square > jnp.finfo(p.dtype).eps ** 2)
    length = jnp.sqrt(jnp.where(good, square, 1))
    return select(good, (length, step / length), ((p - triangle[0]) @ normal, normal))
