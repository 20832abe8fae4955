"""Entries of arrays taken and put together by slices, which may be part of a native call."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


def take(a: Float[Array, " n_a *rest"], index: np.ndarray) -> Float[Array, " k *rest"]:
    """a[index], (k, ...) of a (n, ...), as a join of slices.

    A gather's derivative cannot be part of a native call; too many slices take longer to compile
    than one saves.
    """
    if np.array_equal(index, np.arange(a.shape[0])):
        return a
    breaks = np.flatnonzero(np.diff(index) != 1) + 1
    if breaks.size > 100:
        return a[index]
    runs = np.split(index, breaks) if index.size else []
    return jnp.concatenate([a[int(r[0]) : int(r[-1]) + 1] for r in runs] or [a[:0]])


def replaced(a: Float[Array, " n"], k: int, value: Float[Array, ""]) -> Float[Array, " n"]:
    """a (n,) with the entry k another one (), as a join of slices for the reason of `take`."""
    return jnp.concatenate((a[:k], value[None], a[k + 1 :]))


def totals(a: Float[Array, " k *rest"], index: np.ndarray, size: int) -> Float[Array, " n *rest"]:
    """(size, ...) the sums of the entries of a (k, ...) that share an index (k,).

    Entries with an index beyond are left out. A join of slices, for the reason and with the bound
    of `take`.
    """
    if index.size > 100:
        return jax.ops.segment_sum(a, index, num_segments=max(size, int(index.max()) + 1))[:size]
    parts, end = [], 0
    for row in np.unique(index[index < size]):
        entries = [a[int(k) : int(k) + 1] for k in np.flatnonzero(index == row)]
        parts += [jnp.zeros((row - end, *a.shape[1:]), a.dtype), sum(entries[1:], entries[0])]
        end = int(row) + 1
    parts.append(jnp.zeros((size - end, *a.shape[1:]), a.dtype))
    return jnp.concatenate(parts)
