"""Frames on bodies."""

from __future__ import annotations

from typing import Annotated, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..groups import quaternion, so3
from ..groups.components import Vector
from ..spatial import Transform
from .fields import number, numbers
from .joints import plane
from .validation import ModelError, format_value


class Frame(eqx.Module):
    """A frame fixed on a body.

    body: its name, None for the world, or the name of one of the `System.frames`, on which it then
    stands. position (3,) in m and rotation (3,), a rotation vector in rad: the pose of the frame in
    the body frame. Both are leaves. rotation may also be passed as a rotation matrix (3, 3). `axis`
    (3,), of any length, can be passed instead of rotation: it is the direction of the frame's z
    axis, which the smallest rotation takes there.

    Raises `ModelError` if both rotation and axis are passed, for a zero axis, and for values that
    are not numbers.

    >>> hand = dl.Frame("arm", position=(0, 0, 0.1), axis=(1, 0, 0))
    >>> print(hand.rotation[1:2].round(3))  # a quarter turn about y takes z to x
    [1.571]
    """

    body: str | None = eqx.field(static=True)
    position: jax.Array = eqx.field(converter=number(unit="m", shape=(3,)))
    rotation: jax.Array = eqx.field(converter=number(unit="rad", shape=(3,), kind="rotation"))

    def __init__(
        self,
        body: str | None = None,
        position: Any = (0.0, 0.0, 0.0),
        rotation: Any = None,
        axis: Any = None,
    ) -> None:
        self.body = body
        self.position = jnp.asarray(numbers(position, f"{_on(body)}: position", (3,)))
        if rotation is not None and axis is not None:
            raise ModelError(f"{_on(body)}: give its rotation or its axis, not both")
        if axis is not None:
            direction = numbers(axis, f"{_on(body)}: axis", (3,))
            if not isinstance(direction, Tracer) and not np.linalg.norm(direction) > 1e-9:
                raise ModelError(f"{_on(body)}: the axis is zero; give it a direction")
            rotation = _least_rotation(direction)
        elif rotation is None:
            rotation = (0.0, 0.0, 0.0)
        rotation = jnp.asarray(numbers(rotation, f"{_on(body)}: rotation", (3,), (3, 3)))
        self.rotation = so3.log(rotation) if rotation.shape == (3, 3) else rotation

    @property
    def pose(self) -> Transform:
        """The pose of the frame in its body frame, components () in m."""
        turn = so3.exp_components(Vector.from_array(self.rotation))
        return Transform(turn, Vector.from_array(self.position))

    def __str__(self) -> str:
        return "the world" if self.body is None else repr(self.body)


# What `as_frame` takes; in files a table.
FrameLike = Annotated[Frame | str | None, Frame]


def as_frame(frame: Any) -> Frame:
    """A `Frame` unchanged; from the name of a body or frame that frame; from None the world's.

    Raises `ModelError` for anything else.
    """
    if frame is None or isinstance(frame, str):
        return Frame(frame)
    if isinstance(frame, Frame):
        return frame
    raise ModelError(
        f"{format_value(frame)} is no frame; give the name of a body, or a difflie.Frame"
    )


def composed(base: Frame, inner: Frame) -> Frame:
    """The frame on the body of `base` whose pose in that frame is that of `inner`."""
    numbers = inner.position, inner.rotation
    if not any(isinstance(a, Tracer) or np.any(a) for a in numbers):
        return base
    pose = base.pose @ inner.pose
    return Frame(base.body, pose.translation.to_array(), pose.rotation.to_array())


def _least_rotation(direction: Any) -> jax.Array:
    """The rotation vector (3,) of the smallest rotation that takes z to a direction (3,)."""
    if not isinstance(direction, Tracer):
        x, y = plane(np.asarray(direction))
        z = direction / np.linalg.norm(direction)
        dtype = jax.dtypes.canonicalize_dtype(direction.dtype)
        return so3.log(jnp.asarray(np.stack((x, y, z), axis=1), dtype))
    n = Vector.from_array(direction / jnp.sqrt(jnp.sum(direction**2)))
    # From the unnormalised quaternion (1 + n_z, z x n); about x if n is -z.
    below = 1 + n.z < 1e-12
    scalar = jnp.where(below, 0, 1 + n.z)
    x, y = jnp.where(below, 1, -n.y), jnp.where(below, 0, n.x)
    length = jnp.sqrt(scalar**2 + x**2 + y**2)
    return quaternion.log(jnp.stack((scalar, x, y, jnp.zeros_like(x))) / length)


def _on(body: str | None) -> str:
    return f"a frame on {'the world' if body is None else repr(body)}"
