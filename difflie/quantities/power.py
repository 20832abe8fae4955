"""The power of the control."""

from __future__ import annotations

import jax
from jaxtyping import Array, Float

from ..system.system import System
from .effort import Effort
from .quantity import Labels, Quantity


class Power(Quantity):
    """The mechanical power (nv,) in W of the control at each degree of freedom: effort times v.

    The sum is the rate at which the control does work on the system; see `Effort`.
    """

    @property
    def name(self) -> str:
        return "power"

    def labels(self, system: System) -> Labels:
        return tuple((name, "W") for name, _ in system.topology.velocity_labels)

    def __call__(
        self,
        system: System,
        q: jax.Array,
        v: Float[Array, " nv"],
        u: Float[Array, " nu"] | None,
        t: jax.Array | float,
    ) -> Float[Array, " nv"]:
        return Effort()(system, q, v, u, t) * v
