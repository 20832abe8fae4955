"""Gauss-Jordan elimination in plain arithmetic, which compiles into a native loop."""

from __future__ import annotations

import jax
import jax.numpy as jnp


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


def product(a: jax.Array, x: jax.Array) -> jax.Array:
    """a @ x for a (m, n) and x (n,)."""
    # Larger sums have no native code.
    rows = max(1, 4095 // max(1, len(x)))
    return jax.lax.map(lambda row: jnp.sum(row * x), a, batch_size=min(rows, len(a)))
