"""Any two bounded convex shapes, by how far they reach along a normal.

`normals.py` finds the normal of the signed distance without derivatives. One step of Newton's
method from there, with the kinks held on which the normal lies, gives it the derivatives of the
solution; the gap and the points follow. The gap has exact derivatives to second order, normal and
points to first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...groups.components import Matrix, Vector
from ...spatial import Transform
from .cores import Core, Parts, Shares, core, parts_of
from .flat_faces import flat_points
from .normals import (
    Summit,
    disc_axes,
    highest,
    shares_at,
    solved,
    stiffness,
    summit,
    tangents,
    unit,
)
from .witness import Witness, along, placed, relative, stretched

# Shapes that may lie flat.
FLAT = "capsule", "cylinder", "box", "hull"


def contact_point(kind_a: str, kind_b: str) -> Callable[[Transform, Any, Transform, Any], Witness]:
    """The function that finds the nearest points of two kinds of bounded shapes.

    k = 4 for those that may lie flat on each other, of which as many are valid as span what they
    share; k = 1 for others.
    """

    def find(pose: Transform, numbers: Any, other: Transform, numbers_b: Any) -> Witness:
        seen = relative(pose, other)
        zero = jnp.zeros_like(seen.translation.x)
        home = Transform(Matrix.scaled_identity(zero + 1), Vector(zero, zero, zero))
        (a, radius_a), (b, radius_b) = core(kind_a, home, numbers), core(kind_b, seen, numbers_b)
        parts = parts_of(a, b)
        rounded = [kind for kind in (kind_a, kind_b) if kind in ("cylinder", "ellipsoid")]
        discs = tuple(i for i, kind in enumerate(rounded) if kind == "cylinder")
        size = jax.lax.stop_gradient(extent(parts))
        plain = jax.lax.stop_gradient(jax.tree.map(lambda x: x / size, parts))
        top = jax.lax.stop_gradient(summit(plain, discs))
        soft = jax.lax.stop_gradient(shares_at(plain, top.normal))
        gap, normal, first = touching(a, parts, discs, top, soft)
        gaps, points, valid = gap[None], first[None], True
        if kind_a in FLAT and kind_b in FLAT:
            gaps, points, valid = flat_points(a, b, normal, gap, first, size)
        first = Vector.from_array(points + normal * radius_a)
        gaps = gaps - radius_a - radius_b
        normal = stretched(Vector.from_array(normal), gaps)
        return placed(pose, along(normal, gaps, first, valid))

    return find


def extent(parts: Parts) -> jax.Array:
    """A length like those of the parts, in m."""
    lengths = jnp.concatenate(
        [
            jnp.abs(x).reshape(-1)
            for x in (parts.step, parts.sides, parts.rounds, parts.points, parts.opposite)
        ]
    )
    return jnp.maximum(lengths.max(), jnp.finfo(lengths.dtype).tiny ** 0.25)


def pulled(parts: Parts, shares: Shares) -> jax.Array:
    """The step (3,) from the points of the first shape that take part to those of the second."""
    return (
        parts.step
        - shares.sides @ parts.sides
        - jnp.einsum("mi,mij->j", shares.rounds, parts.rounds)
        - shares.points @ parts.points
        - shares.opposite @ parts.opposite
    )


def exact_shares(parts: Parts, n: jax.Array, held: Shares) -> Shares:
    """The furthest points of all parts along n, but nothing of those that are held on kinks."""
    y = parts.rounds @ n
    return Shares(
        jax.lax.stop_gradient(jnp.sign(parts.sides @ n)) * (1 - held.sides),
        unit(y) * (1 - held.rounds),
        held.points,
        held.opposite,
    )


def bent(parts: Parts, n: jax.Array, shares: Shares) -> jax.Array:
    """The second derivative (3, 3) of the separation, which the rounds give it."""
    size = jnp.sqrt(((parts.rounds @ n) ** 2).sum(-1))
    free = (shares.rounds**2).sum(-1) > 0.5
    scale = jnp.where(free, 1 / jnp.where(free, size, 1), 0)[:, None, None]
    pull = jnp.einsum("mi,mij->mj", shares.rounds, parts.rounds)
    inner = jnp.einsum("mij,mik->mjk", parts.rounds, parts.rounds)
    return -((inner - pull[:, :, None] * pull[:, None]) * scale).sum(0)


def touching(
    a: Core, parts: Parts, discs: tuple[int, ...], top: Summit, soft: Shares
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The gap of two cores, the normal (3,) and the point (3,) on the first, with derivatives."""
    stop, kinks = jax.lax.stop_gradient, top.kinks
    lines = unit(kinks.edges(parts))
    corner = unit(jnp.cross(lines[0], lines[1]) + top.discs @ disc_axes(parts, discs))
    corner = jnp.where(stop(corner @ top.normal) < 0, -corner, corner)
    on_two = stop(corner @ corner) > 0
    edge = lines[0]
    n = unit(top.normal - edge * (edge @ top.normal))
    n = jnp.where(on_two, corner, n)

    flat = jnp.zeros((parts.rounds.shape[0], 1), n.dtype)
    flat = flat.at[np.array(discs, int), 0].set(top.discs)
    ends = (highest(stop(points), stop(n)) for points in (parts.points, parts.opposite))
    held = Shares(kinks.sides.sum(0), flat, *ends)

    t = tangents(n, edge)
    shares = exact_shares(parts, n, held)
    gradient = pulled(parts, shares)
    matrix = stop(stiffness(gradient, bent(parts, n, shares), n, t))
    x = solved(matrix, t @ gradient)
    # On corners that nearly touch, rounding would lead it astray; derivatives are too great there.
    x = jnp.where(on_two | (stop(x @ x) > 1e-6), 0, x)
    n = unit(n + x @ t)
    shares = exact_shares(parts, n, held)
    gap = n @ pulled(parts, shares)
    return gap, n, point(a, parts, n, gap, shares, soft)


