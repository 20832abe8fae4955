"""Saturation of what an actuator delivers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Bound = jax.Array | float


def between(x: Float[Array, ""], least: Bound, most: Bound) -> Float[Array, ""]:
    """x () clipped to [least, most]; at a bound the derivative is that inside."""
    x = jnp.where(x < least, least, x)
    return jnp.where(x > most, most, x)


def within(x: Float[Array, ""], most: Bound | None) -> Float[Array, ""]:
    """x () clipped to [-most, most]; unchanged for None."""
    return x if most is None else between(x, -most, most)
