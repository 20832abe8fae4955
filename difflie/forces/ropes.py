"""Elastic ropes: springs that pull and never push."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..system.fields import number
from .springs import LinearElastic


class Rope(LinearElastic):
    """An elastic rope, slack below its rest length: energy k max(y - y_r, 0)^2 / 2.

    Arguments as of `Spring`. The tension has a kink at y = y_r, where the derivative is that of the
    taut side.
    """

    def stretch(self, length: Float[Array, "*n"]) -> Float[Array, "*n"]:
        stretch = super().stretch(length)
        return jnp.where(stretch < 0, jnp.zeros_like(stretch), stretch)


class SmoothRope(LinearElastic):
    """An elastic rope that becomes taut gradually, within `smoothing` d of its rest length.

    Arguments as of `Spring`; smoothing d in m, a scalar. The tension is 0 below y_r - d and k (y -
    y_r) above y_r + d; between them its slope is k (3 x^2 - 2 x^3), x = (y - y_r + d) / 2 d, so
    that it has two continuous derivatives.
    """

    smoothing: jax.Array = eqx.field(converter=number(unit="m", positive=True, fix="or use Rope"))

    def potential(self, length: Float[Array, "*n"]) -> Float[Array, "*n"]:
        d = self.smoothing
        stretch, x = self._blend(length)
        taut = stretch * stretch / 2 + d * d / 10
        rising = d * d * x * x * x * x * (1 - 2 * x / 5)
        return self.stiffness * jnp.where(stretch > d, taut, rising)

    def tension(self, length: Float[Array, "*n"]) -> Float[Array, "*n"]:
        stretch, x = self._blend(length)
        rising = 2 * self.smoothing * x * x * x * (1 - x / 2)
        return self.stiffness * jnp.where(stretch > self.smoothing, stretch, rising)

    def _blend(self, length: Float[Array, "*n"]) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
        """y - y_r, and x clipped to [0, 1]."""
        stretch, d = self.stretch(length), self.smoothing
        x = (stretch + d) / (2 * d)
        x = jnp.where(stretch < -d, jnp.zeros_like(x), jnp.where(stretch > d, jnp.ones_like(x), x))
        return stretch, x
