"""The contact points of two boxes, or of a segment and a box, for a given normal.

The face of each box that looks most along the normal is taken. Seen along the normal, the two
faces are parallelograms in one plane, and the contact points are the corners of what they share:
corners of one inside the other, and crossings of their sides. The gap of a point is the way from
one face to the other along the normal; along the normal of the signed distance none is less than
this distance, and the nearest features are among the corners.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from ...groups.components import Matrix, Scalar, Vector, components
from .witness import first_least, select

# The signs of the corners of a parallelogram.
CORNERS = np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]], float)


@components
@dataclass(frozen=True, slots=True)
class Face:
    """A face of a box: its centre, its outward unit normal, half of its sides as vectors."""

    centre: Vector
    normal: Vector
    u: Vector
    v: Vector


@components
@dataclass(frozen=True, slots=True)
class FacePoints:
    """Candidates on a face at centre + s u + t v, with the gap there, where valid."""

    s: Scalar
    t: Scalar
    gap: Scalar
    valid: Scalar


def columns(m: Matrix) -> Vector:
    """The columns of a matrix as one vector with components (3,)."""
    return Vector(
        jnp.stack([m.xx, m.xy, m.xz]),
        jnp.stack([m.yx, m.yy, m.yz]),
        jnp.stack([m.zx, m.zy, m.zz]),
    )


def facing(rotation: Matrix, centre: Vector, half: Vector, direction: Vector) -> Face:
    """The face of a box that looks most along a direction."""
    axes = columns(rotation)
    sides = axes * jnp.stack([half.x, half.y, half.z])
    u, v = (jax.tree.map(lambda x, i=i: jnp.roll(x, -i), sides) for i in (1, 2))
    along = axes.dot(direction)
    sign = jnp.where(along < 0, -1, 1)
    faces = Face(sides * sign, axes * sign, u, v)
    (face,) = first_least(-jnp.abs(along), faces)
    return Face(centre + face.centre, face.normal, face.u, face.v)


def on_face(face: Face, step: Vector, normal: Vector) -> tuple[Scalar, Scalar, Scalar]:
    """Where a step from the face's centre ends, seen along the normal: (s, t, height)."""
    height = face.normal.dot(step) / face.normal.dot(normal)
    flat = step - normal * height
    return flat.dot(face.u) / face.u.square(), flat.dot(face.v) / face.v.square(), height


def shared_corners(face: Face, other: Face, normal: Vector) -> FacePoints:
    """The corners (24,) of what two faces share, on the first one; others are not valid.

    At most eight differ. `normal` points from the first box to the second.
    """
    s0, t0, h0 = on_face(face, other.centre - face.centre, normal)
    sx, tx, hx = on_face(face, other.u, normal)
    sy, ty, hy = on_face(face, other.v, normal)
    one, two = (jnp.asarray(c, jnp.result_type(s0)) for c in CORNERS.T)
    # Corners of the second face.
    s, t = s0 + one * sx + two * sy, t0 + one * tx + two * ty
    reach = 1 + 64 * jnp.finfo(jnp.result_type(s0)).eps
    inner = (jnp.abs(s) <= reach) & (jnp.abs(t) <= reach)
    found = [FacePoints(s, t, h0 + one * hx + two * hy, inner)]
    # Corners of the first face, at a, b on the second.
    area = sx * ty - sy * tx
    area = jnp.where(area == 0, 1, area)
    ds, dt = one - s0, two - t0
    a, b = (ds * ty - dt * sy) / area, (sx * dt - tx * ds) / area
    inner = (jnp.abs(a) <= reach) & (jnp.abs(b) <= reach)
    found.append(FacePoints(one, two, h0 + a * hx + b * hy, inner))
    # Crossings: sides one = +-1 of the first face with sides two = +-1 of the second.
    for x, y, hx_, hy_ in (((sx, tx), (sy, ty), hx, hy), ((sy, ty), (sx, tx), hy, hx)):
        for along_s in (True, False):
            i = 0 if along_s else 1
            start = (s0, t0)[i] + two * x[i]
            parallel = jnp.abs(y[i]) <= 1e-30
            a = jnp.where(parallel, 2, (one - start) / jnp.where(parallel, 1, y[i]))
            across = (s0, t0)[1 - i] + two * x[1 - i] + a * y[1 - i]
            inner = (jnp.abs(a) <= reach) & (jnp.abs(across) <= reach)
            place = (one, across) if along_s else (across, one)
            found.append(FacePoints(*place, h0 + two * hx_ + a * hy_, inner))
    return jax.tree.map(lambda *x: jnp.concatenate(x), *found)


def without_repeats(points: FacePoints, u: Scalar, v: Scalar, within: Scalar) -> FacePoints:
    """The points (n,), those not valid that lie within a distance of an earlier valid one.

    u and v: the lengths of the half sides.
    """
    n = points.s.shape[0]
    earlier = np.tril(np.ones((n, n), bool), -1)
    ds, dt = (jnp.abs(x[:, None] - x[None]) for x in (points.s * u, points.t * v))
    repeats = earlier & points.valid[None] & (ds < within) & (dt < within)
    return FacePoints(points.s, points.t, points.gap, points.valid & ~repeats.any(1))


def in_front(points: FacePoints, k: int) -> FacePoints:
    """The first k valid points of (n,), in order; the rest of the k are not valid."""
    n = points.s.shape[0]
    before = jnp.where(np.tril(np.ones((n, n), bool), -1) & points.valid[None], 1, 0).sum(1)
    chosen = points.valid[None] & (before[None] == np.arange(k)[:, None])
    s, t, gap = (jnp.where(chosen, x[None], 0).sum(1) for x in (points.s, points.t, points.gap))
    return FacePoints(s, t, gap, chosen.any(1))


def shared_ends(
    face: Face, centre: Vector, half: Vector, normal: Vector
) -> tuple[Scalar, Scalar, Scalar]:
    """The ends of the part of a segment that lies over a face, seen along the normal.

    The segment is centre +- half; returns its parameters there between -1 and 1, and whether there
    is such a part.
    """
    s0, t0, _ = on_face(face, centre - face.centre, normal)
    s1, t1, _ = on_face(face, half, normal)
    tiny = jnp.finfo(jnp.result_type(s0)).eps
    low, high, over = jnp.full_like(s0, -1), jnp.ones_like(s0), True
    for start, rate in ((s0, s1), (t0, t1)):
        still = jnp.abs(rate) <= tiny
        safe = jnp.where(still, 1, rate)
        a, b = (-1 - start) / safe, (1 - start) / safe
        a, b = select(a <= b, (a, b), (b, a))
        low = jnp.where(still, low, jnp.maximum(low, a))
        high = jnp.where(still, high, jnp.minimum(high, b))
        over &= ~still | (jnp.abs(start) <= 1 + 64 * tiny)
    return low, high, over & (low <= high + 64 * tiny)
