"""Velocities that belong to impulses, as linear functions of v: u = J v, few columns of J kept."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .linear import product


class Rows(eqx.Module):
    """The rows J of velocities u = J v at k places, along d directions each.

    entries (k, d, w): those of the columns (k, w) of each place, or of all nv for None. The others
    are zero.
    """

    entries: jax.Array
    columns: jax.Array | np.ndarray | None = None

    def __getitem__(self, at: tuple[slice, slice]) -> Rows:
        """The rows of some places and directions."""
        columns = self.columns if self.columns is None else self.columns[at[0]]
        return Rows(self.entries[at], columns)

    def __len__(self) -> int:
        return len(self.entries)

    def of(self, v: Float[Array, " nv"]) -> Float[Array, "k d"]:
        """The velocities J v."""
        if self.columns is None:
            k, d, n = self.entries.shape
            return product(self.entries.reshape(k * d, n), v).reshape(k, d)
        return jnp.sum(self.entries * v[self.columns][:, None], axis=2)

    def times(self, g: Float[Array, "k d"], n: int) -> Float[Array, " n"]:
        """J^T g (n,), for v of n entries."""
        if self.columns is None:
            return product(self.entries.reshape(-1, n).T, g.ravel())
        each = jnp.sum(self.entries * g[:, :, None], axis=1)
        return jnp.zeros(n, each.dtype).at[self.columns].add(each)

    def squared(self, g: Float[Array, "k d d"], n: int) -> Float[Array, "n n"]:
        """J^T G J (n, n), for v of n entries and a matrix of each place."""
        weighed = product(g, self.entries)
        if self.columns is None:
            return product(self.entries.reshape(-1, n).T, weighed.reshape(-1, n))
        each = product(jnp.swapaxes(self.entries, 1, 2), weighed)
        places = self.columns[:, :, None], self.columns[:, None, :]
        return jnp.zeros((n, n), each.dtype).at[places].add(each)

    def mobility(self, factor: Float[Array, "nv nv"], parts: np.ndarray) -> Float[Array, "k d d"]:
        """J A^-1 J^T at each place, with the factor of A by Cholesky.

        parts (nv,): the numbers of parts of v between which A is zero.
        """
        if self.columns is None:
            k, d, n = self.entries.shape
            flat = self.entries.reshape(k * d, n)
            moved = jax.scipy.linalg.cho_solve((factor, True), flat.T).T.reshape(k, d, n)
            return product(self.entries, jnp.swapaxes(moved, 1, 2))
        inverse = _inverse(factor, parts)
        between = inverse[self.columns[:, :, None], self.columns[:, None, :]]
        return product(product(self.entries, between), jnp.swapaxes(self.entries, 1, 2))

    def whole(self, n: int) -> Float[Array, "k d n"]:
        """All columns of J, for v of n entries."""
        if self.columns is None:
            return self.entries
        k, d, _ = self.entries.shape
        places = np.arange(k)[:, None, None], np.arange(d)[:, None], self.columns[:, None]
        return jnp.zeros((k, d, n), self.entries.dtype).at[places].add(self.entries)


def _inverse(factor: jax.Array, parts: np.ndarray) -> jax.Array:
    """The inverse (n, n) of a matrix from its factor, parts of one size at once; parts (n,)."""
    inverse = jnp.zeros_like(factor)
    each = [np.flatnonzero(parts == k) for k in np.unique(parts)]
    for size in {len(one) for one in each}:
        at = np.array([one for one in each if len(one) == size])
        places = at[:, :, None], at[:, None, :]
        unit = jnp.broadcast_to(jnp.eye(size, dtype=factor.dtype), (len(at), size, size))
        own = jax.vmap(lambda f, b: jax.scipy.linalg.cho_solve((f, True), b))(factor[places], unit)
        inverse = inverse.at[places].set(own)
    return inverse
