"""Boxes with spheres, capsules and boxes.

Overlapping solids are separated along the axis of the least overlap, which is a normal of a face
or of two edges. Solids apart are nearest at a corner and a solid, or at two edges.
"""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...groups.components import Matrix, Scalar, Vector
from ...spatial import Transform
from .box_faces import (
    FacePoints,
    columns,
    facing,
    in_front,
    on_face,
    shared_corners,
    shared_ends,
    without_repeats,
)
from .witness import (
    FAR,
    Witness,
    along,
    first_least,
    grown,
    length_and_direction,
    placed,
    relative,
    select,
    stack,
    stretched,
)

SIGNS = np.array(list(itertools.product((-1, 1), repeat=3)), float)
# The middle and the half side of each edge of a box of half sizes 1.
SIDES = np.repeat(np.eye(3), 4, axis=0)
MIDDLES = np.array(
    [np.insert(signs, i, 0) for i in range(3) for signs in itertools.product((-1, 1), repeat=2)],
    float,
)
# Squared sine of the angle of two edges above which their common normal is taken from both.
CROSSING = 1e-8


def scaled(table: np.ndarray, half: Vector) -> Vector:
    """A table (n, 3) of multiples of half sizes, as a vector with components (n,)."""
    a = jnp.asarray(table, jnp.result_type(half.x))
    return Vector(a[:, 0] * half.x, a[:, 1] * half.y, a[:, 2] * half.z)


def joined(*vectors: Vector) -> Vector:
    """Vectors with components (n,) behind each other."""
    return jax.tree.map(lambda *x: jnp.concatenate(x), *vectors)


def clamped(v: Vector, half: Vector) -> Vector:
    """The points of a box about the origin that are nearest to given ones."""
    return Vector(
        jnp.clip(v.x, -half.x, half.x),
        jnp.clip(v.y, -half.y, half.y),
        jnp.clip(v.z, -half.z, half.z),
    )


def sphere_box(pose: Transform, numbers: Any, other: Transform, numbers_b: Any) -> Witness:
    """The points on the line from the centre to the box, k = 1."""
    (radius,), (half,) = numbers, numbers_b
    point = other.rotation.transposed_times(pose.translation - other.translation)
    return placed(other, grown(stack(point_box(point, half)), radius, 0.0))


def point_box(point: Vector, half: Vector) -> Witness:
    """A point and a box about the origin; inside it is nearest to a face."""
    nearest = clamped(point, half)
    coordinates = jnp.stack([point.x, point.y, point.z])
    sign = jnp.where(coordinates < 0, -1, 1)
    depth = jnp.stack([half.x, half.y, half.z]) - coordinates * sign
    inner = (depth >= 0).all()
    inward = columns(Matrix.scaled_identity(jnp.ones_like(point.x))) * -sign
    depth, inward = first_least(depth, (depth, inward))[0]
    gap, outward = length_and_direction(nearest - point, inward)
    gap, normal = select(inner, (-depth, inward), (gap, outward))
    return along(normal, gap, point)


def widest_gap(
    faces: Vector, edges: tuple[Vector, Vector], sides: Vector, step: Vector
) -> tuple[Scalar, Vector]:
    """The greatest gap over axes, negative where the solids overlap, and the axis.

    faces: unit normals (m,); edges: directions (n,) and (n,) of two edges each, whose normals are
    tried; sides: the half sides (k,) of both solids; step: from the centre of the first to that of
    the second. The axis points that way, too. An edge wins only where it is better than a face by
    more than rounding. Only the chosen axis has derivatives.
    """
    still = jax.lax.stop_gradient((faces, edges, sides, step))
    normals, (one, other), tips, along = still
    crosses = one.cross(other)
    square = crosses.square()
    eps = jnp.finfo(jnp.result_type(square)).eps
    good = square > eps**2
    axes = joined(normals, crosses * (1 / jnp.sqrt(jnp.where(good, square, 1))))
    reach = jnp.abs(jax.tree.map(lambda x: x[:, None], axes).dot(tips)).sum(1)
    gap = jnp.abs(axes.dot(along)) - reach
    m = faces.x.shape[0]
    doubt = jnp.where(good, 8 * eps * reach[m:], FAR)
    score = jnp.concatenate((-gap[:m], doubt - gap[m:]))
    which = numbered_least(score)
    on_face, on_edge = which[:m], which[m:]
    face, one, other = picked(on_face, faces), *(picked(on_edge, e) for e in edges)
    cross = one.cross(other)
    chosen = on_edge.any()
    axis = select(chosen, cross * (1 / jnp.sqrt(jnp.where(chosen, cross.square(), 1))), face)
    axis = axis * jnp.where(jax.lax.stop_gradient(axis.dot(step)) < 0, -1, 1)
    return axis.dot(step) - jnp.abs(axis.dot(sides)).sum(), axis


