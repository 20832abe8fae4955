"""Bounds as a primal-dual interior point method has them (Nocedal and Wright 2006, 19.3).

An entry c >= a has a distance t > 0, with c - a - t -> 0, and a multiplier z > 0, with z t -> mu. A
step dc of the entry changes t by dt = dc + r, r = c - a - t, and z to (mu - z dt) / t. Once these
are eliminated, dc costs

    first . dc + second dc^2 / 2,    first = -(mu - z r) / t,    second = z / t,

and likewise at upper bounds. An equality c = a has a multiplier y and a large weight w instead,
first = y + w (c - a), second = w, and a step changes y by w (dc + c - a), see Friedlander and
Orban 2012.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

# How much of the way to a bound a step may take.
_MOST = 0.995
# The distances of c from its lower and from its upper bound are _SIGN (c - bound).
_SIGN = np.array([[1], [-1]])


def inside(
    c: Float[Array, " M"], a: Float[Array, " M"], b: Float[Array, " M"], off: float
) -> Float[Array, " M"]:
    """The values nearest to c that are off the bounds, relative to these or to what is between."""
    least = off * jnp.minimum(b - a, 1 + jnp.minimum(jnp.abs(a), jnp.abs(b)))
    least = jnp.where(jnp.isfinite(least), least, 0.0)
    return jnp.clip(c, a + least, b - least)


class Barrier(NamedTuple):
    """Distances t and multipliers z of lower and upper bounds, and the bounds, all (2, M); y (M,).

    y: the multipliers of equalities, zero elsewhere; t is infinite where there is no inequality.
    """

    t: jax.Array
    z: jax.Array
    y: jax.Array
    bounds: jax.Array

    @staticmethod
    def start(
        c: Float[Array, " M"], y: Float[Array, " M"], a: Float[Array, " M"], b: Float[Array, " M"]
    ) -> Barrier:
        """The distances of c from the bounds a, b, between which it is; y: the multipliers."""
        bounds = jnp.stack((a, b))
        is_open = jnp.isfinite(bounds) & (a != b)
        t = jnp.where(is_open, _SIGN * (c - bounds), jnp.inf)
        z = jnp.where(is_open, jnp.maximum(-_SIGN * y, 0), 0.0)
        return Barrier(t, z, jnp.where(a == b, y, 0.0), bounds)

    @property
    def is_equality(self) -> jax.Array:
        return self.bounds[0] == self.bounds[1]

    @property
    def is_open(self) -> jax.Array:
        """Which bounds (2, M) are inequalities."""
        return jnp.isfinite(self.t)

    @property
    def multipliers(self) -> jax.Array:
        """Of the entries (M,), positive at upper bounds."""
        return self.y + self.z[1] - self.z[0]

    @property
    def count(self) -> jax.Array:
        """The number () of inequalities, at least 1."""
        return jnp.maximum(jnp.sum(self.is_open), 1).astype(self.t.dtype)

    @property
    def products(self) -> jax.Array:
        """Multipliers times distances (2, M)."""
        return jnp.where(self.is_open, self.z * self.t, 0.0)

    def centred(self, mu: jax.Array) -> Barrier:
        """The same with multipliers of at least mu over the distance."""
        return self._replace(z=jnp.maximum(self.z, mu / self.t))

    def residual(self, c: jax.Array) -> jax.Array:
        """The distances that c (M,) has, less t (2, M); for equalities c - a, once."""
        first = jnp.arange(2)[:, None] == 0
        equal = jnp.where(self.is_equality & first, c - self.bounds, 0.0)
        return jnp.where(self.is_open, _SIGN * (c - self.bounds) - self.t, equal)

    def paid(self, mu: jax.Array) -> jax.Array:
        """The barrier (), -mu sum of log t."""
        return -mu * jnp.sum(jnp.where(self.is_open, jnp.log(self.t), 0.0))

    def condensed(
        self, c: jax.Array, mu: jax.Array, weight: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """first and second (M,), at entries c (M,)."""
        r = self.residual(c)
        inner = -jnp.sum(_SIGN * (mu - self.z * r) / self.t, axis=0)
        first = jnp.where(self.is_equality, self.y + weight * r[0], inner)
        return first, jnp.where(self.is_equality, weight, jnp.sum(self.z / self.t, axis=0))

    def towards(self, c: jax.Array, dc: jax.Array, mu: jax.Array, weight: jax.Array) -> Barrier:
        """The changes of t, z and y that a change dc (M,) brings, with the same bounds."""
        r = self.residual(c)
        dt = jnp.where(self.is_open, r + _SIGN * dc, 0.0)
        dz = (mu - self.z * dt) / self.t - self.z
        dy = jnp.where(self.is_equality, weight * (r[0] + dc), 0.0)
        return Barrier(dt, dz, dy, self.bounds)

    def after(self, change: Barrier) -> jax.Array:
        """The multipliers (2, M) after a change; those of equalities in both rows."""
        return jnp.where(self.is_equality, self.y + change.y, self.z + change.z)

    def longest(self, change: Barrier) -> tuple[jax.Array, jax.Array]:
        """The lengths () of a step, at most 1, at which t and z stay positive."""

        def until_zero(x: jax.Array, dx: jax.Array) -> jax.Array:
            shrinks = dx < 0
            return jnp.min(
                jnp.where(shrinks, _MOST * x / -jnp.where(shrinks, dx, 1.0), 1.0), initial=1.0
            )

        return until_zero(self.t, change.t), until_zero(self.z, change.z)

    def moved(self, change: Barrier, alpha: jax.Array, alpha_z: jax.Array) -> Barrier:
        """After alpha () of a change of t and y, and alpha_z () of that of z."""
        return Barrier(
            self.t + alpha * change.t,
            self.z + alpha_z * change.z,
            self.y + alpha * change.y,
            self.bounds,
        )
