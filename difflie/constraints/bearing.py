"""Joints with one degree of freedom, and the friction in them."""

from __future__ import annotations

import abc
from typing import ClassVar

import equinox as eqx
import jax

from ..groups.components import Scalar
from ..spatial import Motion, Transform
from ..system.fields import number, number_faults
from .constraint import JointConstraint


class Friction(eqx.Module):
    """Coulomb friction in a joint, in proportion to its reaction; see `friction.py`.

    coefficient c: the friction for a reaction of 1 N; in m for a revolute joint (coefficient of
    friction times bearing radius), without unit for a prismatic one. velocity s_0 in rad/s or m/s:
    the rate over which friction rises smoothly. Both are scalars; `constrain` raises `ModelError`
    unless they are positive.
    """

    coefficient: jax.Array = eqx.field(
        converter=number(unit="m or 1", positive=True, fix="without friction give none")
    )
    velocity: jax.Array = eqx.field(
        converter=number(unit="rad/s or m/s", positive=True, fix="it makes friction smooth"),
        default=1e-3,
    )

    def problems(self) -> list[str]:
        """The faults of its numbers, each with the fix."""
        return number_faults(self)


class Bearing(JointConstraint):
    """A joint with one degree of freedom, which may have friction."""

    friction: Friction | None = eqx.field(default=None, kw_only=True)

    loads: ClassVar[tuple[int, ...]]
    """The equations whose multipliers are the reaction, in N, that causes friction."""

    @abc.abstractmethod
    def slip(self, frames: tuple[Transform, Transform], twists: tuple[Motion, Motion]) -> Scalar:
        """The rate () of the joint in rad/s or m/s, linear in the twists of the frames."""

    def problems(self) -> list[str]:
        rubbing = [] if self.friction is None else self.friction.problems()
        return [*super().problems(), *(f"its friction: {fault}" for fault in rubbing)]
