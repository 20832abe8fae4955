"""Axes fixed on bodies, along which actuators push."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...system.fields import number
from ...system.validation import ModelError, format_value
from ..path import Path


class Axis(eqx.Module):
    """An axis fixed on a body: a point and a direction.

    body: its name, or None for the world; position (3,) in m, the point at which the force acts,
    and direction (3,), of any length, both in the body's frame.
    """

    body: str | None = eqx.field(static=True)
    position: jax.Array = eqx.field(converter=number(unit="m", shape=(3,)), default=(0.0, 0.0, 0.0))
    direction: jax.Array = eqx.field(
        converter=number(shape=(3,), kind="direction"), default=(0.0, 0.0, 1.0)
    )

    @property
    def unit(self) -> Float[Array, "3"]:
        """The direction (3,) with length one, in the body's frame."""
        return self.direction / jnp.sqrt(jnp.sum(self.direction * self.direction))

    @property
    def path(self) -> Path:
        """Its point, as a path of one point."""
        return Path(self.position[None], (self.body,))

    def __str__(self) -> str:
        return "the world" if self.body is None else repr(self.body)


def as_axis(axis: Any) -> Axis | None:
    """An `Axis` from a table {body, position (3,) in m, direction (3,)}; an Axis or None as it is.

    Raises `ModelError` for anything else.
    """
    if axis is None or isinstance(axis, Axis):
        return axis
    known = Axis.__dataclass_fields__.keys()
    if not isinstance(axis, Mapping) or not {"body"} <= axis.keys() <= known:
        raise ModelError(
            f"the axis is {format_value(axis)}; give a difflie.Axis, or a table with the keys "
            f"{', '.join(known)}"
        )
    return Axis(**axis)
