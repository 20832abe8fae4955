"""Paths: points of bodies, joined by straight segments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..groups.components import Vector
from ..system.fields import number
from ..system.named_frames import placement
from ..system.system import System
from ..system.validation import ModelError


class Path(eqx.Module):
    """A path of straight segments through n points of bodies, in order.

    points (n, 3) in m, each in the frame of its body; bodies: their n names, None for the world.
    """

    points: jax.Array = eqx.field(converter=number(unit="m", shape=None))
    bodies: tuple[str | None, ...] = eqx.field(static=True)

    def __str__(self) -> str:
        return " - ".join("the world" if b is None else repr(b) for b in self.bodies)


def on_bodies(system: System, path: Path) -> tuple[Path, Float[Array, "n 3 3"]]:
    """The same path through bodies, and the rotations (n, 3, 3) of its frames in these.

    Points that were given in named frames of the system are given in their bodies' frames. Raises
    `ModelError` for an unknown body, with the nearest name.
    """
    placed = [placement(system, name, path.points.dtype) for name in path.bodies]
    turns = jnp.stack([pose.rotation.to_array() for _, pose in placed])
    origins = jnp.stack([pose.translation.to_array() for _, pose in placed])
    points = origins + (turns @ path.points[:, :, None])[:, :, 0]
    return Path(points, tuple(body for body, _ in placed)), turns


def unknown_frames(system: System, names: Sequence[str | None]) -> list[str]:
    """The faults of names that no body and no frame of the system has, with the nearest ones."""
    faults = []
    for name in filter(None, names):
        try:
            system.frame(name)
        except ModelError as error:
            faults.append(str(error).removeprefix(f"{system.name}: "))
    return faults


def as_path(given: Path | Sequence[tuple[str | None, Any]]) -> Path:
    """A `Path` from given pairs (body, point (3,)); a Path as it is.

    The points are in m, each in the frame of its body. Raises `ModelError` for anything else.
    """
    if isinstance(given, Path):
        return given
    bodies, points = [], []
    for k, pair in enumerate(given):
        try:
            body, point = pair
            point = jnp.asarray(point, None if isinstance(point, jax.Array) else float)
            understood = (body is None or isinstance(body, str)) and point.shape == (3,)
        except (TypeError, ValueError):
            body, point, understood = None, jnp.zeros(3), False
        if not understood:
            raise ModelError(
                f"point {k} of a path is {pair!r}; write (body, (x, y, z)) with the name of a "
                "body, or None for the world"
            )
        bodies.append(body)
        points.append(point)
    return Path(jnp.stack(points) if points else jnp.zeros((0, 3)), tuple(bodies))


def segments(positions: Vector) -> tuple[Vector, Float[Array, " n"], Float[Array, " n"]]:
    """The segment vectors between n successive positions, their squares and lengths, each (n - 1,).

    The length has a derivative of zero where two positions coincide.
    """
    step = jax.tree.map(lambda a: a[1:] - a[:-1], positions)
    square = step.square()
    return step, square, root(square)


def pulled(tensions: Vector) -> Vector:
    """The forces (n,) at the points, from the tensions (n - 1,) of the segments as vectors."""

    def sums(a: jax.Array) -> jax.Array:
        zero = jnp.zeros_like(a[:1])
        return jnp.concatenate((a, zero)) - jnp.concatenate((zero, a))

    return jax.tree.map(sums, tensions)


def root(square: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """The square root (n,), elementwise; at 0 the derivative is that of the square."""
    return jnp.where(square == 0, square, jnp.sqrt(jnp.where(square == 0, 1, square)))


def inverse(length: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """1 / length (n,), elementwise; 0 for segments of length 0, which have no direction."""
    return jnp.where(length == 0, length, 1 / jnp.where(length == 0, 1, length))
