"""Means of the gradient of a potential along the straight step from q0 to q1.

The work of such a mean along the step, gbar . (q1 - q0), stands for V(q1) - V(q0); how well it does
is how well an energy-stable step keeps the energy.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

# gbar (n,) of potential(q) () from q0 (n,) to q1 (n,), in units of the potential per q.
MeanGradient = Callable[[Callable, jax.Array, jax.Array], jax.Array]


def gauss_mean(
    points: int, potential: Callable, q0: Float[Array, " n"], q1: Float[Array, " n"]
) -> Float[Array, " n"]:
    """Gauss quadrature with s points: gbar = sum_g w_g grad V(q0 + xi_g (q1 - q0)).

    Exact for polynomials V of degree 2s; else the energy error of a run falls with h^2s. ValueError
    for less than one point.
    """
    nodes, weights = np.polynomial.legendre.leggauss(points)
    gradients = (jax.grad(potential)(q0 + float(1 + x) / 2 * (q1 - q0)) for x in nodes)
    return sum((float(w) / 2 * g for w, g in zip(weights, gradients, strict=True)), 0 * q0)


def discrete_gradient(
    potential: Callable, q0: Float[Array, " n"], q1: Float[Array, " n"]
) -> Float[Array, " n"]:
    """Gonzalez' discrete gradient: grad V at the middle, corrected along the step.

    gbar = g + (V(q1) - V(q0) - g . d) d / |d|^2 with d = q1 - q0, so that gbar . d is the change of
    V for every V. Gonzalez, Journal of Nonlinear Science 6, 1996.
    """
    d, middle = q1 - q0, (q0 + q1) / 2
    square = jnp.sum(d * d)
    g = jax.grad(potential)(middle)
    # The numerator is of order |d|^3. Where that is below rounding the correction would be
    # nothing but rounding, divided by |d|.
    smallest = jnp.finfo(q0.dtype).eps ** (2 / 3) * jnp.sum(middle * middle)
    tiny = jax.lax.stop_gradient(square <= smallest)
    rest = potential(q1) - potential(q0) - jnp.sum(g * d)
    return g + jnp.where(tiny, 0, rest) / jnp.where(tiny, 1, square) * d
