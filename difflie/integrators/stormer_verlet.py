"""The Stoermer-Verlet method: half a kick, a drift, and half a kick."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from ..solvers.newton import FixedPoint
from ..solvers.root import root
from .method import FieldMethod, Scalar, State, VectorField, chosen, in_precision_of
from .partitioned import check_alike, two_factors


class StormerVerlet(FieldMethod):
    """Order 2, 2 stages, symmetric: for y = (q, v) on Product((Q, E)) and field(t, y) = (v, a),

        u  = v + h/2 a(t, q, u)
        q' = q . exp(h u)
        v' = u + h/2 a(t + h, q', u)

    where v in the vector space E is the rate of q in Q. The second kick is the first of the step
    back from (q', v'), so that n steps forth and n steps back return to the start, up to rounding.
    It is explicit where a does not depend on the velocity; where E conjugates Q in such a system,
    Hamiltonian and separable, it is symplectic. Hairer, Lubich and Wanner 2006, I.1.4 and VI.3.
    """

    time_symmetric: ClassVar[bool] = True
    implicit: ClassVar[bool] = True
    order: ClassVar[int] = 2
    stages: ClassVar[int] = 2

    def init(self, problem: VectorField, t: Scalar, y: Any, h: Scalar) -> State:
        """The memory is the first kick h/2 a (n,) of the last step, the guess for the next one."""
        return State(y, jnp.zeros_like(ravel_pytree(y[1])[0]))

    def step(self, problem: VectorField, t: Scalar, state: State, h: Scalar) -> tuple[State, Any]:
        configurations, velocities = two_factors(self.name, problem.manifold)
        field, (y, memory) = problem.field, state
        t, h = in_precision_of(y, t, h)
        q, v = y
        _, tangent = ravel_pytree(v)

        def kick(t: jax.Array, q: Any, u: Any) -> jax.Array:
            rate, a = field(t, (q, u))
            check_alike(self.name, rate, v)
            return h / 2 * ravel_pytree(a)[0]

        def after(kick: jax.Array, v: Any) -> Any:
            return velocities.retract(v, tangent(kick))

        first, solved = root(lambda x: x - kick(t, q, after(x, v)), memory, FixedPoint())
        u = after(first, v)
        moved = configurations.retract(q, jax.tree.map(lambda u: h * u, u))
        last = kick(t + h, moved, u)
        y = chosen(solved, (moved, after(last, u)), y)
        return State(y, jax.lax.stop_gradient(last)), solved
