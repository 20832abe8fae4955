"""The command itself."""

from __future__ import annotations

import jax
from jaxtyping import Array, Float

from ..system.system import System
from .quantity import Labels, Quantity


class Command(Quantity):
    """The command u (nu,), in the units of the actuators."""

    @property
    def name(self) -> str:
        return "u"

    def labels(self, system: System) -> Labels:
        return ()

    def __call__(
        self,
        system: System,
        q: jax.Array,
        v: jax.Array,
        u: Float[Array, " nu"],
        t: jax.Array | float,
    ) -> Float[Array, " nu"]:
        return u
