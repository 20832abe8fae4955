"""Gears between any two joints with one degree of freedom each."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ..groups.components import Scalar
from ..spatial import Motion, Transform
from ..system.fields import number
from ..system.frame import Frame
from .constraint import FrameConstraint, moved_along
from .joints import HelicalConstraint, PrismaticConstraint, RevoluteConstraint

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
    zero; otherwise use `Transmission`. ratio in units of x_1 / x_2 and offset are scalars; both
    angles are zero where the x axes of a joint's frames coincide.
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
    the initial state sets the offset. ratio in units of x_1 / x_2, a scalar.
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
