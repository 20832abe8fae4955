"""Contact points: the gap, the normal, and the points on the two surfaces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import jax
import jax.numpy as jnp

from ...groups.components import Scalar, Vector, components
from ...spatial import Transform

Tree = TypeVar("Tree")

# m; the gap of what is no contact point.
FAR = 1e9


@components
@dataclass(frozen=True, slots=True)
class Witness:
    """Contact points of two shapes in world coordinates, every component of one shape.

    gap: m, open where positive. normal: the unit vector from the first shape to the second. first
    and second: the points on their surfaces, second = first + gap normal. valid: whether this is a
    contact point at all; where it is not, the gap is 1e9 m and the points are anywhere.
    """

    gap: Scalar
    normal: Vector
    first: Vector
    second: Vector
    valid: Scalar

    @property
    def middle(self) -> Vector:
        """The points halfway between the surfaces."""
        return (self.first + self.second) * 0.5


def select(condition: Scalar, a: Tree, b: Tree) -> Tree:
    """`a` where the condition holds, else `b`, for trees of arrays."""
    return jax.tree.map(lambda x, y: jnp.where(condition, x, y), a, b)


def stack(*trees: Tree) -> Tree:
    """One tree whose arrays have a leading axis, along which the given ones lie."""
    return jax.tree.map(lambda *x: jnp.stack(jnp.broadcast_arrays(*x)), *trees)


def first_least(values: jax.Array, *rows: Tree) -> tuple[Tree, ...]:
    """What the rows (n, ...) have where `values` (n,) is least, the first of equals.

    Neighbours play against each other, the winners again: no index depends on data, and a compiler
    that computes the values twice, with other rounding, still finds one of the rows.
    """
    field = values, rows
    while (n := field[0].shape[0]) > 1:
        left, right = (jax.tree.map(lambda x, i=i: x[i : n - n % 2 : 2], field) for i in (0, 1))
        wins = left[0] <= right[0]
        left, last = select_rows(wins, left, right), jax.tree.map(lambda x: x[n - n % 2 :], field)
        field = jax.tree.map(lambda x, y: jnp.concatenate((x, y)), left, last) if n % 2 else left
    return jax.tree.map(lambda x: x[0], field[1])


def select_rows(condition: jax.Array, a: Tree, b: Tree) -> Tree:
    """Rows of `a` where the condition (n,) holds, else of `b`, for trees of arrays (n, ...)."""

    def pick(x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.where(condition.reshape(condition.shape + (1,) * (x.ndim - 1)), x, y)

    return jax.tree.map(pick, a, b)


def deepest(witness: Witness) -> Witness:
    """The contact point of least gap, the first of equals, of points of shape (k,)."""
    return first_least(witness.gap, witness)[0]


def swapped(witness: Witness) -> Witness:
    """The same contact points with the shapes in the other order."""
    return Witness(witness.gap, -witness.normal, witness.second, witness.first, witness.valid)


def placed(pose: Transform, witness: Witness) -> Witness:
    """Contact points given in a frame, in the coordinates in which its pose is given."""
    rotation, origin = pose.rotation, pose.translation
    return Witness(
        witness.gap,
        rotation @ witness.normal,
        rotation @ witness.first + origin,
        rotation @ witness.second + origin,
        witness.valid,
    )


def relative(pose: Transform, other: Transform) -> Transform:
    """The other pose, seen from this one."""
    r = pose.rotation
    return Transform(
        r.transpose() @ other.rotation, r.transposed_times(other.translation - pose.translation)
    )


def grown(witness: Witness, radius: Scalar, other: Scalar) -> Witness:
    """The contact points of the shapes with balls of these radii around each of their points."""
    normal = witness.normal
    return Witness(
        jnp.where(witness.valid, witness.gap - radius - other, FAR),
        normal,
        witness.first + normal * radius,
        witness.second - normal * other,
        witness.valid,
    )


def length_and_direction(step: Vector, otherwise: Vector) -> tuple[Scalar, Vector]:
    """The length of a vector and the unit vector along it.

    For lengths below rounding (of 1 m) the direction is `otherwise`, a unit vector, and the length
    is measured along it.
    """
    square = step.square()
    regular = square > jnp.finfo(jnp.result_type(square)).eps ** 2
    length = jnp.sqrt(jnp.where(regular, square, 1))
    direction = select(regular, step * (1 / length), otherwise)
    return jnp.where(regular, length, otherwise.dot(step)), direction


def between(first: Vector, second: Vector, otherwise: Vector, valid: Scalar = True) -> Witness:
    """The contact point of two points, whose gap is their distance, or of nearest ones, if valid.

    `otherwise` is the normal where they coincide.
    """
    gap, normal = length_and_direction(second - first, otherwise)
    valid = jnp.broadcast_to(valid, jnp.shape(gap))
    return Witness(jnp.where(valid, gap, FAR), normal, first, second, valid)


def along(normal: Vector, gap: Scalar, first: Vector, valid: Scalar = True) -> Witness:
    """The contact points with this normal and these points on the first surface, where valid."""
    gap, valid = jnp.broadcast_arrays(gap, valid)
    second = first + normal * gap
    normal, first = stretched(normal, gap), stretched(first, gap)
    return Witness(jnp.where(valid, gap, FAR), normal, first, second, valid)


def stretched(v: Vector, like: Scalar) -> Vector:
    """A vector whose components have the shape of `like`."""
    return jax.tree.map(lambda x: jnp.broadcast_to(x, jnp.shape(like)), v)


def axis(i: int, like: Scalar) -> Vector:
    """The unit vector along the i-th axis of the frame, its components like the given one."""
    zero = jnp.zeros_like(like)
    return Vector(*(zero + 1 if i == j else zero for j in range(3)))
