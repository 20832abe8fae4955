"""Cylinders and spheres."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from ...groups.components import Scalar, Vector
from ...spatial import Transform
from .witness import (
    Witness,
    along,
    axis,
    grown,
    length_and_direction,
    placed,
    select,
    stack,
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
