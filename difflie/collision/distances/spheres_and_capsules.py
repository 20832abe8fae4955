"""Spheres and capsules: points and segments, with a radius around them."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from ...groups.components import Scalar, Vector
from ...spatial import Transform
from .witness import (
    Witness,
    axis,
    between,
    grown,
    placed,
    relative,
    select,
    stack,
)

# Sine of the angle between axes of capsules below which they also touch at a second point.
NEARLY_PARALLEL = 0.05


def sphere_sphere(pose: Transform, numbers: Any, other: Transform, numbers_b: Any) -> Witness:
    """The points on the line of the centres, k = 1."""
    (radius,), (radius_b,) = numbers, numbers_b
    first, second = pose.translation, other.translation
    return stack(balls(first, radius, second, radius_b, axis(2, first.x)))


def balls(
    first: Vector, radius: Scalar, second: Vector, radius_b: Scalar, otherwise: Vector
) -> Witness:
    """Balls about two points; `otherwise` is the normal where these coincide."""
    return grown(between(first, second, otherwise), radius, radius_b)


def sphere_capsule(pose: Transform, numbers: Any, other: Transform, numbers_b: Any) -> Witness:
    """The points nearest to the centre and on the axis, k = 1."""
    (radius,), (radius_b, half_length) = numbers, numbers_b
    point = other.rotation.transposed_times(pose.translation - other.translation)
    z = jnp.clip(point.z, -half_length, half_length)
    nearest = Vector(point.x * 0, point.x * 0, z)
    witness = between(point, nearest, axis(0, point.x))
    return placed(other, grown(stack(witness), radius, radius_b))


def capsule_capsule(pose: Transform, numbers: Any, other: Transform, numbers_b: Any) -> Witness:
    """The nearest points of the axes, and one more for axes that are nearly parallel, k = 2."""
    (radius, half_a), (radius_b, half_b) = numbers, numbers_b
    seen = relative(pose, other)
    nearest, far = segment_segment(half_a, seen, half_b, 0.1 * (radius + radius_b))
    return placed(pose, grown(stack(nearest, far), radius, radius_b))


def segment_segment(
    half_a: Scalar, seen: Transform, half_b: Scalar, apart: Scalar
) -> tuple[Witness, Witness]:
    """The nearest points of two segments, and the far end of where they run beside each other.

    Both lie along the z axes of their frames; `seen` is the pose of the second in the frame of the
    first, where the results are given. The second point is valid where the segments are nearly
    parallel, and it lies further than `apart` from the nearest ones.
    """
    r, q = seen.rotation, seen.translation
    b = Vector(r.xz, r.yz, r.zz)
    zero = q.z * 0
    square = b.x * b.x + b.y * b.y  # of the sine of the angle between them
    crossing = square > jnp.finfo(jnp.result_type(square)).eps ** 2
    reach = jnp.abs(half_b * b.z)
    low = jnp.clip(q.z - reach, -half_a, half_a)
    high = jnp.clip(q.z + reach, -half_a, half_a)

    def on_b(s: Scalar) -> Scalar:
        return jnp.clip(s * b.z - q.dot(b), -half_b, half_b)

    s = q.z - b.z * (q.x * b.x + q.y * b.y) / jnp.where(crossing, square, 1)
    t = on_b(jnp.where(crossing, jnp.clip(s, -half_a, half_a), low))
    s = jnp.clip(q.z + t * b.z, -half_a, half_a)
    sine = jnp.sqrt(jnp.where(crossing, square, 1))
    # Where the segments meet, a normal of both.
    otherwise = select(crossing, Vector(-b.y / sine, b.x / sine, zero), axis(0, zero))
    nearest = between(Vector(zero, zero, s), q + b * t, otherwise)
    end = jnp.where(high - s > s - low, high, low)
    beside = (jnp.abs(end - s) > apart) & (square < NEARLY_PARALLEL**2)
    far = between(Vector(zero, zero, end), q + b * on_b(end), otherwise, beside)
    return nearest, far
