"""Linear equations between the coordinates of joints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ..groups.components import Scalar
from ..system.fields import number, numbers
from ..system.validation import ModelError
from .constraint import CoordinateConstraint


class Proportional(CoordinateConstraint):
    """sum_i ratios_i x_i = offset for the coordinates x_i of joints: 1 equation.

    names: n names of joints with one degree of freedom; ratios (n,), in units of offset / x_i, and
    offset, a scalar in rad or m, are leaves. Gears, belts, racks and differentials in joint
    coordinates, which count full turns. Raises `ModelError` for ratios of another shape.
    """

    names: tuple[str, ...] = eqx.field(static=True)
    ratios: jax.Array = eqx.field(converter=number(shape=None))
    offset: jax.Array = eqx.field(converter=number(unit="rad or m"), default=0.0)

    def __init__(self, names: Sequence[str], ratios: Any, offset: Any = 0.0) -> None:
        self.names = tuple(names)
        hint = f": one for each of its {len(self.names)} joints"
        self.ratios = jnp.asarray(numbers(ratios, f"{self}: ratios", (len(self.names),), hint=hint))
        self.offset = offset
        if not self.names:
            raise ModelError(f"{self}: it has no joints; give one name or more")

    @property
    def joints(self) -> tuple[str, ...]:
        return self.names

    equations = ("sum of the coordinates",)

    def residual(self, *coordinates: Any) -> list[Scalar]:
        return [sum(r * x for r, x in zip(self.ratios, coordinates, strict=True)) - self.offset]
