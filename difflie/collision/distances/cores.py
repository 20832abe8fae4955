"""Convex shapes as sums of simple sets, and how far two of them are separated along a normal.

A shape is a ball around a core, and a core is the sum of a centre, of segments, of images of the
unit ball (discs and ellipsoids), and of the hull of points. The reach of a sum along a unit vector
n is the sum of reaches: |s.n| of a segment +-s, |M n| of the image of the unit ball under M^T, the
greatest v.n of points. So the separation of two shapes along n, from the first to the second, is

    f(n) = n.step - sum |s.n| - sum |M n| - max v.n

over the parts of both, and the signed distance is its greatest value over all unit vectors:
of shapes apart, where f is concave around the only maximum, and of overlapping ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from ...groups.components import Scalar, components
from ...spatial import Transform


@components
@dataclass(frozen=True, slots=True)
class Core:
    """centre (3,), segments (g, 3) from it to both sides, rounds M (m, 3, 3), points (n, 3) around
    the centre, in m."""

    centre: jax.Array
    sides: jax.Array
    rounds: jax.Array
    points: jax.Array


@components
@dataclass(frozen=True, slots=True)
class Parts:
    """What separates two cores: the step between centres (3,), and the parts of both.

    sides (g, 3), rounds (m, 3, 3), points of the first (n, 3) and the negative ones of the second
    (k, 3).
    """

    step: jax.Array
    sides: jax.Array
    rounds: jax.Array
    points: jax.Array
    opposite: jax.Array


@components
@dataclass(frozen=True, slots=True)
class Shares:
    """Which point of each part is furthest: s u of sides u (g,), M^T u of rounds u (m, 3), and
    weights of points (n,) and (k,)."""

    sides: jax.Array
    rounds: jax.Array
    points: jax.Array
    opposite: jax.Array


def core(kind: str, pose: Transform, numbers: Any) -> tuple[Core, Scalar]:
    """The core of a shape and the radius of the ball around it."""
    rotation = pose.rotation.to_array()
    columns, radius = rotation.T, jnp.zeros((), rotation.dtype)
    sides, rounds = columns[:0], columns[None][:0]
    points = jnp.zeros((1, 3), rotation.dtype)
    if kind == "sphere":
        (radius,) = numbers
    elif kind == "capsule":
        radius, half_length = numbers
        sides = columns[2:] * half_length
    elif kind == "cylinder":
        wide, half_length = numbers
        sides = columns[2:] * half_length
        rounds = (columns * jnp.array([1, 1, 0])[:, None] * wide)[None]
    elif kind == "box":
        sides = columns * numbers[0].to_array()[:, None]
    elif kind == "ellipsoid":
        rounds = (columns * numbers[0].to_array()[:, None])[None]
    else:
        points = numbers[0] @ rotation.T
    return Core(pose.translation.to_array(), sides, rounds, points), radius


def parts_of(a: Core, b: Core) -> Parts:
    """What separates two cores that are given in one frame."""
    return Parts(
        b.centre - a.centre,
        jnp.concatenate((a.sides, b.sides)),
        jnp.concatenate((a.rounds, b.rounds)),
        a.points,
        -b.points,
    )


def separation(parts: Parts, n: jax.Array) -> jax.Array:
    """f(n) of unit vectors (..., 3)."""
    rounds = jnp.einsum("mij,...j->...mi", parts.rounds, n)
    return (
        n @ parts.step
        - jnp.abs(n @ parts.sides.T).sum(-1)
        - jnp.sqrt((rounds * rounds).sum(-1)).sum(-1)
        - (n @ parts.points.T).max(-1)
        - (n @ parts.opposite.T).max(-1)
    )


def softened(
    parts: Parts, n: jax.Array, mu: Scalar
) -> tuple[jax.Array, jax.Array, jax.Array, Shares]:
    """f with kinks rounded over a length mu: value, gradient (3,), Hessian (3, 3), and `Shares`.

    |x| becomes sqrt(x^2 + mu^2), and the greatest of points mu log sum exp(v.n / mu).
    """
    x = parts.sides @ n
    root = jnp.sqrt(x * x + mu * mu)
    u = x / root
    y = parts.rounds @ n
    size = jnp.sqrt((y * y).sum(-1) + mu * mu)
    w = y / size[:, None]
    pulled = jnp.einsum("mij,mi->mj", parts.rounds, w)
    value = n @ parts.step - root.sum() - size.sum()
    gradient = parts.step - u @ parts.sides - pulled.sum(0)
    bend = (parts.sides * ((1 - u * u) / root)[:, None]).T @ parts.sides
    inner = jnp.einsum("mij,mik->mjk", parts.rounds, parts.rounds)
    outer = pulled[:, :, None] * pulled[:, None]
    bend += ((inner - outer) / size[:, None, None]).sum(0)
    weights = []
    for v in (parts.points, parts.opposite):
        if v.shape[0] == 1:
            value -= v[0] @ n
            gradient -= v[0]
            weights.append(jnp.ones_like(v[:, 0]))
            continue
        height = v @ n
        top = height.max()
        e = jnp.exp((height - top) / mu)
        weight = e / e.sum()
        middle = weight @ v
        value -= top + mu * jnp.log(e.sum())
        gradient -= middle
        bend += ((v - middle) * weight[:, None]).T @ (v - middle) / mu
        weights.append(weight)
    return value, gradient, -bend, Shares(u, w, *weights)


def softened_separation(parts: Parts, n: jax.Array, mu: Scalar) -> jax.Array:
    """The value of `softened` alone."""
    x, y = parts.sides @ n, parts.rounds @ n
    roots = jnp.sqrt(jnp.append(x * x, (y * y).sum(-1)) + mu * mu)
    value = n @ parts.step - roots.sum()
    for v in (parts.points, parts.opposite):
        height = v @ n
        top = height.max()
        more = mu * jnp.log(jnp.exp((height - top) / mu).sum()) if v.shape[0] > 1 else 0
        value -= top + more
    return value
