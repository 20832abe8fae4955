"""Stabilisation: how the equations of index 1 are kept from drifting off the constraints.

They enforce accelerations only: errors of positions and velocities grow. Projection has no
parameter and removes the errors entirely, at the cost of about one more evaluation a step.
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
    """A term added to the equations of motion, and a correction after each step; none as it is."""

    balance: ClassVar[type[Balance]] = Balance

    @abc.abstractmethod
    def drift(
        self, equations: Equations, v: Float[Array, " nv"], h: jax.Array | float
    ) -> Float[Array, " m"] | None:
        """The right-hand side (m,) of A a + c at v (nv,) in a step h () in s; None for zero."""

    def position(
        self, tree: Tree, q: Float[Array, " nq"]
    ) -> tuple[Float[Array, " nq"], Bool[Array, ""] | bool]:
        """q (nq,) after a step, corrected, and whether the correction converged ()."""
        return q, True

    def velocity(
        self, tree: Tree, q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> Float[Array, " nv"]:
        """v (nv,) after a step, corrected at the corrected q (nq,)."""
        return v


class Projection(Stabilisation):
    """After each step q, then v, is projected onto the constraints.

    Both to the nearest point in the metric of M. The order of the method is kept.
    """

    def drift(self, equations: Equations, v: Float[Array, " nv"], h: jax.Array | float) -> None:
        return None

    def position(
        self, tree: Tree, q: Float[Array, " nq"]
    ) -> tuple[Float[Array, " nq"], Bool[Array, ""] | bool]:
        return consistent_position(tree, q)

    def velocity(
        self, tree: Tree, q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> Float[Array, " nv"]:
        return consistent_velocity(tree, q, v)


class NullSpace(Projection):
    """The equations of motion on the null space of A, in independent velocities, and `Projection`.

    The accelerations are those of the multiplier form. The constraints must not be redundant.
    """

    balance: ClassVar[type[Balance]] = IndependentVelocities


class Baumgarte(Stabilisation):
    """A a + c = -2 s/h A v - (s/h)^2 g: errors decay with the time constant h/s.

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


class Unstabilised(Stabilisation):
    """No stabilisation: the constraints drift with the error of the method."""

    def drift(self, equations: Equations, v: Float[Array, " nv"], h: jax.Array | float) -> None:
        return None
