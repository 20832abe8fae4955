"""Products of matrices in full precision, and the smallest solutions of singular equations.

Graphics processors multiply matrices in a lower precision unless told otherwise.

No rank is decided, which would change from one evaluation to the next. Eigenvalues or singular
values s are inverted as s / (s^2 + e^2), with e far below the largest: this removes rounding errors
and damps small values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from .jacobi import eigen

# Up to this many rows native code is quicker than LAPACK, and written in no time.
_SMALL = 16

Linear = Callable[[jax.Array], jax.Array]


def product(a: Any, b: jax.Array) -> jax.Array:
    """a @ b in full precision, in the dtype of b; a (m, n), b (n,) or (n, k), or stacks of them."""
    return jnp.matmul(jnp.asarray(a, b.dtype), b, precision=jax.lax.Precision.HIGHEST)


def minimum_norm(gram: jax.Array) -> Linear:
    """The smallest x (m,) with gram x = b, as a linear function of b (m,) in the range of gram.

    gram (m, m) is positive semidefinite and is not differentiated. One refinement makes up for the
    damping of small eigenvalues and for the rounding of the decomposition.
    """
    if not len(gram):
        return lambda b: b
    gram = jax.lax.stop_gradient(gram)
    s, basis = eigen(gram) if len(gram) <= _SMALL else jnp.linalg.eigh(gram)
    weight = _weights(s, jnp.max(s))

    def solved(b: jax.Array) -> jax.Array:
        return product(basis, weight * product(basis.T, b))

    def refined(b: jax.Array) -> jax.Array:
        x = solved(b)
        return x + solved(b - product(gram, x))

    return refined


def pseudoinverse(matrix: jax.Array) -> Linear:
    """The smallest x (m,) with matrix x = b, as a linear function of b (m,) in the range.

    matrix (m, m) is not differentiated. The damping of small singular values is left to an outer
    iteration.
    """
    if not len(matrix):
        return lambda b: b
    u, s, vt = jnp.linalg.svd(jax.lax.stop_gradient(matrix))
    weight = _weights(s, s[0])

    def solved(b: jax.Array) -> jax.Array:
        return product(vt.T, weight * product(u.T, b))

    return solved


def _weights(s: jax.Array, largest: jax.Array) -> jax.Array:
    limits = jnp.finfo(s.dtype)
    e = float(limits.eps) ** 0.6 * jnp.maximum(largest, limits.tiny**0.25)
    return s / (s * s + e * e)
