"""Configuration and velocity of a system with constraints, for Runge-Kutta methods."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax

from ..constraints.motion import constrained_acceleration
from ..constraints.stabilisation import Projection, Stabilisation
from ..forces.passive import passive
from ..integrators import Field, FieldMethod
from ..system.linkage import Linkage
from ..system.system import System
from .formulation import Input
from .rates import RateFormulation


class ConstrainedRateFormulation(RateFormulation):
    """dq/dt = q . hat(v), dv/dt = M^-1 (tau - bias + A^T lambda), stabilised after each step."""

    system: System
    linkage: Linkage
    method: FieldMethod = eqx.field(static=True)
    stabilisation: Stabilisation = eqx.field(default=Projection(), static=True)

    @property
    def small(self) -> bool:
        return False

    def step(
        self, t: jax.Array, state: Any, h: jax.Array, control: Input, wrench: Input
    ) -> tuple[Any, Any]:
        y, memory = state
        field = self._field_in(h, control, wrench)
        (q, v), memory, solved = self.method.advance(self.manifold, field, t, y, h, memory)
        q, v, found = self.stabilisation.after(self.system, self.linkage, q, v)
        return ((q, v), memory), solved & found

    def start(
        self,
        t: jax.Array,
        q: jax.Array,
        v: jax.Array,
        h: jax.Array,
        control: Input,
        wrench: Input,
    ) -> Any:
        field = self._field_in(h, control, wrench)
        return (q, v), self.method.start(self.manifold, field, t, (q, v), h)

    def _field_in(self, h: jax.Array, control: Input, wrench: Input) -> Field:
        """The rate (v, a) of a state (q, v) at the time t, in a step h (s)."""

        def field(t: jax.Array, y: Any) -> tuple[jax.Array, jax.Array]:
            q, v = y
            tau = passive(self.system, self.linkage, q, v)
            if control is not None:
                tau = tau + control(t, q, v)
            external = None if wrench is None else wrench(t, q, v)
            a, _ = constrained_acceleration(
                *(self.system, self.linkage, q, v, tau, external),
                drift=lambda equations: self.stabilisation.drift(equations, v, h),
                form=self.stabilisation.balance,
            )
            return v, a

        return field
