"""Jacobi's eigenvalue algorithm in plain arithmetic, which compiles into a native loop."""

from __future__ import annotations

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
