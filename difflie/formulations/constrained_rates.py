"""Configuration and velocity of a system with constraints, for Runge-Kutta methods."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax

from ..constraints.motion import constrained_acceleration
from ..constraints.stabilisation import Projection, Stabilisation
from ..integrators import Field, FieldMethod
from ..integrators.method import Scalar
from ..system.kinematic_tree import Tree
from .formulation import Formulation, Inputs
from .rates import RateFormulation


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
        q, v, projected = self.stabilisation.after(self.tree, *state.y)
        return eqx.tree_at(lambda s: s.y, state, (q, v)), solved & projected

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
