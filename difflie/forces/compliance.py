"""The force of a compliant unilateral contact, smooth where it begins and ends.

A gap phi, open where positive, of the rate phidot is pressed in by

    del = (-phi + sqrt(phi^2 + eps^2)) / 2,     deldot = -phidot del / sqrt(phi^2 + eps^2)
    f = k del^p max(0, 1 + d deldot)

and f never pulls (Hunt and Crossley 1975). The only smoothing is eps (m): del is smooth for
eps > 0, decays as eps^2 / 4 phi away from the contact, and for eps = 0 is max(-phi, 0).
Without dissipation, d = 0, the force is minus the slope of a potential, with u = ln(2 del / eps):

    U = k (del^(p+1) / (p+1) + (eps/2)^(p+1) (e^((p-1) u) - 1) / (p-1))

For p = 1 it falls without bound as the gap opens, as the smoothed force does not decay fast enough.
All derivatives are finite; at a kink of the law with eps = 0 they lie between the one-sided ones.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .path import root

# Annotations are evaluated in this file: otherwise Equinox takes an AbstractVar for a field.


class Compliance(eqx.Module):
    """A compliant contact law: stiffness k, exponent p, dissipation d and smoothing eps, scalars.

    Units: N/m^p, 1, s/m and m; for gaps that are angles N m/rad^p, 1, s/rad and rad.
    """

    stiffness: eqx.AbstractVar[jax.Array]
    exponent: eqx.AbstractVar[jax.Array]
    dissipation: eqx.AbstractVar[jax.Array]
    smoothing: eqx.AbstractVar[jax.Array]

    def pressure(self, gap: Float[Array, "*n"], rate: Float[Array, "*#n"]) -> Float[Array, "*n"]:
        """The force f at gaps and their rates, elementwise, in N or N m; positive opens the gap."""
        depth, share = self._indentation(gap)
        damped = jnp.maximum(1 - self.dissipation * rate * share, 0)
        return self.stiffness * power(depth, self.exponent) * damped

    def potential(self, gap: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """The energy in J that gaps store, elementwise."""
        depth, _ = self._indentation(gap)
        half, above = self.smoothing / 2, self.exponent + 1
        inside = power(depth, above) / above
        smooth = (half > 0) & (depth > 0)
        u = jnp.log(jnp.where(smooth, depth, 1)) - jnp.log(jnp.where(smooth, half, 1))
        outside = power(half, above) * u * _relative_growth((self.exponent - 1) * u)
        return self.stiffness * (inside + jnp.where(smooth, outside, 0))

    def _indentation(
        self, gap: Float[Array, "*n"]
    ) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
        """del, and -d(del)/d(phi): the part of the closing rate that deepens it."""
        square = self.smoothing * self.smoothing
        distance = root(gap * gap + square)
        # On the open side this form avoids cancellation.
        far = jnp.where(gap > 0, gap + distance, 1)
        depth = jnp.where(gap > 0, square / (2 * far), (distance - gap) / 2)
        apart = distance > 0
        share = jnp.where(apart, depth / jnp.where(apart, distance, 1), 0.5)
        return depth, share


def power(x: Float[Array, "*n"], exponent: Float[Array, ""]) -> Float[Array, "*n"]:
    """x^exponent for x (n,) >= 0, elementwise, with derivatives, which are zero at x = 0."""
    return jnp.where(x > 0, jnp.where(x > 0, x, 1) ** exponent, 0)


def _relative_growth(z: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """(e^z - 1) / z, elementwise."""
    small = jnp.abs(z) < 1e-5
    return jnp.where(small, 1 + z / 2 + z * z / 6, jnp.expm1(z) / jnp.where(small, 1, z))
