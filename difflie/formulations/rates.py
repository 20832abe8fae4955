"""Configuration and velocity, moved along a vector field: what Runge-Kutta methods need."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax

from .. import native
from ..dynamics.forward import acceleration
from ..forces.passive import passive
from ..groups import Euclidean, Product
from ..integrators import Field, FieldMethod, ImplicitMethod
from ..system.linkage import Linkage
from ..system.system import System
from .formulation import Formulation, Input


class RateFormulation(Formulation):
    """dq/dt = q . hat(v), dv/dt = M^-1 (tau - bias) on Product((Q, R^nv))."""

    system: System
    linkage: Linkage
    method: FieldMethod = eqx.field(static=True)

    @property
    def manifold(self) -> Product:
        return Product((self.system.manifold, Euclidean(self.system.nv)))

    @property
    def small(self) -> bool:
        sequence = not isinstance(self.method, ImplicitMethod)
        return sequence and self.method.stages == 1 and self.system.topology.walk == "fast"

    def start(
        self,
        t: jax.Array,
        q: jax.Array,
        v: jax.Array,
        h: jax.Array,
        control: Input,
        wrench: Input,
    ) -> Any:
        field = self.field(None, None)
        return (q, v), self.method.start(self.manifold, field, t, (q, v), h)

    def step(
        self, t: jax.Array, state: Any, h: jax.Array, control: Input, wrench: Input
    ) -> tuple[Any, Any]:
        y, memory = state
        field = self.field(control, wrench)
        y, memory, solved = self.method.advance(self.manifold, field, t, y, h, memory)
        return (y, memory), solved

    def read(self, state: Any) -> tuple[jax.Array, jax.Array]:
        return state[0]

    def field(self, control: Input, wrench: Input) -> Field:
        """The rate (v, a) of a state (q, v) at the time t."""

        def field(t: jax.Array, y: Any) -> tuple[jax.Array, jax.Array]:
            q, v = y
            tau = passive(self.system, self.linkage, q, v)
            if control is not None:
                tau = tau + control(t, q, v)
            external = None if wrench is None else wrench(t, q, v)
            return v, acceleration(self.linkage, q, v, tau, external)

        # The stages of a method share it, in a loop.
        return native.kernel(field) if self.system.topology.walk == "fast" else field
