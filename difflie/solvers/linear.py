"""Linear algebra: products in full precision, least squares, small problems in plain arithmetic.

Graphics processors multiply matrices in a lower precision unless told otherwise.

In the smallest solutions of singular equations no rank is decided, which would change from one
evaluation to the next. Eigenvalues or singular values s are inverted as s / (s^2 + e^2), with e far
below the largest: this removes rounding errors and damps small values.

Jacobi's eigenvalue algorithm and Gauss-Jordan elimination of small matrices are in plain
arithmetic, which compiles into a native loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

# So many times each pair of rows is rotated at most; ten are plenty for matrices of any size here.
_SWEEPS = 20


def eigen(a: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Eigenvalues s (n,), in no order, and eigenvectors V (n, n): a V = V diag(s).

    a (n, n) is symmetric. For small matrices, for which a call of LAPACK costs more than this.
    Rotations in n / 2 planes at a time, which share no row, make entries outside of the diagonal
    zero; in n - 1 turns every pair has its own. Golub and Van Loan, Matrix Computations, 8.5.
    """
    n = len(a)
    half = (n + 1) // 2
    size = 2 * half
    # For an odd number of rows there is one of zeros, which stays the first.
    extra = size - n
    a = jnp.pad(a, ((extra, 0), (extra, 0)))
    every = np.arange(size)
    first, second = every[:half], every[half:]
    order = _next_pairs(half)
    outside = ~np.eye(size, dtype=bool)
    limit = (size * float(jnp.finfo(a.dtype).eps)) ** 2

    def unfinished(state: tuple) -> jax.Array:
        a, _, count = state
        left = jnp.sum(jnp.where(outside, a * a, 0)) > limit * jnp.sum(a * a)
        return left & (count < _SWEEPS * (size - 1))

    def turn(state: tuple) -> tuple:
        a, rows, count = state
        c, s = _rotations(a[first, first], a[first, second], a[second, second])

        def rotated(x: jax.Array) -> jax.Array:
            x, y = x[first], x[second]
            both = c[:, None] * x - s[:, None] * y, s[:, None] * x + c[:, None] * y
            return jnp.concatenate(both)[order]

        return rotated(rotated(a).T), rotated(rows), count + 1

    start = a, jnp.eye(size, dtype=a.dtype), jnp.asarray(0)
    a, rows, _ = jax.lax.while_loop(unfinished, turn, start)
    return a[every, every][extra:], rows[extra:, extra:].T


def _rotations(p: jax.Array, pq: jax.Array, q: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Cosines and sines (k,) of the smaller angles that make the entries pq (k,) zero."""
    d = q - p
    far = jnp.abs(d) + jnp.sqrt(d * d + 4 * pq * pq)
    turns = far > 0
    t = jnp.where(turns, jnp.where(d < 0, -2, 2) * pq / jnp.where(turns, far, 1), 0)
    c = 1 / jnp.sqrt(1 + t * t)
    return c, t * c


def _next_pairs(half: int) -> np.ndarray:
    """The places (2 half,) that rows come from: all but the first move on, as in a tournament."""
    first, second = list(range(half)), list(range(half, 2 * half))
    if half == 1:
        return np.array([0, 1])
    return np.array([0, second[0], *first[1:-1], *second[1:], first[-1]])


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


def inverse(a: jax.Array, columns: jax.Array | int) -> jax.Array:
    """The inverse (n, n) of a matrix a (n, n), with the largest pivot of each column.

    columns: n, or fewer to eliminate only the first ones. For small matrices, for which a call of
    LAPACK costs more than this. NaN if a is singular. Golub and Van Loan, Matrix Computations, 3.4.
    """
    n = len(a)
    rows = jnp.arange(n)

    def eliminate(k: jax.Array, w: jax.Array) -> jax.Array:
        column = jax.lax.dynamic_slice_in_dim(w, k, 1, axis=1)
        sizes = jnp.where(rows >= k, jnp.abs(column[:, 0]), -1)
        pivot_row = jnp.min(jnp.where(sizes == jnp.max(sizes), rows, n - 1))
        pivot = jax.lax.dynamic_slice_in_dim(w, pivot_row, 1)
        moved = jax.lax.dynamic_slice_in_dim(w, k, 1)
        w = jax.lax.dynamic_update_slice_in_dim(w, moved, pivot_row, axis=0)
        column = jax.lax.dynamic_update_slice_in_dim(column, entry(moved, k), pivot_row, axis=0)
        pivot = pivot / entry(pivot, k)
        return jnp.where(rows[:, None] == k, pivot, w - column * pivot)

    def entry(row: jax.Array, k: jax.Array) -> jax.Array:
        return jax.lax.dynamic_slice_in_dim(row, k, 1, axis=1)

    w = jnp.concatenate((a, jnp.eye(n, dtype=a.dtype)), axis=1)
    return jax.lax.fori_loop(0, columns, eliminate, w)[:, n:]


def plain_product(a: jax.Array, x: jax.Array) -> jax.Array:
    """a @ x for a (m, n) and x (n,)."""
    # Larger sums have no native code.
    rows = max(1, 4095 // max(1, len(x)))
    return jax.lax.map(lambda row: jnp.sum(row * x), a, batch_size=min(rows, len(a)))
