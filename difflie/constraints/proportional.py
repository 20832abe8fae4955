"""Linear equations between the coordinates of joints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ..groups.components import Scalar
from ..system.validation import ModelError
from .constraint import CoordinateConstraint
from .frame import number


class Proportional(CoordinateConstraint):
    """sum_i ratios_i x_i = offset for the coordinates x_i of joints: 1 equation.

    names: n names of joints with one degree of freedom; ratios (n,), in units of offset / x_i, and
    offset, a scalar in rad or m, are leaves. Gears, belts, racks and differentials in joint
    coordinates, which count full turns. Raises `ModelError` for ratios of another shape.
    """

    names: tuple[str, ...] = eqx.field(static=True)
    ratios: jax.Array
    offset: jax.Array

    def __init__(self, names: Sequence[str], ratios: Any, offset: Any = 0.0) -> None:
        self.names = tuple(names)
        self.ratios = ratios if isinstance(ratios, jax.Array) else jnp.asarray(ratios, float)
        self.offset = number(offset)
        if self.ratios.shape != (len(self.names),) or not self.names:
            raise ModelError(
                f"{self}: ratios has shape {self.ratios.shape}; one number for each of its "
                f"{len(self.names)} joints is needed"
            )

    @property
    def joints(self) -> tuple[str, ...]:
        return self.names

    @property
    def equations(self) -> tuple[str, ...]:
        return ("sum of the coordinates",)

    def residual(self, *coordinates: Any) -> list[Scalar]:
        return [sum(r * x for r, x in zip(self.ratios, coordinates, strict=True)) - self.offset]
