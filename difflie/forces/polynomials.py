"""Springs and dampers of the second and third order, beside their linear parts."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float


def higher_spring(terms: Float[Array, "2"], x: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """a x^2 + b x^3 (n,) of the terms (a, b) at stretches x (n,), elementwise."""
    return (terms[0] + terms[1] * x) * x * x


def higher_energy(terms: Float[Array, "2"], x: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """The energy (n,) of `higher_spring` at stretches x (n,), elementwise."""
    return (terms[0] / 3 + terms[1] * x / 4) * x * x * x


def higher_damper(terms: Float[Array, "2"], v: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """c v |v| + d v^3 (n,) of the terms (c, d) at rates v (n,), elementwise."""
    return (terms[0] * jnp.abs(v) + terms[1] * v * v) * v
