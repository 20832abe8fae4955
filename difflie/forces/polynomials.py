"""Springs and dampers of the second and third order, beside their linear parts."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float


def higher_spring(terms: Float[Array, "2"], x: Float[Array, ""]) -> Float[Array, ""]:
    """a x^2 + b x^3 () of the terms (a, b) at a stretch x ()."""
    return (terms[0] + terms[1] * x) * x * x


def higher_energy(terms: Float[Array, "2"], x: Float[Array, ""]) -> Float[Array, ""]:
    """The energy () of `higher_spring` at a stretch x ()."""
    return (terms[0] / 3 + terms[1] * x / 4) * x * x * x


def higher_damper(terms: Float[Array, "2"], v: Float[Array, ""]) -> Float[Array, ""]:
    """c v |v| + d v^3 () of the terms (c, d) at a rate v ()."""
    return (terms[0] * jnp.abs(v) + terms[1] * v * v) * v
