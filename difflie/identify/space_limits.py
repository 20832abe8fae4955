"""Limits in space of a motion that is designed: a quantity of the machine stays between bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..quantities.quantity import Quantity, as_quantity
from ..system.system import System

# The size of violations of one-sided bounds near zero, in the quantity's unit.
_SMALL = 0.1


class Keep(eqx.Module):
    """A quantity that stays between bounds at all times: lower <= f(system, q, v, u, t) <= upper.

    quantity: such as `dq.Point("hand")` for a workspace, or `dq.Distance("hand", "mast")` for
    spheres about two frames, with the sum of their radii as lower. lower and upper: numbers or of
    the shape of the quantity, in its unit; None for no bound.
    """

    quantity: Quantity
    lower: jax.Array
    upper: jax.Array

    def __init__(
        self, quantity: Quantity | Callable[..., Any], lower: Any = None, upper: Any = None
    ) -> None:
        self.quantity = as_quantity(quantity)
        name = self.quantity.name
        low = np.asarray(-np.inf if lower is None else lower, float)
        high = np.asarray(np.inf if upper is None else upper, float)
        if np.isnan(low).any() or np.isnan(high).any() or not np.all(low < high):
            raise ValueError(
                f"{name} cannot stay between {lower} and {upper}; give a lower bound "
                "below the upper one"
            )
        if not (np.isfinite(low).any() or np.isfinite(high).any()):
            raise ValueError(f"{name} has no bound; give `lower` or `upper`")
        self.lower, self.upper = jnp.asarray(low), jnp.asarray(high)

    def check(self, system: System, q: Any) -> None:
        """Raises ValueError for bounds of another shape than the quantity has at q (nq,)."""
        state = jnp.asarray(q, system.dtype), jnp.zeros(system.nv, system.dtype)
        shape = np.shape(self.quantity(system, *state, None, jnp.zeros(())))
        for bound in (self.lower, self.upper):
            if bound.shape not in ((), shape):
                raise ValueError(
                    f"{self.quantity.name} has the shape {shape}, and a bound {bound.shape}; give "
                    "one number, or one for each entry"
                )

    def load(
        self, system: System, q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> Float[Array, " k"]:
        """How near the bounds the quantity is: 1 at a bound, more beyond, less between.

        Deviations from the middle in half the room, or from a single bound in its own size.
        """
        x = jnp.asarray(self.quantity(system, q, v, None, jnp.zeros(())))
        lower, upper = (jnp.broadcast_to(b, x.shape) for b in (self.lower, self.upper))
        both = jnp.isfinite(lower) & jnp.isfinite(upper)
        half = jnp.where(both, (upper - lower) / 2, 1)
        middle = jnp.where(both, (upper + lower) / 2, 0)
        bound = jnp.where(jnp.isfinite(lower), lower, jnp.where(jnp.isfinite(upper), upper, 0))
        beyond = jnp.where(jnp.isfinite(lower), bound - x, x - bound)
        one = 1 + beyond / jnp.maximum(jnp.abs(bound), _SMALL)
        one = jnp.where(jnp.isfinite(lower) | jnp.isfinite(upper), one, 0)
        return jnp.where(both, jnp.abs(x - middle) / half, one).ravel()
