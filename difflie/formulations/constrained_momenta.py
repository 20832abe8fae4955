"""Configuration and momentum of a system with constraints: what RATTLE needs."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Float

from ..constraints.equations import equations, holonomic, labels
from ..constraints.motion import Balance, constrained_acceleration
from ..dynamics.crba import crba
from ..dynamics.forward import mass_inverse_times
from ..integrators import ConstrainedMechanics, Rattle
from ..integrators.method import Scalar
from ..system.linkage import Linkage
from ..system.system import System
from .formulation import Inputs
from .momenta import MomentumFormulation, TreeMechanics


class ConstrainedMotion(eqx.Module):
    """What constraints do, at the saved times.

    multipliers (m + 1, p) in N or N m: of the p equations, so that A^T lambda acts on the system;
    of redundant equations the smallest.
    """

    multipliers: jax.Array


class ConstrainedMomentumFormulation(MomentumFormulation):
    """The state ((q, v), p, rates, multipliers): rates w of the last three steps, p = M v.

    The multipliers are those of the equations of index 1 at (q, v), of order 2 as these are; the
    impulses of a step are of order 1 only. Raises ValueError for mimic joints and for constraints
    of velocities, which no discrete action has.
    """

    system: System
    linkage: Linkage
    method: Rattle = eqx.field(static=True)

    @staticmethod
    def check(method: Rattle, system: System) -> None:
        MomentumFormulation.check(method, system)
        kinds = zip(labels(system.constraints), holonomic(system.constraints), strict=True)
        for label, of_positions in kinds:
            if not of_positions:
                raise ValueError(
                    f"simulate: {method.name} keeps equations of positions, but the {label}, "
                    "restricts velocities only; use another method, such as RKMK4"
                )

    def start(
        self,
        t: jax.Array,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        h: Scalar,
        inputs: Inputs,
    ) -> Any:
        multipliers = self._multipliers(t, q, v, inputs)
        return *super().start(t, q, v, h, inputs), multipliers

    def step(self, t: jax.Array, state: Any, h: Scalar, inputs: Inputs) -> tuple[Any, Any]:
        (q, _), p, (w0, w1, w2), _ = state
        mechanics = LinkedMechanics(self.system, self.linkage, t + h / 2, inputs)
        guess = 3 * (w2 - w1) + w0
        q, p, w, solved = self.method.step(mechanics, q, p, h, guess)
        v = mass_inverse_times(self.linkage, q, p)
        multipliers = self._multipliers(t + h, q, v, inputs)
        return ((q, v), p, (w1, w2, w), multipliers), solved

    def record(self, state: Any) -> ConstrainedMotion:
        return ConstrainedMotion(state[-1])

    def _multipliers(
        self, t: jax.Array, q: Float[Array, " nq"], v: Float[Array, " nv"], inputs: Inputs
    ) -> Float[Array, " m"]:
        given = inputs.acting(self.system, self.linkage, t, q, v)
        return constrained_acceleration(self.system, self.linkage, q, v, *given)[1]


class LinkedMechanics(TreeMechanics, ConstrainedMechanics):
    """A tree of rigid bodies with constraints, in a step whose middle is at the time t (s)."""

    def residual(self, q: Float[Array, " nq"]) -> Float[Array, " p"]:
        return equations(self.system, self.linkage, q).residual()

    def jacobian(self, q: Float[Array, " nq"]) -> Float[Array, "m nv"]:
        return equations(self.system, self.linkage, q).jacobian()

    def consistent(self, q: Float[Array, " nq"], p: Float[Array, " nv"]) -> Float[Array, " nv"]:
        A = self.jacobian(q)
        _, mu = Balance(crba(self.linkage, q), A).solve(p, 0 * A[:, 0])
        return p - A.T @ mu
