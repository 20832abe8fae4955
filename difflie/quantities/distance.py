"""How far two frames are from each other."""

from __future__ import annotations

import equinox as eqx
import jax
from jaxtyping import Array, Float

from ..forces.path import root
from ..system.frame import Frame, as_frame
from ..system.system import System
from .frames import placed
from .quantity import Labels, Quantity


class Distance(Quantity):
    """The distance in m, a scalar, between the origins of two frames.

    first, second: a `Frame`, or the name of a body for its own frame. Where the origins coincide
    the derivative is zero, the subgradient of least norm.
    """

    first: Frame = eqx.field(converter=as_frame)
    second: Frame = eqx.field(converter=as_frame)

    @property
    def name(self) -> str:
        return f"distance of {self.first} and {self.second}"

    def labels(self, system: System) -> Labels:
        return ((self.name, "m"),)

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: jax.Array,
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, ""]:
        first, second = placed(system, q, self.first, self.second)
        return root((second.translation - first.translation).square())
