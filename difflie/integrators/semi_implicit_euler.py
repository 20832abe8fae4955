"""Semi-implicit Euler: the velocity first, then the configuration with the new velocity."""

from __future__ import annotations

from typing import Any, ClassVar

import jax

from .method import FieldMethod, Scalar, State, VectorField, in_precision_of
from .partitioned import check_alike, two_factors


class SemiImplicitEuler(FieldMethod):
    """Order 1, one evaluation: v' = v + h a(t, q, v), then q' = q . exp(h v').

    For y = (q, v) on Product((Q, E)), where v in the vector space E is the rate of q in Q, and
    field(t, y) = (v, a). Also called symplectic Euler: where E conjugates Q in a separable
    Hamiltonian system it is symplectic. Hairer, Lubich and Wanner 2006, I.1.2.
    """

    reads_once: ClassVar[bool] = True
    order: ClassVar[int] = 1
    stages: ClassVar[int] = 1

    def step(self, problem: VectorField, t: Scalar, state: State, h: Scalar) -> tuple[State, Any]:
        configurations, velocities = two_factors(self.name, problem.manifold)
        y = state.y
        t, h = in_precision_of(y, t, h)
        q, v = y
        rate, a = problem.field(t, y)
        check_alike(self.name, rate, v)
        v = velocities.retract(v, jax.tree.map(lambda a: h * a, a))
        return State((configurations.retract(q, jax.tree.map(lambda v: h * v, v)), v)), True
