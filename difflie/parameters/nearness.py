"""The distance of the inertial parameters of a body from nominal ones.

The entropic divergence of the pseudo-inertia J of a body from another one J0,

    d = tr(J0^-1 J) - log det(J0^-1 J) - 4,

is invariant under changes of frame and unit, zero only for J = J0, convex in J, and infinite at its
bounds, so that J stays positive definite (Lee, Wensing and Park 2020). With the triangular factors
J = U U^T, J0 = U0 U0^T and L = U0^-1 U it is a sum of squares,

    d = sum_(i<j) L_ij^2 + sum_i (e^x_i - 1 - x_i),    x_i = 2 log L_ii,

whose terms are residuals of least squares.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

# Taylor coefficients 1 / (k + 2)!, highest power first.
_SERIES = np.array([1 / math.factorial(k + 2) for k in reversed(range(16))])


def divergence_terms(theta: Float[Array, "10"], nominal: Float[Array, "10"]) -> Float[Array, "10"]:
    """Residuals (10,) whose squares sum to the divergence of theta (10,) from nominal (10,).

    Both as `log_cholesky` gives them, of bodies with mass; the divergence is without unit.
    """
    scale = jnp.exp(theta[0] - nominal[0])
    f0, f = _factor(nominal), _factor(theta)
    moved = jnp.column_stack((f, theta[7:] - nominal[7:]))
    across = scale * jax.scipy.linalg.solve_triangular(f0, moved)
    logarithms = 2 * (theta[0] - nominal[0] + jnp.append(theta[1:4] - nominal[1:4], 0))
    return jnp.concatenate((_above(logarithms), across[np.triu_indices(3, 1, 4)]))


def _above(x: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """sqrt(e^x - 1 - x) with the sign of x, differentiable at zero."""
    near = jnp.abs(x) < 1
    series = jnp.polyval(jnp.asarray(_SERIES, x.dtype), jnp.where(near, x, 0))
    far = jnp.where(near, 1, x)
    return x * jnp.sqrt(jnp.where(near, series, (jnp.expm1(far) - far) / far**2))


def _factor(theta: Float[Array, "10"]) -> Float[Array, "3 3"]:
    """The triangular factor (3, 3) of the second moments of mass, for a unit mass."""
    f = jnp.diag(jnp.exp(theta[1:4]))
    return f.at[(0, 1, 0), (1, 2, 2)].set(theta[4:7])
