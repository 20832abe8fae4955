"""Linear algebra: products in full precision, least squares, small problems in plain arithmetic.

Graphics processors multiply matrices in a lower precision unless told otherwise.

In the smallest solutions of singular equations no rank is decided, which would change from one
evaluation to the next. Eigenvalues or singular values s are inverted as s / (s^2 + e^2), with e far
below the largest: this removes rounding errors and damps small values.

Jacobi's algorithms for eigenvalues and singular values and Gauss-Jordan elimination of small
matrices are in plain arithmetic, which compiles into a native loop.
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


def singular_values(a: jax.Array) -> jax.Array:
    """The singular values (min(m, n),) of a (m, n), the largest first; not differentiated.

    For small matrices, see `eigen`. One-sided: rotations make the rows of the matrix, or its
    columns if these are fewer, orthogonal, and their lengths are the singular values. Rounding is
    that of the largest; what `a^T a` would lose of the small ones is kept. Golub and Van Loan,
    Matrix Computations, 8.6.
    """
    a = jax.lax.stop_gradient(a)
    a = a.T if a.shape[0] > a.shape[1] else a
    count = len(a)
    if not a.size:
        return jnp.zeros(count, a.dtype)
    largest = jnp.max(jnp.abs(a))
    rows = _orthogonal(a / jnp.where(largest > 0, largest, 1), a.shape[1])
    lengths = largest * jnp.sqrt(jnp.sum(rows * rows, axis=1))
    # The row that was added has no length, and is the last of them.
    return -jnp.sort(-lengths)[:count]


def _orthogonal(rows: jax.Array, width: int) -> jax.Array:
    """Rows (m, n), rotated until their first `width` entries are orthogonal; m is made even."""
    half = (len(rows) + 1) // 2
    rows = jnp.pad(rows, ((2 * half - len(rows), 0), (0, 0)))
    limit = width * float(jnp.finfo(rows.dtype).eps)
    order = _next_pairs(half)
    turns = max(1, 2 * half - 1)

    def unfinished(state: tuple) -> jax.Array:
        _, orthogonal, count = state
        return (orthogonal < turns) & (count < _SWEEPS * turns)

    def turn(state: tuple) -> tuple:
        rows, orthogonal, count = state
        x, y = rows[:half], rows[half:]
        pairs = ((x, x), (x, y), (y, y))
        xx, xy, yy = (jnp.sum(u[:, :width] * v[:, :width], axis=1) for u, v in pairs)
        # A comparison with what is not a number is false, and ends the search.
        oblique = jnp.any(jnp.abs(xy) > limit * jnp.sqrt(xx) * jnp.sqrt(yy))
        c, s = _rotations(xx, xy, yy)
        x, y = c[:, None] * x - s[:, None] * y, s[:, None] * x + c[:, None] * y
        rows = jnp.concatenate((x, y))[order]
        return rows, jnp.where(oblique, 0, orthogonal + 1), count + 1

    none = jnp.asarray(0)
    return jax.lax.while_loop(unfinished, turn, (rows, none, none))[0]


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


# Larger matrices are left to LAPACK, and with it the loop to XLA.
SMALL = 40

Linear = Callable[[jax.Array], jax.Array]


def product(a: Any, b: jax.Array) -> jax.Array:
    """a @ b in full precision, in the dtype of b; a (m, n), b (n,) or (n, k), or stacks of them."""
    return jnp.matmul(jnp.asarray(a, b.dtype), b, precision=jax.lax.Precision.HIGHEST)


def factor_from_tips(a: jax.Array) -> jax.Array:
    """U (n, n), upper triangular with a = U U^T, of a positive definite a (n, n).

    By elimination from the last row to the first, which in the mass matrix of a tree, whose dofs
    come after those that move them, leaves all zeros as they are (Featherstone 2005).
    """
    return jnp.linalg.cholesky(a[::-1, ::-1])[::-1, ::-1]


def minimum_norm(gram: jax.Array, half: jax.Array | None = None) -> Linear:
    """The smallest x (m,) with gram x = b, as a linear function of b (m,) in the range of gram.

    gram (m, m) is positive semidefinite and is not differentiated. half (n, m): a factor of it,
    gram = half^T half, which makes redundant equations cheaper: with fewer rows than columns half
    half^T has the same eigenvalues but for zeros. One refinement makes up for the damping of small
    eigenvalues and for the rounding of the decomposition.
    """
    if not len(gram):
        return lambda b: b
    gram, half = jax.lax.stop_gradient((gram, half))
    if half is None or len(half) >= len(gram):
        s, basis = decomposed(gram)
        weight = _weights(s, jnp.max(s))
    else:
        # The eigenvectors of the Gram matrix are half^T u / sqrt(s).
        s, basis = decomposed(product(half, half.T))
        basis = product(half.T, basis)
        weight = _weights(s, jnp.max(s), 0)

    def solved(b: jax.Array) -> jax.Array:
        return product(basis, weight * product(basis.T, b))

    def refined(b: jax.Array) -> jax.Array:
        x = solved(b)
        return x + solved(b - product(gram, x))

    return refined


def decomposed(a: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Eigenvalues (n,), in no order, and eigenvectors (n, n) of a symmetric a (n, n)."""
    s, basis = eigen(a) if len(a) <= SMALL else jnp.linalg.eigh(a)
    return s, basis


def pseudoinverse(matrix: jax.Array) -> Linear:
    """The smallest x (m,) with matrix x = b, as a linear function of b (m,) in the range.

    matrix (m, m) is not differentiated. The damping of small singular values is left to an outer
    iteration.
    """
    if not len(matrix):
        return lambda b: b
    matrix = jax.lax.stop_gradient(matrix)
    if len(matrix) <= SMALL:
        # Rotations r make the rows of w = r matrix orthogonal, their lengths are the values.
        largest = jnp.max(jnp.abs(matrix))
        scale = jnp.where(largest > 0, largest, 1)
        unit = jnp.eye(len(matrix), dtype=matrix.dtype)
        rows = _orthogonal(jnp.concatenate((matrix / scale, unit), axis=1), len(matrix))
        w, r = jnp.split(rows, 2, axis=1)
        s = jnp.sqrt(jnp.sum(w * w, axis=1))
        w, weight = w / scale, _weights(s, jnp.max(s), 0)
    else:
        u, s, w = jnp.linalg.svd(matrix)
        r, weight = u.T, _weights(s, s[0])

    def solved(b: jax.Array) -> jax.Array:
        return product(w.T, weight * product(r, b))

    return solved


def _weights(s: jax.Array, largest: jax.Array, power: int = 1) -> jax.Array:
    """s^power / (s^2 + e^2), with e far below the largest s."""
    limits = jnp.finfo(s.dtype)
    e = float(limits.eps) ** 0.6 * jnp.maximum(largest, limits.tiny**0.25)
    return s**power / (s * s + e * e)


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
