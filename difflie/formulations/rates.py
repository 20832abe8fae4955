"""Configuration and velocity, moved along a vector field: what Runge-Kutta methods need."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Float

from .. import native
from ..dynamics.forward import acceleration
from ..groups import Euclidean, Product
from ..integrators import Field, FieldMethod, ImplicitMethod, SemiImplicitEuler
from ..integrators.method import Scalar
from ..system.linkage import Linkage
from ..system.system import System
from .formulation import Formulation, Inputs


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

    @property
    def reads_once(self) -> bool:
        return isinstance(self.method, SemiImplicitEuler)

    def start(
        self,
        t: jax.Array,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        h: Scalar,
        inputs: Inputs,
    ) -> Any:
        field = self.field(inputs, h)
        return (q, v), self.method.start(self.manifold, field, t, (q, v), h)

    def step(self, t: jax.Array, state: Any, h: Scalar, inputs: Inputs) -> tuple[Any, Any]:
        y, memory = state
        field = self.field(inputs, h)
        y, memory, solved = self.method.advance(self.manifold, field, t, y, h, memory)
        return (y, memory), solved

    def read(self, state: Any) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
        return state[0]

    def field(self, inputs: Inputs, h: Scalar) -> Field:
        """The rate (v, a) of a state (q, v) at the time t, in a step h (s)."""

        def field(t: jax.Array, y: Any) -> tuple[jax.Array, jax.Array]:
            q, v = y
            tau, wrench = inputs.acting(self.system, self.linkage, t, q, v)
            return v, acceleration(self.linkage, q, v, tau, wrench)

        # The stages of a method share it, in a loop.
        return native.kernel(field) if self.system.topology.walk == "fast" else field
