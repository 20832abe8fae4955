"""The momentum of a system."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..dynamics import center_of_mass, momentum
from ..system.system import System
from .quantity import Labels, Quantity, joined, xyz

_LABELS = (*xyz("N m s", "angular "), *xyz("N s", "linear "))


class Momentum(Quantity):
    """The momentum (6,) in world axes: angular about the world origin (N m s), then linear (N s).

    Armature does not contribute.
    """

    @property
    def name(self) -> str:
        return "momentum"

    def labels(self, system: System) -> Labels:
        return _LABELS

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, "6"]:
        return momentum(system, q, v)


class CentroidalMomentum(Quantity):
    """The momentum (6,) in world axes: angular about the centre of mass, then linear (N s).

    It is `centroidal_momentum_matrix(system, q) @ v`.
    """

    @property
    def name(self) -> str:
        return "centroidal momentum"

    def labels(self, system: System) -> Labels:
        return _LABELS

    def __call__(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        u: jax.Array | None,
        t: jax.Array | float,
    ) -> Float[Array, "6"]:
        about_origin = momentum(system, q, v)
        linear = about_origin[3:]
        return joined(about_origin[:3] - jnp.cross(center_of_mass(system, q), linear), linear)
