"""The state itself."""

from __future__ import annotations

import jax
from jaxtyping import Array, Float

from ..system.system import System
from .quantity import Labels, Quantity


class Coordinates(Quantity):
    """The configuration q (nq,), in rad, m, or the entries of unit quaternions."""

    @property
    def name(self) -> str:
        return "q"

    def labels(self, system: System) -> Labels:
        return system.topology.coordinate_labels

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: jax.Array,
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, " nq"]:
        return q


class Velocities(Quantity):
    """The velocity v (nv,), in rad/s or m/s."""

    @property
    def name(self) -> str:
        return "v"

    def labels(self, system: System) -> Labels:
        return system.topology.velocity_labels

    def __call__(
        self,
        system: System,
        q: jax.Array,
        v: Float[Array, " nv"],
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, " nv"]:
        return v