def numbered_least(values: jax.Array) -> jax.Array:
    """Picks the least of values (n,), the first of equals, by truths (n,)."""
    numbers = jnp.arange(values.shape[0], dtype=jnp.int32)
    return numbers == first_least(values, numbers)[0]


def picked(which: jax.Array, rows: Vector) -> Vector:
    """Those of vectors with components (n,) that truths (n,) pick; zero if none."""
    return jax.tree.map(lambda x: jnp.where(which, x, 0).sum(), rows)


def nearest_on_edges(
    p: Vector, a: Vector, q: Vector, b: Vector, step: Vector
) -> tuple[Vector, Vector, Vector]:
    """The nearest points of segments p +- a and q +- b of any shapes, and a normal of both.

    The normal points along `step`, and is zero unless both points lie within their segments, which
    are not parallel.
    """
    r = p - q
    aa, bb, ab, ar, br = a.square(), b.square(), a.dot(b), a.dot(r), b.dot(r)
    normal = a.cross(b)
    square = normal.square()
    crossing = square > CROSSING * aa * bb
    s = (ab * br - bb * ar) / jnp.where(crossing, square, 1)
    s = jnp.where(crossing, jnp.clip(s, -1, 1), 0)
    t = jnp.clip((ab * s + br) / bb, -1, 1)
    s = jnp.clip((ab * t - ar) / aa, -1, 1)
    within = crossing & (jnp.abs(s) < 1) & (jnp.abs(t) < 1)
    length = jnp.sqrt(jnp.where(crossing, square, 1))
    sign = jnp.where(normal.dot(step) < 0, -1, 1)
    return p + a * s, q + b * t, normal * jnp.where(within, sign / length, 0)


def nearest(
    points: tuple[Vector, Vector],
    edges: tuple[Vector, Vector],
    edges_b: tuple[Vector, Vector],
    step: Vector,
    otherwise: Vector,
) -> Witness:
    """The nearest of pairs of points (n,), and of those on edges of the first solid (m,) and of the
    second (k,): the middles and half of each. Only the chosen ones have derivatives."""
    (here, there), own, (q, b) = jax.lax.stop_gradient((points, edges, edges_b))
    p, a = jax.tree.map(lambda x: x[:, None], own)
    first, second, _ = nearest_on_edges(p, a, q, b, jax.lax.stop_gradient(step))
    n, shape = here.x.shape[0], first.x.shape
    eps = jnp.finfo(jnp.result_type(here.x)).eps
    distance = (second - first).square().ravel() * (1 + 16 * eps)
    which = numbered_least(jnp.concatenate(((there - here).square(), distance)))
    on_points, on_edges = which[:n], which[n:].reshape(shape)
    apart = on_points.any()
    # Where points are nearest, the first edges stand for those that are not.
    at = [on_edges.any(1 - k) | (apart & (np.arange(shape[k]) == 0)) for k in (0, 1)]
    p, a = (picked(at[0], v) for v in edges)
    q, b = (picked(at[1], v) for v in edges_b)
    first, second, normal = nearest_on_edges(p, a, q, b, step)
    first = select(apart, picked(on_points, points[0]), first)
    step = select(apart, picked(on_points, points[1]), second) - first
    on_edges = ~apart & (normal.square() > 0.5)
    length, direction = length_and_direction(step, otherwise)
    gap, normal = select(on_edges, (normal.dot(step), normal), (length, direction))
    return along(normal, gap, first)


