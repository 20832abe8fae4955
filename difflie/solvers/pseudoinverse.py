"""The smallest solution of linear equations that may say the same twice."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp


def pseudoinverse(matrix: jax.Array) -> Callable[[jax.Array], jax.Array]:
    """The smallest x (m,) with matrix x = b, as a linear function of b (m,) in the range.

    matrix (m, m) is not differentiated. Singular values s act by s / (s^2 + e^2) with e far below
    the largest, so that there is no decision about a rank, which would change from one evaluation
    to the next. Small ones lose by it, for an iteration to make up.
    """
    m = len(matrix)
    if not m:
        return lambda b: b
    limits = jnp.finfo(matrix.dtype)
    u, s, vt = jnp.linalg.svd(jax.lax.stop_gradient(matrix))
    e = float(limits.eps) ** 0.6 * jnp.maximum(s[0], limits.tiny**0.25)
    weight = s / (s * s + e * e)

    def solved(b: jax.Array) -> jax.Array:
        return _product(vt.T, weight * _product(u.T, b))

    return solved


def _product(a: jax.Array, b: jax.Array) -> jax.Array:
    return jnp.matmul(a, b, precision=jax.lax.Precision.HIGHEST)
