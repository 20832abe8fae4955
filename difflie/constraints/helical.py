"""The screw: a nut on its thread."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool

from ..groups.components import Scalar
from ..spatial import Transform
from ..system.fields import number
from .constraint import JointConstraint
from .joints import OFFSETS, TILTS, along, axial_turn, parallel, reversed_axes


class HelicalConstraint(JointConstraint):
    """Rotation about the common z axis by x, which moves the second frame by pitch x: 5 equations.

    pitch p in m/rad, a scalar, not zero. With the travel d along the axis the last equation is p
    sin(d / p - x) = 0. It holds over any number of turns, since the travel counts them. It also
    holds half a revolution off the thread, which `misassembled` detects. From a guess `assemble`
    finds the nearest turn of the thread.
    """

    pitch: jax.Array = eqx.field(converter=number(unit="m/rad"))

    equations = *TILTS, *OFFSETS, "travel along the thread"

    def residual(self, a: Transform, b: Transform) -> list[Scalar]:
        cos, sin = axial_turn(a, b)
        x = self.coordinate(a, b)
        slip = self.pitch * (jnp.sin(x) * cos - jnp.cos(x) * sin)
        return [*parallel(a, b), along(a, b, 0), along(a, b, 1), slip]

    def coordinate(self, a: Transform, b: Transform) -> Scalar:
        """The angle in rad, not wrapped."""
        return along(a, b, 2) / self.pitch

    def misassembled(self, a: Transform, b: Transform) -> Bool[Array, ""]:
        cos, sin = axial_turn(a, b)
        x = self.coordinate(a, b)
        return reversed_axes(a, b) | (jnp.cos(x) * cos + jnp.sin(x) * sin < 0)

    def problems(self) -> list[str]:
        known = not isinstance(self.pitch, Tracer)
        zero = known and not np.any(self.pitch)
        return [
            *super().problems(),
            *(["its pitch is zero; take RevoluteConstraint"] if zero else []),
        ]
