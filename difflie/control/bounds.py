"""Constraints: quantities within bounds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import quantities as dq
from ..quantities.quantity import Quantity, as_quantity
from ..system.fields import number
from ..system.frame import Frame
from ..system.system import System
from ..system.user_functions import called
from ..system.validation import real_values
from .costs import replace_field

_BOUND = number(shape=None, finite=False)


class Between(eqx.Module):
    """lower <= quantity <= upper, for every entry of a quantity (n,).

    A function f(system, q, v, u, t) is a quantity as well. lower, upper: () or (n,); infinite
    entries bound nothing. Among the running constraints of a problem it holds at every knot, and if
    the quantity does not depend on u, also at the last and not at the first one, which is given.
    """

    quantity: Quantity
    lower: jax.Array
    upper: jax.Array

    # Whether both bounds are one.
    is_equality = False

    def __init__(self, quantity: Any, lower: Any = -jnp.inf, upper: Any = jnp.inf) -> None:
        self.quantity = as_quantity(quantity)
        self.lower, self.upper = _BOUND(lower), _BOUND(upper)

    @property
    def name(self) -> str:
        return self.quantity.name

    def value(
        self, system: System, q: Float[Array, " nq"], v: Float[Array, " nv"], u: Any, t: Any
    ) -> Float[Array, " n"]:
        """The entries (n,) that are bounded."""
        value = called(self.quantity, system, q, v, u, t)
        return real_values(f"what the bound on {self.name} returns", jnp.ravel(value), q.dtype)

    def with_goal(self, goal: Any) -> Between:
        """The same with another goal, of the shape of its own; itself if it has no such goal."""
        own = getattr(self.quantity, "goal", None)
        if own is None or np.shape(own) != np.shape(goal):
            return self
        return replace_field(self, "quantity", replace(self.quantity, goal=goal))


class Equal(Between):
    """quantity = goal, for every entry of a quantity (n,); goal () or (n,)."""

    is_equality = True

    def __init__(self, quantity: Any, goal: Any = None) -> None:
        quantity = as_quantity(quantity)
        quantity = quantity if goal is None else dq.Deviation(quantity, goal)
        super().__init__(quantity, 0.0, 0.0)


class Reach(Equal):
    """A frame reaches a pose (4, 4), or its origin a point (3,), in the world.

    frame: a `Frame`, or the name of a body for its own frame.
    """

    def __init__(self, frame: Any, goal: Any) -> None:
        if np.shape(goal) == (4, 4):
            super().__init__(dq.PoseDeviation(frame, goal))
        else:
            super().__init__(dq.Origin(frame), goal)


class ReachState(Equal):
    """The state is q (nq,), v (nv,); v None for rest."""

    def __init__(self, q: Any, v: Any = None) -> None:
        super().__init__(dq.StateDeviation(q, v))


class MinDistance(Between):
    """The origins of two frames keep a distance of at least so many m: two spheres at them.

    first, second: a `Frame`, or the name of a body for its own frame; a Frame on None is fixed in
    the world. least: for spheres the sum of their radii.
    """

    def __init__(self, first: Frame | str, second: Frame | str, least: Any) -> None:
        super().__init__(dq.Distance(first, second), lower=least)
