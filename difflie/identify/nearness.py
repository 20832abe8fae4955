"""How far the bodies of a machine are from those of another: a prior for what no torque tells.

The entropic divergence of the pseudo-inertia J of a body from another one J0,

    d = tr(J0^-1 J) - log det(J0^-1 J) - 4,

is the same in every frame and unit, zero only for J = J0, and convex in J, which it keeps positive
definite (Lee, Wensing and Park 2020). With the triangular factors J = U U^T, J0 = U0 U0^T and
L = U0^-1 U it is a sum of squares,

    d = sum_(i<j) L_ij^2 + sum_i (e^x_i - 1 - x_i),    x_i = 2 log L_ii,

so that least squares take it as it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..system.system import System
from .problem import Problem
from .pseudo_inertia import log_cholesky

# 1 / (k + 2)!, highest power first.
_SERIES = np.array([1 / math.factorial(k + 2) for k in reversed(range(16))])


class Nearness(Problem):
    """sqrt(weight d) of bodies: each ten residuals with the divergence times the weight as square.

    nominal (k, 10): the `log_cholesky` parameters of the k bodies they shall be near to; weight ()
    in inverse variances.
    """

    nominal: jax.Array
    weight: jax.Array
    bodies: tuple[int, ...] = eqx.field(static=True)

    @staticmethod
    def of(system: System, weight: float = 1.0) -> Nearness:
        """To the bodies of a machine; those without mass, or else inconsistent, are left out.

        Raises ValueError for a weight that is not positive.
        """
        if not 0 < weight < np.inf:
            raise ValueError(f"the weight is {weight}; it must be positive and finite")
        nominal = _theta(system, range(len(system.body_names)))
        kept = np.flatnonzero(np.isfinite(np.asarray(nominal)).all(axis=1))
        return Nearness(nominal[kept], jnp.asarray(weight, system.dtype), tuple(kept.tolist()))

    def residual(self, system: System, own: jax.Array) -> Float[Array, " k"]:
        terms = jax.vmap(divergence_terms)(_theta(system, self.bodies), self.nominal)
        return (jnp.sqrt(self.weight) * terms).ravel()

    @property
    def measured(self) -> Bool[Array, " k"]:
        return jnp.ones(self.nominal.size, bool)


def divergence_terms(theta: Float[Array, "10"], nominal: Float[Array, "10"]) -> Float[Array, "10"]:
    """Numbers (10,) whose squares sum to the divergence of theta (10,) from nominal (10,)."""
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


def _theta(system: System, bodies: Sequence[int]) -> Any:
    b, at = system.bodies, np.array(bodies, int)
    return log_cholesky(b.mass[at], b.com[at], b.inertia[at])
