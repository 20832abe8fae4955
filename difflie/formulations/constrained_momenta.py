"""Configuration and momentum of a system with constraints, for RATTLE."""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..constraints.equations import equations, holonomic, labels
from ..constraints.motion import Balance, constrained_acceleration
from ..dynamics.crba import crba
from ..integrators.method import Method, Scalar, State
from ..integrators.rattle import ConstrainedMechanics
from ..system.system import System
from .formulation import Inputs
from .momenta import MomentumFormulation, TreeMechanics


class ConstrainedMotion(eqx.Module):
    """The constraint multipliers at the saved times.

    multipliers (m + 1, p) in N or N m, of the p equations: the reaction A^T lambda acts on the
    system. For redundant constraints they are the smallest.
    """

    multipliers: jax.Array


class ConstrainedMomentumFormulation(MomentumFormulation):
    """Discrete mechanics of a system with constraints.

    Raises ValueError for mimic joints, and for velocity constraints, which a discrete action cannot
    contain.
    """

    equations: ClassVar[type] = ConstrainedMechanics
    supports: ClassVar[frozenset[str]] = frozenset(("constraints",))

    @classmethod
    def check(cls, method: Method, system: System) -> None:
        super().check(method, system)
        kinds = zip(labels(system.constraints), holonomic(system.constraints), strict=True)
        for label, of_positions in kinds:
            if not of_positions:
                raise ValueError(
                    f"simulate: {method.name} keeps equations of positions, but the {label}, "
                    "restricts velocities only; use another method, such as RKMK4"
                )

    def problem(self, t: jax.Array, h: Scalar, inputs: Inputs) -> TreeMechanics:
        return LinkedMechanics(self.tree, t + h / 2, inputs)

    def record(self, state: State) -> ConstrainedMotion:
        return ConstrainedMotion(state.memory.multipliers)


class LinkedMechanics(TreeMechanics, ConstrainedMechanics):
    """A tree of rigid bodies with constraints, in a step whose middle is at the time t (s)."""

    def residual(self, q: Float[Array, " nq"]) -> Float[Array, " p"]:
        return equations(self.tree, q).residual()

    def jacobian(self, q: Float[Array, " nq"]) -> Float[Array, "m nv"]:
        return equations(self.tree, q).jacobian()

    def consistent(self, q: Float[Array, " nq"], p: Float[Array, " nv"]) -> Float[Array, " nv"]:
        A = self.jacobian(q)
        _, mu = Balance(crba(self.tree, q), A).solve(p, 0 * A[:, 0])
        return p - A.T @ mu

    def multipliers(
        self, t: Scalar, q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> Float[Array, " m"]:
        acting = self.inputs.acting(self.tree, jnp.asarray(t), q, v)
        return constrained_acceleration(self.tree, q, v, *acting)[1]
