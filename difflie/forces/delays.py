"""Signals that arrive later: what a drive with a delay gets of those that it is told.

Both are piecewise linear in the delay d, whose derivative at d = 0 and at the kinks is that of the
longer one. Before the first row that it may reach a signal has the value of this row.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float


def held(
    t: Float[Array, " n_edges"],
    told: Float[Array, " n"],
    delay: Float[Array, ""],
    first: ArrayLike = 0,
) -> Float[Array, " n"]:
    """The means (n,) over each step of values told (n,), held from t_k to t_{k+1}, d later.

    t (n + 1,), increasing, and d () of one unit; first, or (n,): the first row that each reaches.
    """
    start, end, step = t[:-1] - delay, t[1:] - delay, jnp.diff(t)
    a, b = _interval(t, start, first), _interval(t, end, first)
    sums = jnp.concatenate((jnp.zeros_like(told[:1]), jnp.cumsum(told * step)))
    # What is between two neighbours is nothing, without the rounding of the sums.
    between = jnp.where(b == a + 1, 0, (sums[b] - sums[a + 1]) / step)
    ends = told[a] * ((t[a + 1] - start) / step) + told[b] * ((end - t[b]) / step)
    return jnp.where(a == b, told[a], ends + between)


def sampled(
    t: Float[Array, " n"], told: Float[Array, " n"], delay: Float[Array, ""], first: ArrayLike
) -> Float[Array, " n"]:
    """The values (n,) at the times t (n,) of those told then, linear in between, d later.

    t increasing, and d () of one unit; first (n,): the first row that each reaches, not the last.
    """
    at = t - delay
    at = jnp.where(at > t[first], at, t[first])
    k = _interval(t, at, first)
    share = (at - t[k]) / (t[k + 1] - t[k])
    return told[k] * (1 - share) + told[k + 1] * share


def _interval(t: jax.Array, at: jax.Array, first: ArrayLike) -> jax.Array:
    """The k with t_k < at <= t_{k+1}, the nearest from `first` on where there is none."""
    return jnp.clip(jnp.searchsorted(t, at) - 1, first, len(t) - 2)
