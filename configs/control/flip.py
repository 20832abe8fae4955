"""The turn that flip.toml asks for."""

import jax
import jax.numpy as jnp

from difflie import quaternion

BEGIN, END = 0.3, 0.7  # s


def turn(system, t):
    """The state (q (7,), v (6,)) of one turn about x, between two times."""

    def angle(t):
        s = jnp.clip((t - BEGIN) / (END - BEGIN), 0.0, 1.0)
        return 2 * jnp.pi * s * s * (3 - 2 * s)

    whole, rate = jax.jvp(angle, (t,), (jnp.ones_like(t),))
    q = jnp.zeros(7).at[0].set(jnp.cos(whole / 2)).at[1].set(jnp.sin(whole / 2))
    return q, jnp.zeros(6).at[0].set(rate)


def behind_the_turn(system, q, v, u, t):
    """The rotation vector (3,) in rad from the attitude of the turn to that of the quadrotor."""
    turned = quaternion.conjugate(turn(system, t)[0][:4])
    return quaternion.log(quaternion.multiply(turned, q[:4]))
