"""The energy of a system, its momentum, and its centre of mass."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..dynamics import center_of_mass, momentum
from ..forces import energy
from ..system.system import System
from .quantity import Labels, Quantity, joined, xyz


class Energy(Quantity):
    """Kinetic and potential energy, and their sum (3,), in J; see `difflie.energy`.

    >>> ball = dl.chain([dl.Body(name="ball", joint=dl.Prismatic(), mass=2.0)])
    >>> drift = dl.quantities.Drift(dl.quantities.Energy())
    >>> run = dl.simulate(ball, [1.0], [0.0], steps=100, reductions={"drift": drift})
    >>> bool(run.reduced["drift"][2] < 1e-9)  # of the total energy, in J
    True
    """

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


_LABELS = (*xyz("N m s", "angular "), *xyz("N s", "linear "))


class Momentum(Quantity):
    """The momentum (6,) in world axes: angular about the world origin (N m s), then linear (N s).

    body: the name of one body, or None for the system; see `difflie.momentum`. Armature does not
    contribute.
    """

    body: str | None = eqx.field(default=None, static=True)

    @property
    def name(self) -> str:
        return "momentum" if self.body is None else f"momentum of {self.body}"

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
        return momentum(system, q, v, self.body)


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
