"""The energy of a system."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..forces import energy
from ..system.system import System
from .quantity import Labels, Quantity


class Energy(Quantity):
    """Kinetic and potential energy, and their sum (3,), in J; see `difflie.energy`."""

    @property
    def name(self) -> str:
        return "energy"

    def labels(self, system: System) -> Labels:
        return tuple((part, "J") for part in ("kinetic", "potential", "total"))

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, "3"]:
        kinetic, potential = energy(system, q, v)
        return jnp.stack((kinetic, potential, kinetic + potential))
