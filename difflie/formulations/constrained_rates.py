"""Configuration and velocity of a system with constraints, for Runge-Kutta methods."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
from jaxtyping import Array, Bool, Float

from ..constraints.derivatives import (
    acceleration_by_matrices,
    position_by_matrices,
    velocity_by_matrices,
)
from ..constraints.friction import with_friction
from ..constraints.motion import constrained_acceleration
from ..constraints.stabilisation import NullSpace, Projection, Stabilisation
from ..dynamics.free_flight import carried
from ..dynamics.rnea import rnea
from ..integrators import FieldMethod
from ..integrators.method import Scalar
from ..system.kinematic_tree import Tree
from .formulation import Formulation, Inputs
from .rates import RateFormulation, RatesInClosedForm


class ConstrainedRateFormulation(RateFormulation):
    """dq/dt = q . hat(v), dv/dt = M^-1 (tau - bias + A^T lambda), stabilised after each step."""

    supports: ClassVar[frozenset[str]] = frozenset(("constraints", "joint friction"))

    stabilisation: Stabilisation = eqx.field(default=Projection(), static=True)

    @classmethod
    def of(cls, tree: Tree, method: Any, stabilisation: Stabilisation) -> Formulation:
        return cls(tree, method, stabilisation)

    @staticmethod
    def time_symmetric(method: FieldMethod) -> bool:
        # A projection after a step would have to come before it in the step back.
        return False

    def step(self, t: jax.Array, state: Any, h: Scalar, inputs: Inputs) -> tuple[Any, Any]:
        state, solved = super().step(t, state, h, inputs)
        q, v, projected = self.stabilised(*state.y)
        return eqx.tree_at(lambda s: s.y, state, (q, v)), solved & projected

    def stabilised(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> tuple[Float[Array, " nq"], Float[Array, " nv"], Bool[Array, ""] | bool]:
        """q (nq,) and v (nv,) after a step, corrected, and whether the correction converged ()."""
        end, converged = self.position(q)
        if self.keeps_momentum and end is not q:
            v = carried(self.tree, q, v, end)
        return end, self.velocity(end, v), converged

    def position(self, q: jax.Array) -> tuple[jax.Array, Any]:
        return self.stabilisation.position(self.tree, q)

    def velocity(self, q: jax.Array, v: jax.Array) -> jax.Array:
        return self.stabilisation.velocity(self.tree, q, v)

    def acceleration(
        self, t: jax.Array, q: jax.Array, v: jax.Array, h: Scalar, inputs: Inputs
    ) -> tuple[jax.Array, jax.Array]:
        a, _ = constrained_acceleration(
            *(self.tree, q, v),
            *inputs.acting(self.tree, t, q, v),
            drift=lambda equations: self.stabilisation.drift(equations, v, h),
            form=self.stabilisation.balance,
        )
        return a, rnea(self.tree, q, v, a)

    def in_closed_form(self) -> Formulation:
        projects = type(self.stabilisation) in (Projection, NullSpace)
        if not projects or with_friction(self.tree.system):
            return self
        return ConstrainedRatesInClosedForm(self.tree, self.method, self.stabilisation)


class ConstrainedRatesInClosedForm(RatesInClosedForm, ConstrainedRateFormulation):
    """The same with projection, with a derivative in closed form for many directions at once.

    It has none by the numbers of the machine.
    """

    def position(self, q: jax.Array) -> tuple[jax.Array, Any]:
        return position_by_matrices(self.tree, q)

    def velocity(self, q: jax.Array, v: jax.Array) -> jax.Array:
        return velocity_by_matrices(self.tree, q, v)

    def acceleration(
        self, t: jax.Array, q: jax.Array, v: jax.Array, h: Scalar, inputs: Inputs
    ) -> tuple[jax.Array, jax.Array]:
        acting, form = inputs.acting(self.tree, t, q, v), self.stabilisation.balance
        a = acceleration_by_matrices(form, self.tree, q, v, *acting)
        return a, rnea(self.tree, q, v, a)
