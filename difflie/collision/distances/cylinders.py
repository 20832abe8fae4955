"""Cylinders with spheres and boxes."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ...groups.components import Scalar, Vector
from ...spatial import Transform
from .box_faces import facing, on_face
from .planes import rim_points
from .support import contact_point
from .witness import (
    Witness,
    along,
    axis,
    grown,
    length_and_direction,
    placed,
    select,
    stack,
    stretched,
)


def sphere_cylinder(pose: Transform, numbers: Any, other: Transform, numbers_b: Any) -> Witness:
    """The points on the line from the centre to the cylinder, k = 1."""
    (radius,), (radius_b, half_length) = numbers, numbers_b
    point = other.rotation.transposed_times(pose.translation - other.translation)
    witness = point_cylinder(point, radius_b, half_length)
    return placed(other, grown(stack(witness), radius, 0.0))


def point_cylinder(point: Vector, radius: Scalar, half_length: Scalar) -> Witness:
    """A point and a cylinder about the origin; inside it is nearest to the wall or to a cap.

    On the axis the wall is met along x.
    """
    zero = point.z * 0
    distance, outward = length_and_direction(Vector(point.x, point.y, zero), axis(0, zero))
    sign = jnp.where(point.z < 0, -1, 1)
    aside, above = distance - radius, point.z * sign - half_length
    cap = Vector(zero, zero, zero + sign)
    gap, normal = select(above > aside, (above, cap), (aside, outward))
    corner = Vector(outward.x * aside, outward.y * aside, above * sign)
    length, direction = length_and_direction(corner, normal)
    beyond = (aside > 0) & (above > 0)
    gap, normal = select(beyond, (length, direction), (gap, normal))
    return along(-normal, gap, point)


def cylinder_box(pose: Transform, numbers: Any, other: Transform, numbers_b: Any) -> Witness:
    """The nearest points, and up to four of the rims over the face of the box there, k = 5.

    A cylinder that stands or lies on a face touches it in the middle and around.
    """
    radius, half_length = numbers
    (half,) = numbers_b
    nearest = contact_point("cylinder", "box")(pose, numbers, other, numbers_b)
    normal, first = jax.tree.map(lambda x: x[0], (nearest.normal, nearest.first))
    face = facing(other.rotation, other.translation, half, -normal)
    rims = rim_points(pose.rotation.transposed_times(-normal), radius, half_length)
    rims = pose.rotation @ rims + pose.translation
    s, t, height = on_face(face, rims - face.centre, normal)
    beside = normal.cross(rims - first).square() > (0.1 * radius) ** 2
    over = beside & (jnp.abs(s) <= 1) & (jnp.abs(t) <= 1)
    around = along(stretched(normal, s), -height, rims, over)
    return jax.tree.map(lambda x, y: jnp.concatenate((x, y)), nearest, around)
