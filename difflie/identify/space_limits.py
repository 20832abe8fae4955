"""Limits in space of a motion that is designed: quantities of the system stay within bounds."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..quantities.bounded import Bounded
from ..system.system import System

# The size of violations of one-sided bounds near zero, in the quantity's unit.
_SMALL = 0.1


def check_limit(limit: Bounded, system: System, q: Any) -> None:
    """Raises ValueError for bounds between which nothing can stay, for none, and for bounds of
    another shape than the quantity has at q (nq,)."""
    name, low, high = limit.quantity.name, np.asarray(limit.lower), np.asarray(limit.upper)
    if np.isnan(low).any() or np.isnan(high).any() or not np.all(low < high):
        raise ValueError(
            f"{name} cannot stay between {low} and {high}; give a lower bound below the upper one"
        )
    if not (np.isfinite(low).any() or np.isfinite(high).any()):
        raise ValueError(f"{name} has no bound; give `lower` or `upper`")
    shape = np.shape(_value(limit, system, q, np.zeros(system.nv)))
    for bound in (low, high):
        if bound.shape not in ((), shape):
            raise ValueError(
                f"{name} has the shape {shape}, and a bound {bound.shape}; give one number, or one "
                "for each entry"
            )


def load(
    limit: Bounded, system: System, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> Float[Array, " k"]:
    """How near the bounds a quantity is: 1 at a bound, more beyond, less between.

    Deviations from the middle in half the room, or from a single bound in its own size.
    """
    x = _value(limit, system, q, v)
    lower, upper = (jnp.broadcast_to(b, x.shape) for b in (limit.lower, limit.upper))
    both = jnp.isfinite(lower) & jnp.isfinite(upper)
    half = jnp.where(both, (upper - lower) / 2, 1)
    middle = jnp.where(both, (upper + lower) / 2, 0)
    bound = jnp.where(jnp.isfinite(lower), lower, jnp.where(jnp.isfinite(upper), upper, 0))
    beyond = jnp.where(jnp.isfinite(lower), bound - x, x - bound)
    one = 1 + beyond / jnp.maximum(jnp.abs(bound), _SMALL)
    one = jnp.where(jnp.isfinite(lower) | jnp.isfinite(upper), one, 0)
    return jnp.where(both, jnp.abs(x - middle) / half, one).ravel()


def _value(limit: Bounded, system: System, q: Any, v: Any) -> Float[Array, "*k"]:
    state = jnp.asarray(q, system.dtype), jnp.asarray(v, system.dtype)
    return jnp.asarray(limit.quantity(system, *state, None, jnp.zeros(())))
