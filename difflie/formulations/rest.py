"""Machines that cannot move."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax

from ..integrators.method import Method, Scalar, State
from ..system.kinematic_tree import Tree
from .formulation import Formulation, Inputs


class RestFormulation(Formulation):
    """The state (q, v), both (0,), of a machine without a joint that moves; any method."""

    supports: ClassVar[frozenset[str]] = frozenset(("constraints", "contacts", "joint friction"))

    tree: Tree
    method: Method = eqx.field(static=True)

    def problem(self, t: jax.Array, h: Scalar, inputs: Inputs) -> None:
        return None

    def init(self, t: jax.Array, q: jax.Array, v: jax.Array, h: Scalar, inputs: Inputs) -> State:
        return State((q, v))

    def step(self, t: jax.Array, state: State, h: Scalar, inputs: Inputs) -> tuple[State, Any]:
        return state, True
