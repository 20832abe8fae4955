"""The variational integrator on a Lie group, for example for one rigid body.

The body-fixed velocity V has the kinetic energy V . J V / 2 with a constant J. A step of length h
leads from q to q' = q tau(h V), with exp or the Cayley map for tau, and the discrete Lagrangian is
L_d = h V . J V / 2 - h (U(q) + U(q')) / 2. In the position-momentum form, with dtau
right-trivialised and F the body-fixed force at a point, its discrete Euler-Lagrange equations are

    dtau_{hV}^-T J V = mu + h/2 F(q),    mu' = Ad_{tau(hV)}^T (mu + h/2 F(q)) + h/2 F(q')

The first is solved for V. The second transports the momentum with the body, so that the spatial
momentum Ad_{q^-1}^T mu changes by the forces alone, for any tolerance.
Marsden, Pekarsky and Shkoller 1999; Bou-Rabee and Marsden 2009; Lee, Leok and McClamroch 2007.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from ..groups import FlatManifold
from ..solvers.elimination import inverse, product
from ..solvers.newton import Newton
from ..solvers.root import root
from .method import Method, Scalar, chosen, in_precision_of


class GroupMechanics(NamedTuple):
    """A body on a Lie group, as a problem; points are y = (q, v).

    inertia J (nv, nv), symmetric, positive definite. force(t, q) (nv,): dual to the velocities, for
    a rigid body the body-fixed moment and force; None where there is none.
    """

    group: FlatManifold
    inertia: jax.Array
    force: Callable[[Scalar, jax.Array], jax.Array] | None = None

    def velocity(self, mu: jax.Array) -> jax.Array:
        """J^-1 mu (nv,); the energy of a momentum mu (nv,) is mu . J^-1 mu / 2."""
        return product(inverse(self.inertia, len(self.inertia)), mu)


class GroupState(NamedTuple):
    """A point q (nq,), its momentum mu (nv,), and the V (nv,) of the last step, Newton's guess."""

    q: jax.Array
    mu: jax.Array
    rate: jax.Array


class LieVariational(Method):
    """Order 2, symplectic, symmetric in time; the energy error stays bounded.

    group is the manifold of the points q (nq,), and carries the map tau: for a rigid body `Pose`,
    with the 6 x 6 inertia about the origin of its frame; FlatProduct((UnitQuaternion(),
    Euclidean(3))), with the velocity (w body-fixed, v of the centre of mass in space) and J =
    diag(I, m, m, m); or these in the chart `Cayley`; `UnitQuaternion` for a body
    about a fixed point. exp is the more accurate, the Cayley map the cheaper.
    """

    equations: ClassVar[type] = GroupMechanics
    time_symmetric: ClassVar[bool] = True
    implicit: ClassVar[bool] = True
    order: ClassVar[int] = 2

    def init(
        self, problem: GroupMechanics, t: Scalar, y: tuple[jax.Array, jax.Array], h: Scalar
    ) -> GroupState:
        q, v = y
        return GroupState(q, product(problem.inertia, v), v)

    def step(
        self, problem: GroupMechanics, t: Scalar, state: GroupState, h: Scalar
    ) -> tuple[GroupState, jax.Array]:
        """The state at t + h, and whether the step was solved (); if not, the state at t."""
        group, inertia, force = problem
        t, h = in_precision_of(state.q, t, h)

        def impulse(t: jax.Array, q: jax.Array) -> jax.Array:
            return jnp.zeros_like(state.mu) if force is None else (h / 2) * force(t, q)

        begun = state.mu + impulse(t, state.q)

        def residual(rate: jax.Array) -> jax.Array:
            def back(xi: jax.Array) -> jax.Array:
                return group.dexp_inv(-h * rate, xi)

            return jax.linear_transpose(back, rate)(product(inertia, rate))[0] - begun

        rate, solved = root(residual, state.rate, Newton())

        def transport(xi: jax.Array) -> jax.Array:
            return group.adjoint(h * rate, xi)

        q = group.retract(state.q, h * rate)
        mu = jax.linear_transpose(transport, rate)(begun)[0] + impulse(t + h, q)
        return chosen(solved, GroupState(q, mu, rate), state), solved
