"""Equations between the coordinates of joints: linear and polynomial ones, and gears."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from numpy.typing import ArrayLike

from ..groups.components import Scalar
from ..spatial import Motion, Transform
from ..system.fields import number, numbers
from ..system.frame import Frame
from ..system.validation import ModelError
from .constraint import CoordinateConstraint, FrameConstraint, moved_along
from .joints import HelicalConstraint, PrismaticConstraint, RevoluteConstraint


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
        """The name of its equation."""
        return (f"coordinate of {self.driven!r}",)

    def residual(self, driven: Scalar, driver: Any = 0.0) -> list[Scalar]:
        return [driven - evaluated(self.coefficients, driver)]


class PolynomialOfSums(CoordinateConstraint):
    """y = c_0 + c_1 x + c_2 x^2 + ..., where y and x are sums of coordinates of joints: 1 equation.

    driven and drivers: names of joints with one degree of freedom; driven_ratios and driver_ratios
    (n,), of each sum, in m/rad or without unit: y = sum of ratio times coordinate, x likewise.
    coefficients (k,), in powers of m or rad. All numbers are leaves. It is the equality of two
    fixed tendons of MuJoCo; a linear one is a `Proportional`. `problems` names ratios of another
    shape.
    """

    driven: tuple[str, ...] = eqx.field(static=True, converter=tuple)
    driven_ratios: jax.Array = eqx.field(converter=number(shape=None))
    coefficients: jax.Array = eqx.field(converter=number(shape=None))
    drivers: tuple[str, ...] = eqx.field(static=True, converter=tuple)
    driver_ratios: jax.Array = eqx.field(converter=number(shape=None))

    equations = ("polynomial of a sum",)

    @property
    def joints(self) -> tuple[str, ...]:
        return (*self.driven, *self.drivers)

    def problems(self) -> list[str]:
        for names, ratios in (("driven", "driven_ratios"), ("drivers", "driver_ratios")):
            count, shape = len(getattr(self, names)), jnp.shape(getattr(self, ratios))
            if not count or shape != (count,):
                return [f"{ratios} has shape {shape}; give one number for each of its {names}"]
        if jnp.ndim(self.coefficients) != 1 or not jnp.size(self.coefficients):
            return [f"coefficients has shape {jnp.shape(self.coefficients)}, needed is (k,)"]
        return super().problems()

    def residual(self, *coordinates: Any) -> list[Scalar]:
        first = len(self.driven)
        pairs = zip(self.driven_ratios, coordinates[:first], strict=True)
        driven = sum(ratio * x for ratio, x in pairs)
        pairs = zip(self.driver_ratios, coordinates[first:], strict=True)
        driver = sum(ratio * x for ratio, x in pairs)
        return [driven - evaluated(self.coefficients, driver)]


def evaluated(coefficients: jax.Array, x: Any) -> Any:
    """The polynomial c_0 + c_1 x + ... () at x () of its coefficients (k,)."""
    value: Any = 0.0
    for k in reversed(range(coefficients.shape[0])):
        value = value * x + coefficients[k]
    return value


Geared = RevoluteConstraint | PrismaticConstraint | HelicalConstraint


class Gearing(FrameConstraint):
    """Two joints whose coordinates are coupled.

    first, second: a RevoluteConstraint, PrismaticConstraint or HelicalConstraint each, usually
    those that hold the wheels on the gear carrier. Their frames are separate leaves here. ratio (),
    in rad or m of the first coordinate per unit of the second, a leaf. `problems` names joints of
    other types.
    """

    first: Geared
    second: Geared
    ratio: jax.Array = eqx.field(converter=number())

    @property
    def frames(self) -> tuple[Frame, ...]:
        return *self.first.frames, *self.second.frames

    @property
    def apart(self) -> tuple[tuple[Frame, ...], ...]:
        return self.first.frames, self.second.frames

    def problems(self) -> list[str]:
        wrong = [
            f"{type(joint).__name__} has not one coordinate; give it a RevoluteConstraint, "
            "PrismaticConstraint or HelicalConstraint"
            for joint in (self.first, self.second)
            if not isinstance(joint, Geared)
        ]
        return [*wrong, *super().problems()]

    def coordinates(self, *frames: Transform) -> Scalar:
        """x_1 + ratio x_2 of the coordinates of both joints."""
        first, second = self.first.coordinate(*frames[:2]), self.second.coordinate(*frames[2:])
        return first + self.ratio * second


class Gear(Gearing):
    """x_1 + ratio x_2 = offset for the coordinates of two joints: 1 position constraint.

    The angle x_1 of a RevoluteConstraint is known up to full turns, so the equation holds modulo 2
    pi / teeth, as wheels mesh with any of their teeth. It is valid over any number of turns where
    x_2 is a translation, as of a rack, or the angle of a screw, or where teeth * ratio is an
    integer: wheels with n_1 and n_2 teeth have ratio n_2 / n_1 for external and -n_2 / n_1 for
    internal meshing, and teeth n_1. For other ratios an angle x_2 must stay within half a turn of
    zero; otherwise use `Transmission`. first, second: constraints of revolute, prismatic or helical
    joints, whose coordinates x_1 and x_2 are. ratio in units of x_1 / x_2 and offset in rad or m
    are scalars; an angle is zero where the x axes of its joint's frames coincide.
    """

    offset: jax.Array = eqx.field(converter=number(unit="rad or m"), default=0.0)
    teeth: int = eqx.field(static=True, default=1)

    equations = ("ratio of the coordinates",)

    def residual(self, *frames: Transform) -> list[Scalar]:
        error = self.coordinates(*frames) - self.offset
        if isinstance(self.first, RevoluteConstraint):
            pitch = 2 * jnp.pi / self.teeth
            error = error - pitch * jnp.round(jax.lax.stop_gradient(error) / pitch)
        return [error]

    def problems(self) -> list[str]:
        whole = isinstance(self.teeth, int) and self.teeth > 0
        wrong = f"it has {self.teeth!r} teeth; a positive whole number is needed"
        return [*super().problems(), *([] if whole else [wrong])]


class Transmission(Gearing):
    """dx_1/dt + ratio dx_2/dt = 0 for the coordinates of two joints: 1 velocity constraint.

    For any ratio and any number of turns, such as of wheels that roll on each other or of a belt;
    the initial state sets the offset. first and second: as of `Gear`; ratio in units of x_1 / x_2,
    a scalar.
    """

    equations = ("ratio of the rates",)

    @property
    def holonomic(self) -> bool:
        return False

    def residual(self, *frames: Transform) -> list[Scalar]:
        return []

    def rate(self, frames: tuple[Transform, ...], twists: tuple[Motion, ...]) -> list[Scalar]:
        rates: Any = tuple(moved_along(f, t) for f, t in zip(frames, twists, strict=True))
        return [jax.jvp(self.coordinates, frames, rates)[1]]
