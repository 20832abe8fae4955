"""Machines that cannot move."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax

from ..integrators import Method
from ..system.linkage import Linkage
from ..system.system import System
from .formulation import Formulation, Inputs


class RestFormulation(Formulation):
    """The state (q, v), both (0,), of a machine without a joint that moves; any method."""

    system: System
    linkage: Linkage
    method: Method = eqx.field(static=True)

    def start(self, t: jax.Array, q: jax.Array, v: jax.Array, h: jax.Array, inputs: Inputs) -> Any:
        return q, v

    def step(self, t: jax.Array, state: Any, h: jax.Array, inputs: Inputs) -> tuple[Any, Any]:
        return state, True

    def read(self, state: Any) -> tuple[jax.Array, jax.Array]:
        return state
