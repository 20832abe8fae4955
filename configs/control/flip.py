"""The turn that flip.toml asks for."""

import jax.numpy as jnp

from difflie import quaternion

BEGIN, END = 0.25, 0.75  # s


def behind_the_turn(system, q, v, u, t):
    """The rotation vector (3,) in rad from one turn about x, between two times, to the attitude."""
    s = jnp.clip((t - BEGIN) / (END - BEGIN), 0.0, 1.0)
    half = jnp.pi * s * s * (3 - 2 * s)
    zero = jnp.zeros_like(half)
    turned = jnp.stack((jnp.cos(half), jnp.sin(half), zero, zero))
    return quaternion.log(quaternion.multiply(quaternion.conjugate(turned), q[:4]))
