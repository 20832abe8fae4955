"""The energy-stable step for constant mass matrices and quadratic constraints.

In redundant coordinates q (n,) with velocity v and the constraints c(q) = 0 (m,), C = dc/dq,

    M dv/dt = C^T lambda - grad V + f,    dq/dt = v,    C v = 0

is a gradient system with a skew structure matrix. The Petrov-Galerkin approach with (q, v, Lambda),
dLambda/dt = lambda, linear in time and constant test functions gives the step (Egger, Habrich,
Shashkov 2021; Goetz 2024, (3.19) and (3.43), with means in place of the integrals there)

    M (v1 - v0) - h C(qm)^T mu + h gbar = h f,    q1 - q0 = h (v0 + v1)/2,    c(q1) = 0

with qm = (q0 + q1)/2 and a mean gradient gbar. C is linear in q, so its mean over the step is C(qm)
and C(qm) (q1 - q0) = c(q1) - c(q0): the constraints hold to rounding for any h. Multiplying the
first row with q1 - q0 gives T1 - T0 + gbar . (q1 - q0) = f . (q1 - q0): the energy error is that of
the mean gradient. The velocity is tangent at the middle of each step, C(qm) (v0 + v1)/2 = 0, and at
the nodes up to O(h^2).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..solvers.newton import Newton
from ..solvers.root import root
from .mean_gradients import GaussMean, MeanGradient
from .method import Method, Scalar, chosen, in_precision_of


class ConstrainedProblem(NamedTuple):
    """A mechanical system in redundant coordinates q (n,).

    mass (n, n): constant, positive definite where the constraints leave freedom. constraint(q)
    (m,): quadratic. potential(q) (): any. force (n,): the mean generalised force over a step
    besides the potential's. Points are y = (q, v). Units are SI.
    """

    mass: jax.Array
    constraint: Callable[[jax.Array], jax.Array]
    potential: Callable[[jax.Array], jax.Array]
    force: jax.Array | float = 0.0

    def energy(self, q: Float[Array, " n"], v: Float[Array, " n"]) -> Float[Array, ""]:
        """v . M v / 2 + V(q), a scalar."""
        return jnp.sum(v * jnp.sum(self.mass * v, axis=1)) / 2 + self.potential(q)


class ConstrainedState(NamedTuple):
    """q (n,), v (n,), and of the last step, where Newton's method begins: v1 - v0 and h mu."""

    q: jax.Array
    v: jax.Array
    change: jax.Array
    impulse: jax.Array


class EnergyStable(Method):
    """Order 2 in the state; in the energy exact, or of the order of the mean gradient.

    mean: `GaussMean` or `DiscreteGradient`.
    """

    equations: ClassVar[type] = ConstrainedProblem
    time_symmetric: ClassVar[bool] = True
    implicit: ClassVar[bool] = True

    mean: MeanGradient = GaussMean(3)

    @property
    def order(self) -> int:
        return 2

    def init(
        self, problem: ConstrainedProblem, t: Scalar, y: tuple[jax.Array, jax.Array], h: Scalar
    ) -> ConstrainedState:
        """The state at q (n,) with c(q) = 0 and v (n,) with C v = 0."""
        q, v = y
        impulse = jnp.zeros_like(problem.constraint(q))
        return ConstrainedState(q, v, jnp.zeros_like(v), impulse)

    def step(
        self, problem: ConstrainedProblem, t: Scalar, state: ConstrainedState, h: Scalar
    ) -> tuple[ConstrainedState, Bool[Array, ""]]:
        """The state at t + h, and whether the step was solved (); it stays where it was not."""
        q0, v0 = state.q, state.v
        (h,) = in_precision_of(q0, h)
        n = len(q0)

        # The change of v is the unknown: that of q would lose its digits in a division by h^2.
        def moved(change: jax.Array) -> jax.Array:
            return q0 + h * (v0 + change / 2)

        def residual(x: jax.Array) -> jax.Array:
            change, impulse = x[:n], x[n:]
            q1 = moved(change)
            reaction = jax.vjp(problem.constraint, (q0 + q1) / 2)[1](impulse)[0]
            push = problem.force - self.mean(problem.potential, q0, q1)
            balance = jnp.sum(problem.mass * change, axis=1) - reaction - h * push
            return jnp.concatenate((balance, problem.constraint(q1) / h))

        x, solved = root(residual, jnp.concatenate((state.change, state.impulse)), Newton())
        change, impulse = x[:n], x[n:]
        after = ConstrainedState(moved(change), v0 + change, change, impulse)
        return chosen(solved, after, state), solved
