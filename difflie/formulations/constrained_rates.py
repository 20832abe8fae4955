"""Configuration and velocity of a system with constraints, for Runge-Kutta methods."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax

from ..constraints.derivatives import acceleration_by_matrices, projected_by_matrices
from ..constraints.friction import with_friction
from ..constraints.motion import constrained_acceleration
from ..constraints.stabilisation import NullSpace, Projection, Stabilisation
from ..integrators import Field, FieldMethod
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

    def stabilised(self, q: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array, Any]:
        """q (nq,) and v (nv,) after a step, corrected, and whether the correction converged ()."""
        return self.stabilisation.after(self.tree, q, v)

    def field(self, inputs: Inputs, h: Scalar) -> Field:
        def field(t: jax.Array, y: Any) -> tuple[jax.Array, jax.Array]:
            q, v = y
            a, _ = constrained_acceleration(
                *(self.tree, q, v),
                *inputs.acting(self.tree, t, q, v),
                drift=lambda equations: self.stabilisation.drift(equations, v, h),
                form=self.stabilisation.balance,
            )
            return v, a

        return field

    def in_closed_form(self) -> Formulation:
        projects = type(self.stabilisation) in (Projection, NullSpace)
        if not projects or with_friction(self.tree.system):
            return self
        return ConstrainedRatesInClosedForm(self.tree, self.method, self.stabilisation)


class ConstrainedRatesInClosedForm(RatesInClosedForm, ConstrainedRateFormulation):
    """The same with projection, with a derivative in closed form for many directions at once.

    It has none by the numbers of the machine.
    """

    def stabilised(self, q: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array, Any]:
        return projected_by_matrices(self.tree, q, v)

    def field(self, inputs: Inputs, h: Scalar) -> Field:
        def field(t: jax.Array, y: Any) -> tuple[jax.Array, jax.Array]:
            acting, form = inputs.acting(self.tree, t, *y), self.stabilisation.balance
            return y[1], acceleration_by_matrices(form, self.tree, *y, *acting)

        return field