def point(
    a: Core, parts: Parts, n: jax.Array, gap: jax.Array, exact: Shares, soft: Shares
) -> jax.Array:
    """The point (3,) of the first core that is nearest to the second, and gap n from it.

    Parts that lie flat against the other core share it as they do on rounded kinks, in the middle
    of where they may, and are moved from there, the more the further they are from their ends.
    """
    stop = jax.lax.stop_gradient
    nearly = 1 - jnp.finfo(n.dtype).eps ** 0.5

    def loose(x: jax.Array) -> jax.Array:
        return (x * x).sum(-1, keepdims=True) < nearly

    one = loose(soft.sides[:, None])[:, 0]
    w = loose(soft.rounds)
    p, q = (x.max() < nearly for x in (soft.points, soft.opposite))
    shares = Shares(
        jnp.where(one, soft.sides, exact.sides),
        jnp.where(w, soft.rounds, exact.rounds),
        jnp.where(p, soft.points, exact.points),
        jnp.where(q, soft.opposite, exact.opposite),
    )
    free = jnp.where(one, 1 - soft.sides**2, 0)
    turning = jnp.where(w, 1 - (soft.rounds**2).sum(-1, keepdims=True), 0)[:, :, None]
    sides = free[:, None, None] * parts.sides[:, :, None] * parts.sides[:, None]
    rounds = jnp.einsum("mij,mik->mjk", parts.rounds, parts.rounds) * turning

    def spread(weights: jax.Array, points: jax.Array, free: jax.Array) -> jax.Array:
        from_middle = points - weights @ points
        return jnp.where(free, (from_middle * weights[:, None]).T @ from_middle, 0)

    g, m = a.sides.shape[0], a.rounds.shape[0]
    own = sides[:g].sum(0) + rounds[:m].sum(0) + spread(soft.points, parts.points, p)
    rest = sides[g:].sum(0) + rounds[m:].sum(0) + spread(soft.opposite, parts.opposite, q)
    t = tangents(stop(n), jnp.zeros_like(n))
    own, both = stop(own), stop(t @ (own + rest) @ t.T)
    eps = jnp.finfo(n.dtype).eps
    least = 0.1 * eps**0.5 * jnp.trace(both) + eps * stop(extent(parts)) ** 2
    move = solved(both + least * jnp.eye(2, dtype=n.dtype), t @ (pulled(parts, shares) - gap * n))
    return (
        a.centre
        + shares.sides[:g] @ parts.sides[:g]
        + jnp.einsum("mi,mij->j", shares.rounds[:m], parts.rounds[:m])
        + shares.points @ parts.points
        + own @ (move @ t)
    )
