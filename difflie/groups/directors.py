"""Poses as an origin and three directors, (4, 3) with the rows (r, d1, d2, d3), and their steps.

In these coordinates a rotation is no product but a linear equation: with the space-fixed rate w,
constant over a step of length h, the directors obey d1 - d0 = h w x (d0 + d1)/2, which is the
Cayley map of h w/2 and keeps them orthonormal exactly; a rotation of pi within a step is out of
reach. Rates (6,) are (w, u), w in rad/s and the velocity u of the origin in m/s, in world axes.

All functions take any leading axes. Betsch and Steinmann 2001; Betsch and Leyendecker 2006.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def middle(
    frame: Float[Array, "*#batch 4 3"], rates: Float[Array, "*#batch 6"], h: jax.Array | float
) -> Float[Array, "*batch 4 3"]:
    """The mean of the frames at the start and the end of a step of length h (s).

    Shapes: (4, 3), (6,), scalar -> (4, 3). Its directors solve the equation above:

        d = (I - hat(g))^-1 d0 = (d0 + g x d0 + g (g . d0)) / (1 + |g|^2),    g = h w / 2

    They are orthonormal up to O(h^2) only.
    """
    g = (h / 2) * rates[..., None, :3]
    origin, directors = frame[..., :1, :], frame[..., 1:, :]
    along = jnp.sum(g * directors, axis=-1, keepdims=True)
    turned = directors + jnp.cross(g, directors) + along * g
    mean = turned / (1 + jnp.sum(g * g, axis=-1, keepdims=True))
    return jnp.concatenate((origin + (h / 2) * rates[..., None, 3:], mean), axis=-2)


def motion(
    frame: Float[Array, "*#batch 4 3"], rates: Float[Array, "*#batch 6"]
) -> Float[Array, "*batch 4 3"]:
    """The rates of the coordinates: (u, w x d1, w x d2, w x d3), in m/s and 1/s.

    Shapes: (4, 3), (6,) -> (4, 3). At the middle of a step h motion(middle, rates) is the
    difference of the frames at its end and its start.
    """
    turning = jnp.cross(rates[..., None, :3], frame[..., 1:, :])
    return jnp.concatenate((rates[..., None, 3:], turning), axis=-2)


def rates(
    frame: Float[Array, "*#batch 4 3"], velocity: Float[Array, "*#batch 4 3"]
) -> Float[Array, "*batch 6"]:
    """The inverse of `motion`: the rates (w, u) of a velocity tangent at an orthonormal frame.

    Shapes: (4, 3), (4, 3) -> (6,), in rad/s and m/s.
    """
    spin = jnp.sum(jnp.cross(frame[..., 1:, :], velocity[..., 1:, :]), axis=-2) / 2
    return jnp.concatenate((spin, velocity[..., 0, :]), axis=-1)


def load(
    frame: Float[Array, "*#batch 4 3"], force: Float[Array, "*#batch 4 3"]
) -> Float[Array, "*batch 6"]:
    """The moment about the origin (N m) and the force (N) of forces on the coordinates.

    Shapes: (4, 3), (4, 3) -> (6,). The transpose of `motion`: the power is the same.
    """
    moment = jnp.sum(jnp.cross(frame[..., 1:, :], force[..., 1:, :]), axis=-2)
    return jnp.concatenate((moment, force[..., 0, :]), axis=-1)


def orthonormalised(frame: Float[Array, "*batch 4 3"]) -> Float[Array, "*batch 4 3"]:
    """One Newton step towards orthonormal directors: errors e become O(e^2).

    Shapes: (4, 3) -> (4, 3), the origin in m, the directors without unit.
    """
    d = frame[..., 1:, :]
    gram = jnp.sum(d[..., :, None, :] * d[..., None, :, :], axis=-1)
    half = (jnp.broadcast_to(jnp.eye(3, dtype=d.dtype), gram.shape) - gram) / 2
    corrected = d + jnp.sum(half[..., :, :, None] * d[..., None, :, :], axis=-2)
    return jnp.concatenate((frame[..., :1, :], corrected), axis=-2)
