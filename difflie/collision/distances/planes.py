"""A plane, solid below, and any other shape.

The plane passes through the origin of its frame; its normal is the z axis there. The contact
points on the other shape are the points of it that a plane reaches first, and the gap is their
height.
"""

from __future__ import annotations

import itertools
from typing import Any

import jax.numpy as jnp

from ...groups.components import Scalar, Vector
from ...spatial import Transform
from .witness import Witness, select, stretched


def points_above(
    plane: Transform, pose: Transform, points: Vector, radius: Scalar = 0.0
) -> Witness:
    """A plane and balls of a radius around points (k,), given in the frame of the second pose."""
    r = plane.rotation
    step = pose.translation - plane.translation + pose.rotation @ points
    return balls_above(plane.translation, Vector(r.xz, r.yz, r.zz), step, radius)


def balls_above(origin: Vector, normal: Vector, step: Vector, radius: Scalar) -> Witness:
    """A plane with a unit normal, and balls of a radius about points at steps from its origin."""
    gap = normal.dot(step) - radius
    normal = stretched(normal, gap)
    second = origin + step - normal * radius
    return Witness(gap, normal, second - normal * gap, second, jnp.ones(jnp.shape(gap), bool))


def plane_normal(plane: Transform, pose: Transform) -> Vector:
    """The normal of the plane in the frame of the second pose."""
    r = plane.rotation
    return pose.rotation.transposed_times(Vector(r.xz, r.yz, r.zz))


def sphere(plane: Transform, _: tuple[()], pose: Transform, numbers: Any) -> Witness:
    """The lowest point, k = 1."""
    (radius,) = numbers
    zero = jnp.zeros((1,), jnp.result_type(radius))
    return points_above(plane, pose, Vector(zero, zero, zero), radius)


def capsule(plane: Transform, _: tuple[()], pose: Transform, numbers: Any) -> Witness:
    """Both ends, k = 2."""
    radius, half_length = numbers
    z = jnp.stack([half_length, -half_length])
    return points_above(plane, pose, Vector(z * 0, z * 0, z), radius)


def box(plane: Transform, _: tuple[()], pose: Transform, numbers: Any) -> Witness:
    """All vertices, k = 8."""
    (half,) = numbers
    signs = jnp.asarray(list(itertools.product((-1, 1), repeat=3)), jnp.result_type(half.x))
    return points_above(
        plane, pose, Vector(half.x * signs[:, 0], half.y * signs[:, 1], half.z * signs[:, 2])
    )


def hull(plane: Transform, _: tuple[()], pose: Transform, numbers: Any) -> Witness:
    """All n vertices, k = n."""
    return points_above(plane, pose, Vector.from_array(numbers[0]))


def ellipsoid(plane: Transform, _: tuple[()], pose: Transform, numbers: Any) -> Witness:
    """The point whose normal is that of the plane."""
    (radii,) = numbers
    normal = plane_normal(plane, pose)
    a = Vector(radii.x * normal.x, radii.y * normal.y, radii.z * normal.z)
    a = a * (-1 / jnp.sqrt(a.square()))
    points = Vector(radii.x * a.x, radii.y * a.y, radii.z * a.z)
    return points_above(plane, pose, stretched(points, jnp.zeros(1)))


def cylinder(plane: Transform, _: tuple[()], pose: Transform, numbers: Any) -> Witness:
    """The points of `rim_points`, k = 4."""
    return points_above(plane, pose, rim_points(plane_normal(plane, pose), *numbers))


def rim_points(normal: Vector, radius: Scalar, half_length: Scalar) -> Vector:
    """Points (4,) of a cylinder in its frame, which a plane with this normal reaches first.

    The lowest points of both rims, and two more of the lower rim, 120 degrees apart. On a cylinder
    that stands upright these three of the lower rim begin at its x axis.
    """
    square = normal.x * normal.x + normal.y * normal.y
    tilted = square > jnp.finfo(jnp.result_type(square)).eps ** 2
    length = jnp.sqrt(jnp.where(tilted, square, 1))
    x, y = select(
        tilted, (-normal.x / length, -normal.y / length), (jnp.ones_like(square), square * 0)
    )
    low = jnp.where(normal.z > 0, -half_length, half_length)
    cosine, sine = -0.5, 0.75**0.5
    return Vector(
        radius * jnp.stack([x, x, cosine * x - sine * y, cosine * x + sine * y]),
        radius * jnp.stack([y, y, cosine * y + sine * x, cosine * y - sine * x]),
        jnp.stack([low, -low, low, low]),
    )
