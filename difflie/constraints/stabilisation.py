"""How the equations of index 1 are kept from drifting off the constraints.

They keep the accelerations only: errors of positions and velocities grow. Projection has no
parameter and leaves nothing of them, at the cost of about another evaluation a step.
"""

from __future__ import annotations

import abc
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..system.kinematic_tree import Tree
from .equations import Equations, holonomic
from .motion import Balance, IndependentVelocities, consistent_velocity
from .position import consistent_position


class Stabilisation(eqx.Module):
    """What is added to the equations of motion, and what is done after each step."""

    balance: ClassVar[type[Balance]] = Balance

    @abc.abstractmethod
    def drift(
        self, equations: Equations, v: Float[Array, " nv"], h: jax.Array | float
    ) -> Float[Array, " m"] | None:
        """What A a + c is to be (m,) at the velocity v (nv,) in a step h (s); None for zero."""

    @abc.abstractmethod
    def after(
        self, tree: Tree, q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> tuple[Float[Array, " nq"], Float[Array, " nv"], Bool[Array, ""] | bool]:
        """The configuration and velocity after a step, and whether they were found ()."""


class Projection(Stabilisation):
    """After each step back to the constraints, first the position, then the velocity.

    Both are the nearest in the metric of M. The order of the method is kept.
    """

    def drift(self, equations: Equations, v: Float[Array, " nv"], h: jax.Array | float) -> None:
        return None

    def after(self, tree, q, v):
        q, found = consistent_position(tree, q)
        return q, consistent_velocity(tree, q, v), found


class NullSpace(Projection):
    """Independent velocities: the equations of motion on the null space of A, and `Projection`.

    The accelerations are those of the multiplier form. Every equation must be independent of the
    others.
    """

    balance: ClassVar[type[Balance]] = IndependentVelocities


class Baumgarte(Stabilisation):
    """A a + c = -2 s/h A v - (s/h)^2 g: errors die out over h/s.

    gain s (), without unit: 0.02 to 0.1 for a method of four stages; from 1 on the motion is
    unstable or its energy wrong. Baumgarte 1972. Raises ValueError for a gain that is not positive.
    """

    gain: float = eqx.field(default=0.05, static=True)

    def __check_init__(self) -> None:
        if not 0 < self.gain < np.inf:
            raise ValueError(f"Baumgarte: the gain is {self.gain}; it must be positive and finite")

    def drift(
        self, equations: Equations, v: Float[Array, " nv"], h: jax.Array | float
    ) -> Float[Array, " m"]:
        a = self.gain / h
        rate = equations.rate(v)
        rows = np.flatnonzero(holonomic(equations.tree.system.constraints))
        position = jnp.zeros_like(rate).at[rows].set(equations.residual())
        return -2 * a * rate - a * a * position

    def after(self, tree, q, v):
        return q, v, True


class Unstabilised(Stabilisation):
    """Nothing is done: the constraints are kept as well as the method integrates."""

    def drift(self, equations: Equations, v: Float[Array, " nv"], h: jax.Array | float) -> None:
        return None

    def after(self, tree, q, v):
        return q, v, True
