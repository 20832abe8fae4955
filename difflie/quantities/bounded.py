"""A quantity within bounds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from ..deprecated import renamed
from ..system.fields import Numbers, number
from ..system.system import System
from ..system.user_functions import called
from ..system.validation import real_values
from .quantity import Quantity, as_quantity

_BOUND = number(shape=None, finite=False)


@renamed(aimed="with_goal")
class Bounded(eqx.Module):
    """lower <= quantity <= upper, for every entry of a quantity (n,).

    A function f(system, q, v, u, t) is a quantity as well. lower, upper: () or (n,), in its unit;
    None and infinite entries bound nothing. Among the running constraints of a problem of optimal
    control it holds at every knot, and if the quantity does not depend on u, also at the last and
    not at the first one, which is given. In the design of a motion for identification it holds at
    all times.
    """

    quantity: Quantity
    lower: Numbers = eqx.field(converter=_BOUND)
    upper: Numbers = eqx.field(converter=_BOUND)

    # Whether both bounds are one.
    is_equality = False

    def __init__(
        self, quantity: Any, lower: ArrayLike | None = None, upper: ArrayLike | None = None
    ) -> None:
        self.quantity = as_quantity(quantity)
        self.lower = _BOUND(-jnp.inf if lower is None else lower)
        self.upper = _BOUND(jnp.inf if upper is None else upper)

    @property
    def name(self) -> str:
        """That of its quantity."""
        return self.quantity.name

    def value(
        self,
        system: System,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        u: Float[Array, " nu"] | None,
        t: jax.Array | float,
    ) -> Float[Array, " n"]:
        """The entries (n,) that are bounded."""
        value = called(self.quantity, system, q, v, u, t)
        return real_values(f"what the bound on {self.name} returns", jnp.ravel(value), q.dtype)

    def with_goal(self, goal: ArrayLike) -> Bounded:
        """The same with another goal, of the shape of its own; itself if it has no such goal."""
        own = getattr(self.quantity, "goal", None)
        if own is None or np.shape(own) != np.shape(goal):
            return self
        return eqx.tree_at(lambda b: b.quantity, self, replace(self.quantity, goal=goal))
