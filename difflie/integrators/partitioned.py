"""Methods that move configurations and velocities one after the other.

Semi-implicit Euler: the velocity first, then the configuration with the new velocity. Stoermer-
Verlet: half a kick, a drift, and half a kick.
"""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from ..groups import Euclidean, FlatProduct, Manifold, Product
from ..solvers.newton import FixedPoint
from ..solvers.root import root
from .method import FieldMethod, Scalar, State, VectorField, chosen, in_precision_of


def two_factors(method: str, manifold: Manifold) -> tuple[Manifold, ...]:
    """Q and E of Product((Q, E)). Raises TypeError for other manifolds."""
    if (
        not isinstance(manifold, Product)
        or len(manifold.factors) != 2
        or not _is_euclidean(manifold.factors[1])
    ):
        raise TypeError(
            f"{method} needs the manifold Product((Q, E)) of a configuration space Q and a "
            f"Euclidean space E of its velocities, and got {manifold}; for first-order systems use "
            "another method"
        )
    return manifold.factors


def _is_euclidean(manifold: Manifold) -> bool:
    if isinstance(manifold, Product | FlatProduct):
        return all(_is_euclidean(m) for m in manifold.factors)
    return isinstance(manifold, Euclidean)


def check_alike(method: str, rate: Any, v: Any) -> None:
    """Raises TypeError unless the rate of q has the shapes of v."""
    wanted, actual = _shapes(rate), _shapes(v)
    if wanted != actual:
        raise TypeError(
            f"{method} moves q with the rate v, so the two must look alike: the field "
            f"gives rates of q of the shapes {wanted}, and v has {actual}"
        )


def _shapes(tree: Any) -> Any:
    return jax.tree.map(jnp.shape, tree)


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
    partitioned: ClassVar[bool] = True
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


class StormerVerlet(FieldMethod):
    """Order 2, 2 stages, symmetric: two kicks of half a step with a drift between them.

    For y = (q, v) on Product((Q, E)) and field(t, y) = (v, a),

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
    partitioned: ClassVar[bool] = True
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