def capsule_box(pose: Transform, numbers: Any, other: Transform, numbers_b: Any) -> Witness:
    """The nearest points, and the far end of the axis over the same face, k = 2."""
    (radius, half_length), (half,) = numbers, numbers_b
    seen = relative(other, pose)
    r, centre = seen.rotation, seen.translation
    axis = Vector(r.xz, r.yz, r.zz)
    a = axis * half_length
    frame = Matrix.scaled_identity(jnp.ones_like(axis.x))
    faces = columns(frame)
    tip = jax.tree.map(lambda x: x[None], a)
    sides = joined(faces * jnp.stack([half.x, half.y, half.z]), tip)
    edges = faces, stretched(axis, faces.x)
    gap, normal = widest_gap(faces, edges, sides, -centre)
    ends, corners = stack(centre + a, centre - a), scaled(SIGNS, half)
    s = jnp.clip((corners - centre).dot(axis), -half_length, half_length)
    points = (
        joined(ends, centre + axis * s),
        joined(clamped(ends, half), corners),
    )
    tips = jax.tree.map(lambda x: x[None], centre), tip
    edges = scaled(MIDDLES, half), scaled(SIDES, half)
    apart = nearest(points, tips, edges, -centre, normal)
    normal = select(gap > 0, apart.normal, normal)
    gap = jnp.where(gap > 0, apart.gap, gap)

    face = facing(frame, Vector(*(centre.x * 0,) * 3), half, -normal)
    low, high, over = shared_ends(face, centre, a, normal)

    def height(s: Scalar) -> Scalar:
        return -on_face(face, centre + a * s - face.centre, normal)[2]

    low, high = select(height(low) <= height(high), (low, high), (high, low))
    seen_there = over & (height(low) <= gap + 64 * jnp.finfo(jnp.result_type(gap)).eps)
    here = along(normal, height(low), centre + a * low)
    here = select(seen_there | (apart.gap <= 0), here, apart)
    far = centre + a * high
    sideways = normal.cross(far - here.first).square()
    beside = over & (sideways > (0.1 * radius) ** 2)
    there = along(normal, height(high), far, beside)
    return placed(other, grown(stack(here, there), radius, 0.0))


def box_box(pose: Transform, numbers: Any, other: Transform, numbers_b: Any) -> Witness:
    """The corners of what two faces share, seen along the normal of the least gap, k = 8."""
    (half_a,), (half_b,) = numbers, numbers_b
    seen = relative(pose, other)
    r, step = seen.rotation, seen.translation
    frame = Matrix.scaled_identity(jnp.ones_like(step.x))
    axes, axes_b = columns(frame), columns(r)
    sides = joined(
        axes * jnp.stack([half_a.x, half_a.y, half_a.z]),
        axes_b * jnp.stack([half_b.x, half_b.y, half_b.z]),
    )
    edges = (
        jax.tree.map(lambda x: jnp.repeat(x, 3), axes),
        jax.tree.map(lambda x: jnp.tile(x, 3), axes_b),
    )
    gap, normal = widest_gap(joined(axes, axes_b), edges, sides, step)
    apart = boxes_apart(half_a, seen, half_b, normal)
    normal = select(gap > 0, apart.normal, normal)
    gap = jnp.where(gap > 0, apart.gap, gap)

    face = facing(frame, Vector(*(step.x * 0,) * 3), half_a, normal)
    points = shared_corners(face, facing(r, step, half_b, -normal), normal)
    u, v = jnp.sqrt(face.u.square()), jnp.sqrt(face.v.square())
    size = u + v
    points = without_repeats(points, u, v, 1e-6 * size)
    least = jnp.where(points.valid, points.gap, FAR).min()
    eps = jnp.finfo(jnp.result_type(gap)).eps
    # Where rounding hides the nearest points from the faces, they come first.
    s, t, _ = on_face(face, apart.first - face.centre, normal)
    hidden = (least > gap + 64 * eps * size) | ~points.valid.any()
    nearest_points = FacePoints(*(x[None] for x in (s, t, gap, hidden)))
    points = jax.tree.map(lambda x, y: jnp.concatenate((x, y)), nearest_points, points)
    points = in_front(points, 8)
    first = face.centre + face.u * points.s + face.v * points.t
    return placed(pose, along(stretched(normal, points.s), points.gap, first, points.valid))


def boxes_apart(half_a: Vector, seen: Transform, half_b: Vector, otherwise: Vector) -> Witness:
    """The nearest points of two boxes that do not overlap, in the frame of the first."""
    r, step = seen.rotation, seen.translation
    corners_a, corners_b = scaled(SIGNS, half_a), r @ scaled(SIGNS, half_b) + step
    # Differences are rotated, not points: a normal of a face stays one.
    there = r.transposed_times(corners_a - step)
    to_b = corners_a + r @ (clamped(there, half_b) - there)
    points = joined(corners_a, clamped(corners_b, half_a)), joined(to_b, corners_b)

    edges = scaled(MIDDLES, half_a), scaled(SIDES, half_a)
    edges_b = r @ scaled(MIDDLES, half_b) + step, r @ scaled(SIDES, half_b)
    return nearest(points, edges, edges_b, step, otherwise)
