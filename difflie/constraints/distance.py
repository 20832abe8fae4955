"""A massless rod between two points."""

from __future__ import annotations

import equinox as eqx
import jax

from ..groups.components import Scalar
from ..spatial import Transform
from ..system.fields import number
from .constraint import JointConstraint


class Distance(JointConstraint):
    """The origins of both frames stay at the distance `length` L in m, a scalar: 1 equation.

    With the vector d between the origins it is (d . d - L^2) / (2 L) = 0, which is smooth
    everywhere; where it holds its multiplier is the force in the rod, positive in compression.
    """

    length: jax.Array = eqx.field(
        converter=number(
            unit="m", positive=True, fix="for coinciding points take SphericalConstraint"
        )
    )

    equations = ("distance",)

    def residual(self, a: Transform, b: Transform) -> list[Scalar]:
        d, length = b.translation - a.translation, self.length
        return [(d.square() - length * length) / (2 * length)]
