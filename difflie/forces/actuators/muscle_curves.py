"""How the force of a muscle depends on its length and velocity."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp

from ...groups.components import Scalar
from ...system.fields import number


class MuscleCurves(eqx.Module):
    """The active force F FL FV and the passive one F FP of a muscle, with its numbers.

    peak_force F in N, length_range (2,) in m, operating_range (2,), shortest, longest, fastest in
    1/s, passive and eccentric: as of `Muscle`.
    """

    peak_force: jax.Array = eqx.field(converter=number(unit="N", nonnegative=True), kw_only=True)
    length_range: jax.Array = eqx.field(converter=number(unit="m", shape=(2,)), kw_only=True)
    operating_range: jax.Array = eqx.field(
        converter=number(shape=(2,)), default=(0.75, 1.05), kw_only=True
    )
    shortest: jax.Array = eqx.field(converter=number(), default=0.5, kw_only=True)
    longest: jax.Array = eqx.field(converter=number(), default=1.6, kw_only=True)
    fastest: jax.Array = eqx.field(
        converter=number(unit="1/s", positive=True), default=1.5, kw_only=True
    )
    passive: jax.Array = eqx.field(converter=number(nonnegative=True), default=1.3, kw_only=True)
    eccentric: jax.Array = eqx.field(converter=number(), default=1.2, kw_only=True)

    def curves(self, length: Scalar, rate: Scalar) -> tuple[Scalar, Scalar]:
        """FL FV, and FP, at a length () in m and its rate () in m/s."""
        shortest, longest, r = self.shortest, self.longest, self.operating_range
        optimum = (self.length_range[1] - self.length_range[0]) / (r[1] - r[0])
        x = r[0] + (length - self.length_range[0]) / optimum
        speed = rate / (optimum * self.fastest)
        left, right = (shortest + 1) / 2, (1 + longest) / 2
        rises, up = (x - shortest) / (left - shortest), (1 - x) / (1 - left)
        down, falls = (x - 1) / (right - 1), (longest - x) / (longest - right)
        bump = jnp.where(x <= right, 1 - down * down / 2, falls * falls / 2)
        bump = jnp.where(x <= 1, 1 - up * up / 2, bump)
        bump = jnp.where(x <= left, rises * rises / 2, bump)
        bump = jnp.where((x < shortest) | (x > longest), 0, bump)
        most = self.eccentric - 1
        fast = self.eccentric - (most - speed) * (most - speed) / jnp.where(most > 0, most, 1)
        velocity = jnp.where(speed <= most, fast, self.eccentric)
        velocity = jnp.where(speed <= 0, (speed + 1) * (speed + 1), velocity)
        velocity = jnp.where(speed <= -1, 0, velocity)
        stretch = jnp.where(x <= right, down * down / 2, (x - right) / (right - 1) + 0.5)
        return bump * velocity, self.passive * jnp.where(x <= 1, 0, stretch)
