"""Where the centre of mass is."""

from __future__ import annotations

import jax
from jaxtyping import Array, Float

from ..dynamics import center_of_mass
from ..system.system import System
from .quantity import Labels, Quantity, xyz


class CenterOfMass(Quantity):
    """The position (3,) of the centre of mass in the world, in m."""

    @property
    def name(self) -> str:
        return "centre of mass"

    def labels(self, system: System) -> Labels:
        return xyz("m")

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: jax.Array,
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, "3"]:
        return center_of_mass(system, q)
