"""Semi-implicit Euler: the velocity first, then the configuration with the new velocity."""

from __future__ import annotations

from typing import Any, ClassVar

import jax

from .method import FieldMethod, Scalar, State, VectorField, in_precision_of
from .partitioned import check_alike, two_factors


class BodyFixedEuler(FieldMethod):
    """Order 1, one evaluation: v' = v + h a(t, q, v), then q' = q . exp(h v').

    For y = (q, v) on Product((Q, E)), where v in the vector space E is the rate of q in Q, and
    field(t, y) = (v, a). Also called symplectic Euler: where E conjugates Q in a separable
    Hamiltonian system it is symplectic. Hairer, Lubich and Wanner 2006, I.1.2.

    Body-fixed velocities of a free body turn with it even where nothing acts. This explicit step
    lengthens them by sqrt(1 + (w h)^2), w the angular velocity: `SemiImplicitEuler` does not.
    crocoddyl's `IntegratedActionModelEuler` is this method.
    """

    reads_once: ClassVar[bool] = True
    order: ClassVar[int] = 1
    stages: ClassVar[int] = 1
    stability: ClassVar[tuple[float, float]] = 2.0, 2.0

    def step(self, problem: VectorField, t: Scalar, state: State, h: Scalar) -> tuple[State, Any]:
        configurations, velocities = two_factors(self.name, problem.manifold)
        y = state.y
        t, h = in_precision_of(y, t, h)
        q, v = y
        rate, a = problem.field(t, y)
        check_alike(self.name, rate, v)
        v = velocities.retract(v, jax.tree.map(lambda a: h * a, a))
        return State((configurations.retract(q, jax.tree.map(lambda v: h * v, v)), v)), True


class SemiImplicitEuler(BodyFixedEuler):
    """Order 1, one evaluation: `BodyFixedEuler`, in which free bodies keep their momentum.

    A free body, the base of a floating tree, and a ball joint on the world go straight on in the
    world. Their velocity follows from the balance of momentum (`difflie.dynamics.free_flight`).
    """

    keeps_momentum: ClassVar[bool] = True

    def step(self, problem: VectorField, t: Scalar, state: State, h: Scalar) -> tuple[State, Any]:
        if problem.free_step is None:
            return super().step(problem, t, state, h)
        t, h = in_precision_of(state.y, t, h)
        return State(problem.free_step(t, state.y, h)), True
