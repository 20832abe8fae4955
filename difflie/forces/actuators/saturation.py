"""Limits that are applied: what an actuator cannot give it does not give."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Bound = jax.Array | float


def between(x: Float[Array, ""], least: Bound, most: Bound) -> Float[Array, ""]:
    """x (), or the bound that it is beyond; the derivative at a bound is that inside."""
    x = jnp.where(x < least, least, x)
    return jnp.where(x > most, most, x)


def within(x: Float[Array, ""], most: Bound | None) -> Float[Array, ""]:
    """x (), but of a size of at most so much; as it is for None."""
    return x if most is None else between(x, -most, most)
