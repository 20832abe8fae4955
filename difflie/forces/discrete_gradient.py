"""The mean force of couplings over a step, for energy-momentum methods.

With the segments s_0, s_1 at both ends of a step, of lengths l_0, l_1, a spring of the potential
U(y), y the sum of the lengths, exerts the tension T along the mean directions u:

    T = (U(y_1) - U(y_0)) / (y_1 - y_0),        u = (s_0 + s_1) / (l_0 + l_1)

Since u . (s_1 - s_0) = l_1 - l_0, its work in the step is U(y_0) - U(y_1). This is the discrete
gradient (Gonzalez 1996) in the squares of the lengths, written without cancellation. Since u is
parallel to the mean segment, angular momentum is conserved. All other forces at points are those at
the middle of the step.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def mean_slope(
    potential: Callable[[jax.Array], jax.Array],
    slope: Callable[[jax.Array], jax.Array],
    y0: Float[Array, "*n"],
    y1: Float[Array, "*n"],
) -> Float[Array, "*n"]:
    """(potential(y1) - potential(y0)) / (y1 - y0), or its limit, the slope, for y1 = y0.

    y0, y1 and the result have one shape; elementwise. Gauss quadrature of the slope with three
    points avoids cancellation. Where it does not give the difference of the potential to rounding
    (a large step, or one across a kink), the quotient itself is taken.
    """
    difference, centre = y1 - y0, (y0 + y1) / 2
    offset = difference * (0.15**0.5)
    mean = (5 * (slope(centre - offset) + slope(centre + offset)) + 8 * slope(centre)) / 18
    before, after = potential(y0), potential(y1)
    scale = jnp.abs(before) + jnp.abs(after) + jnp.abs(mean) * (jnp.abs(y0) + jnp.abs(y1))
    rounding = 16 * jnp.finfo(difference.dtype).eps * scale
    off = jnp.abs(after - before - mean * difference) > rounding
    safe = jnp.where(off, difference, jnp.ones_like(difference))
    return jnp.where(off, (after - before) / safe, mean)
