"""Machines without degrees of freedom."""

from __future__ import annotations

from typing import Any, ClassVar

import jax

from ..integrators.method import Scalar, State
from .formulation import Formulation, Inputs


class RestFormulation(Formulation):
    """The state (q, v), both (0,), of a machine without a joint that moves; any method."""

    supports: ClassVar[frozenset[str]] = frozenset(("constraints", "contacts", "joint friction"))

    def problem(self, t: jax.Array, h: Scalar, inputs: Inputs) -> None:
        return None

    def init(self, t: jax.Array, q: jax.Array, v: jax.Array, h: Scalar, inputs: Inputs) -> State:
        return State((q, v))

    def step(self, t: jax.Array, state: State, h: Scalar, inputs: Inputs) -> tuple[State, Any]:
        return state, True
