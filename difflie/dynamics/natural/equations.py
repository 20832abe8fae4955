"""Joints as equations between scalar products of vectors that are fixed in bodies.

A vector is a combination of the rows of all bodies, (nb + 1, 4), the world's last, as in
`coordinates`. Garcia de Jalon and Bayo 1994, chapter 4.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


class Products(eqx.Module):
    """Scalar products of vectors that are fixed in bodies: (first Q) . (second Q) - constant.

    first, second (m, nb + 1, 4): combinations of the rows of all bodies, the world's last;
    constant (m,).
    """

    first: jax.Array
    second: jax.Array
    constant: jax.Array

    def __call__(self, bodies: Float[Array, "nb 4 3"]) -> Float[Array, " m"]:
        """The values (m,) at the coordinates (nb, 4, 3)."""
        a, b = combined(self.first, bodies), combined(self.second, bodies)
        return jnp.sum(a * b, axis=1) - self.constant

    def rates(
        self, bodies: Float[Array, "nb 4 3"], velocities: Float[Array, "nb 4 3"]
    ) -> Float[Array, " m"]:
        """The rates (m,) of the values when the coordinates change at the rates (nb, 4, 3)."""
        a, b = combined(self.first, bodies), combined(self.second, bodies)
        da, db = changed(self.first, velocities), changed(self.second, velocities)
        return jnp.sum(da * b + a * db, axis=1)

    def force(
        self, bodies: Float[Array, "nb 4 3"], f: Float[Array, " m"]
    ) -> Float[Array, "nb 4 3"]:
        """sum f_i grad value_i (nb, 4, 3), for f (m,)."""
        a, b = combined(self.first, bodies), combined(self.second, bodies)
        return spread(self.first, f[:, None] * b) + spread(self.second, f[:, None] * a)


def combined(
    rows: Float[Array, "m world_too 4"], bodies: Float[Array, "nb 4 3"]
) -> Float[Array, "m 3"]:
    """The vectors (m, 3) that the combinations (m, nb + 1, 4) are at the coordinates (nb, 4, 3)."""
    return changed(rows, bodies) + rows[:, -1, 1:]


def changed(
    rows: Float[Array, "m world_too 4"], velocities: Float[Array, "nb 4 3"]
) -> Float[Array, "m 3"]:
    """The rates (m, 3) of these vectors."""
    return _einsum("mbk,bkx->mx", rows[:, :-1], velocities)


def spread(
    rows: Float[Array, "m world_too 4"], forces: Float[Array, "m 3"]
) -> Float[Array, "nb 4 3"]:
    """The forces (nb, 4, 3) on the coordinates that forces (m, 3) on these vectors are."""
    return _einsum("mbk,mx->bkx", rows[:, :-1], forces)


class JointsOfKind(NamedTuple):
    """Joints of one kind: the numbers of their bodies and parents (n,), of all bodies, and where
    they sit in their parents (n, 3)."""

    body: np.ndarray
    parent: np.ndarray
    count: int
    anchor: jax.Array

    def gap(self) -> jax.Array:
        """From the joint in the parent to the origin of the body."""
        origin = fixed(self.body, jnp.zeros_like(self.anchor), self.count, 1)
        return origin - fixed(self.parent, self.anchor, self.count, 1)

    def in_parent(self, direction: jax.Array) -> jax.Array:
        return fixed(self.parent, direction, self.count, 0)

    def in_body(self, axis: int) -> jax.Array:
        return fixed(self.body, self._unit(axis), self.count, 0)

    def in_world(self, axis: int) -> jax.Array:
        return fixed(np.full(len(self.body), self.count), self._unit(axis), self.count, 0)

    def _unit(self, axis: int) -> jax.Array:
        unit = jnp.eye(3, dtype=self.anchor.dtype)[axis]
        return jnp.broadcast_to(unit, self.anchor.shape)


class Equations:
    """Scalar products, kind of joint after kind of joint."""

    def __init__(self):
        self.parts, self.order = [], []

    def add(self, first: jax.Array, second: jax.Array, constant=None, order=None) -> None:
        zero = jnp.zeros(first.shape[0], first.dtype)
        self.parts.append((first, second, zero if constant is None else constant))
        self.order.append(np.zeros(first.shape[0], int) if order is None else order)

    def products(self, empty: jax.Array) -> Products:
        parts = [(empty, empty, empty[:, 0, 0]), *self.parts]
        order = np.argsort(np.concatenate([np.zeros(0, int), *self.order]), kind="stable")
        return Products(*(jnp.concatenate(p)[order] for p in zip(*parts, strict=True)))


def position(
    constraints: Equations, slides: Equations, joint: JointsOfKind, along: list, axes: jax.Array
) -> None:
    """Adds equations and slides for the gap of a joint, which the directions `along` (n, 3) span.

    The components of the gap along these are the slides. axes (n, 3, 3): the joint's frame; its
    third axis is the first of the directions.
    """
    gap = joint.gap()
    if not along:
        for i in range(3):
            constraints.add(gap, joint.in_world(i))
    elif len(along) == 1:
        for i in range(2):
            constraints.add(gap, joint.in_parent(axes[:, :, i]))
    else:
        constraints.add(gap, joint.in_parent(jnp.cross(*along)))
    for i, direction in enumerate(along if len(along) < 2 else reciprocal(*along)):
        slides.add(gap, joint.in_parent(direction), order=2 * joint.body + i)


def orientation(
    constraints: Equations, joint: JointsOfKind, turns: int, frame: jax.Array, second: jax.Array
) -> None:
    """Adds the equations for the relative attitude that a joint with so many turns leaves fixed.

    frame (n, 3, 3): the joint's frame in the parent, from which it turns. second (n, 3, 3): the
    axes of the second turn in those of the first.
    """
    if turns == 0:
        for i in range(3):
            constraints.add(joint.in_parent(frame[:, :, i]), joint.in_body((i + 1) % 3))
    elif turns == 1:
        for i in range(2):
            constraints.add(joint.in_parent(frame[:, :, 2]), joint.in_body(i))
    elif turns == 2:
        constraints.add(joint.in_parent(frame[:, :, 2]), joint.in_body(2), second[:, 2, 2])


def fixed(
    body: np.ndarray, x: Float[Array, "n 3"], count: int, weight: float
) -> Float[Array, "n world_too 4"]:
    """The combinations (n, count + 1, 4) that are points (weight 1) or directions (0) x (n, 3)."""
    own = (body[:, None] == np.arange(count + 1))[..., None]
    rows = jnp.concatenate((jnp.full_like(x[:, :1], weight), x), axis=1)
    return jnp.where(own, rows[:, None], jnp.zeros_like(rows[:, None]))


def reciprocal(
    a: Float[Array, "n 3"], b: Float[Array, "n 3"]
) -> tuple[Float[Array, "n 3"], Float[Array, "n 3"]]:
    """The vectors (n, 3) in the plane of a and b with a'.a = b'.b = 1 and a'.b = b'.a = 0."""
    normal = jnp.cross(a, b)
    normal = normal / jnp.sum(normal * normal, axis=1, keepdims=True)
    return jnp.cross(b, normal), jnp.cross(normal, a)


_einsum = functools.partial(jnp.einsum, precision=jax.lax.Precision.HIGHEST)
