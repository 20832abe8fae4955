"""Linear and polynomial equations between the coordinates of joints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from numpy.typing import ArrayLike

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


class Polynomial(CoordinateConstraint):
    """q_driven = c_0 + c_1 q_driver + c_2 q_driver^2 + ...: 1 equation.

    driven and driver are joints with one degree of freedom; coefficients (n,), a leaf, in powers of
    rad or m. Without a driver the one coefficient is the fixed coordinate of the driven one. Raises
    `ModelError` for coefficients of another shape.
    """

    driven: str = eqx.field(static=True)
    coefficients: jax.Array = eqx.field(converter=number(shape=None))
    driver: str | None = eqx.field(static=True, default=None)

    def __init__(self, driven: str, coefficients: ArrayLike, driver: str | None = None) -> None:
        self.driven, self.driver = driven, driver
        array = coefficients
        if not isinstance(array, jax.Array):
            array = jnp.asarray(coefficients, float)
        if array.ndim != 1 or not array.size or (driver is None and array.size > 1):
            needed = "(1,)" if driver is None else "(n,), n of 1 or more"
            raise ModelError(f"{self}: coefficients has shape {array.shape}, needed is {needed}")
        self.coefficients = array

    @property
    def joints(self) -> tuple[str, ...]:
        return (self.driven,) if self.driver is None else (self.driven, self.driver)

    @property
    def equations(self) -> tuple[str, ...]:
        return (f"coordinate of {self.driven!r}",)

    def residual(self, driven: Scalar, driver: Any = 0.0) -> list[Scalar]:
        value: Any = 0.0
        for k in reversed(range(self.coefficients.shape[0])):
            value = value * driver + self.coefficients[k]
        return [driven - value]
