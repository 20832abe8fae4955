"""All that is bounded in a problem, the controls' own box included, as one vector."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .discretization import Discretization, Motion
from .model import Model
from .penalty import Bounds


class Entries(NamedTuple):
    """A number for all that is bounded: along (N, m), end (m,), u (N, nu), z (nz,) at the start.

    As one vector (M,) they stand in this order.
    """

    along: jax.Array
    end: jax.Array
    u: jax.Array
    z: jax.Array

    @staticmethod
    def values(model: Model, motion: Motion) -> Entries:
        """The entries themselves."""
        return Entries(model.along.bounded, model.end.bounded, motion.u, motion.x.z[0])

    @staticmethod
    def changes(model: Model, knots: Discretization, d: jax.Array, end: jax.Array) -> Entries:
        """Those in the linear model for d (N, nx + nu), and dx_N (nx,)."""
        along = jnp.einsum("kmi,ki->km", model.along.C, d)
        start = d[0, knots.nx - knots.nz : knots.nx]
        return Entries(along, model.end.C @ end, d[:, knots.nx :], start)

    @staticmethod
    def bounds(knots: Discretization, bounds: Bounds) -> tuple[Entries, Entries]:
        """The least and the largest."""
        u = [jnp.tile(u, (knots.steps, 1)) for u in (knots.u_lower, knots.u_upper)]
        return (
            Entries(bounds.lower, bounds.end_lower, u[0], knots.z_lower),
            Entries(bounds.upper, bounds.end_upper, u[1], knots.z_upper),
        )

    @property
    def flat(self) -> Float[Array, " M"]:
        """One vector."""
        return jnp.concatenate([jnp.ravel(part) for part in self])

    def like(self, flat: Float[Array, " M"]) -> Entries:
        """A vector as entries of these shapes."""
        ends = [sum(part.size for part in self[: i + 1]) for i in range(3)]
        parts = jnp.split(flat, ends)
        return Entries(*(p.reshape(a.shape) for p, a in zip(parts, self, strict=True)))

    def settled(
        self, motion: Motion, y: Entries, bounds: tuple[Entries, Entries], cost: jax.Array
    ) -> tuple[Motion, Entries]:
        """A motion with controls at their bounds where these hold them, and y, zero elsewhere.

        y: the multipliers. A bound holds an entry if y, relative to the cost, is larger than the
        distance, relative to the bound: interior points are near bounds, and never at them.
        """
        a, b = (part.flat for part in bounds)
        c, multiplier = self.flat, y.flat
        bound = jnp.where(multiplier > 0, b, a)
        size = 1 + jnp.abs(bound)
        held = jnp.abs(multiplier) * size**2 > jnp.abs(cost) * jnp.abs(c - bound)
        held = (held & jnp.isfinite(bound)) | (a == b)
        at = self.like(jnp.where(held, bound, c))
        moved = motion._replace(u=at.u, x=motion.x._replace(z=motion.x.z.at[0].set(at.z)))
        return moved, self.like(jnp.where(held, multiplier, 0.0))
