"""Variational integrators: discrete mechanics instead of discretised equations.

The action between q and q' is approximated by a discrete Lagrangian L_d(q, q'), and the discrete
Euler-Lagrange equations are solved in the position-momentum form of Marsden and West 2001, 1.5:

p = -D1 L_d(q, q') - F^-, p' = D2 L_d(q, q') + F^+

The first gives q', the second p'. Without friction and drives the map (q, p) -> (q', p') is
symplectic, so that the energy error stays bounded, and the momenta of symmetries are kept exactly.

On a Lie group, for example for one rigid body: the body-fixed velocity V has the kinetic energy V .
J V / 2 with a constant J. A step of length h leads from q to q' = q tau(h V), with exp or the
Cayley map for tau, and the discrete Lagrangian is L_d = h V . J V / 2 - h (U(q) + U(q')) / 2. In
the position-momentum form, with dtau right-trivialised and F the body-fixed force at a point, its
discrete Euler-Lagrange equations are

    dtau_{hV}^-T J V = mu + h/2 F(q),    mu' = Ad_{tau(hV)}^T (mu + h/2 F(q)) + h/2 F(q')

The first is solved for V. The second transports the momentum with the body, so that the spatial
momentum Ad_{q^-1}^T mu changes by the forces alone, for any tolerance. Marsden, Pekarsky and
Shkoller 1999; Bou-Rabee and Marsden 2009; Lee, Leok and McClamroch 2007.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from ..groups import FlatManifold, FlatProduct
from ..solvers.corrections import Corrections
from ..solvers.linear import inverse, plain_product
from ..solvers.newton import Newton
from ..solvers.root import root
from .method import Method, Scalar, State, chosen, in_precision_of


class DiscreteMechanics(eqx.Module):
    """A mechanical system in one step of a variational method; arrays are q (nq,), others (nv,).

    A step leads from q to q' = retract(q, h w). Momenta, forces and rates are left-trivialised. The
    problem is that of one step, whose middle it knows; points are y = (q, v).
    """

    @property
    @abc.abstractmethod
    def manifold(self) -> FlatProduct:
        """The configuration manifold."""

    @abc.abstractmethod
    def momentum(self, q: jax.Array, v: jax.Array) -> jax.Array:
        """M v (nv,)."""

    @abc.abstractmethod
    def velocity(self, q: jax.Array, p: jax.Array) -> jax.Array:
        """M^-1 p (nv,)."""

    @abc.abstractmethod
    def momenta(self, q: jax.Array, w: jax.Array, h: Scalar) -> tuple[jax.Array, jax.Array]:
        """-D1 L_d(q, q') and D2 L_d(q, q'), L_d being h times the kinetic energy of the step."""

    @abc.abstractmethod
    def force(self, q: jax.Array, w: jax.Array) -> jax.Array:
        """The generalised force of potentials, friction and drives at the middle of the step.

        q (nq,) is the configuration there.
        """

    @abc.abstractmethod
    def newton_step(self, q: jax.Array, w: jax.Array, h: Scalar, target: jax.Array) -> jax.Array:
        """The dw for which the momenta at the start, less the impulse there, equal the target.

        To first order in dw; `target` contains the impulse at w. An approximate derivative of the
        impulse is enough. Affine in the target.
        """


class Momentum(NamedTuple):
    """The memory besides (q, v): the momentum p = M v (nv,), and the rates w of three steps."""

    p: jax.Array
    rates: tuple[jax.Array, jax.Array, jax.Array]


def continued(rates: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
    """The rate w (nv,) of the next step, extrapolated by the parabola through the last three."""
    w0, w1, w2 = rates
    return 3 * (w2 - w1) + w0


class VariationalMidpoint(Method):
    """Order 2, implicit: forces at the middle of the step, each body moves along one screw.

    L_d(q, q') = h (T - U(q_m)): the kinetic energy T of bodies that move along screws from q to q',
    the potential U at the middle q_m. Forces without a potential act through their virtual work on
    q_m. Marsden and West 2001; for trees Lee, Liu, Park and Srinivasa 2018.
    """

    equations: ClassVar[type] = DiscreteMechanics
    time_symmetric: ClassVar[bool] = True
    implicit: ClassVar[bool] = True
    order: ClassVar[int] = 2

    def init(self, problem: DiscreteMechanics, t: Scalar, y: Any, h: Scalar) -> State:
        q, v = y
        return State(y, Momentum(problem.momentum(q, v), (v, v, v)))

    def step(
        self, problem: DiscreteMechanics, t: Scalar, state: State, h: Scalar
    ) -> tuple[State, jax.Array]:
        (q, _), (p, rates) = state
        q, p, w, solved = self._moved(problem, q, p, h, continued(rates))
        y = q, problem.velocity(q, p)
        return State(y, Momentum(p, (*rates[1:], w))), solved

    def _moved(
        self, mechanics: DiscreteMechanics, q: jax.Array, p: jax.Array, h: Scalar, guess: jax.Array
    ) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
        """q' (nq,), p' (nv,), the rate w (nv,) of the step, and whether it was solved ()."""
        manifold = mechanics.manifold

        def impulse(w: jax.Array) -> jax.Array:
            return mechanics.force(manifold.retract(q, w * (h / 2)), w) * h

        def residual(w: jax.Array) -> jax.Array:
            target = p + at_start(manifold, w * h, impulse(w))
            return mechanics.momenta(q, w, h)[0] - target

        def correction(w: jax.Array, b: jax.Array) -> jax.Array:
            target = p + b + at_start(manifold, w * h, impulse(w))
            return mechanics.newton_step(q, w, h, target)

        w, solved = root(residual, guess, Corrections(correction))
        start, end = mechanics.momenta(q, w, h)
        whole = impulse(w)
        first = at_start(manifold, w * h, whole)
        # The small residual of the solve would otherwise accumulate in the momentum maps.
        unsolved = transported(manifold, w * h, start - first - p)
        return manifold.retract(q, w * h), end + (whole - first) - unsolved, w, solved


def at_start(manifold: FlatProduct, step: jax.Array, impulse: jax.Array) -> jax.Array:
    """The part (nv,) at the start of a step of an impulse (nv,) at its middle, by virtual work."""
    return jax.linear_transpose(lambda x: manifold.halfway(step, x), step)(impulse)[0]


def transported(manifold: FlatProduct, step: jax.Array, momentum: jax.Array) -> jax.Array:
    """A momentum (nv,) at the start of a step, expressed at its end: Ad^T."""
    return jax.linear_transpose(lambda x: manifold.adjoint(step, x), step)(momentum)[0]


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
        return plain_product(inverse(self.inertia, len(self.inertia)), mu)


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
        return GroupState(q, plain_product(problem.inertia, v), v)

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

            return jax.linear_transpose(back, rate)(plain_product(inertia, rate))[0] - begun

        rate, solved = root(residual, state.rate, Newton())

        def transport(xi: jax.Array) -> jax.Array:
            return group.adjoint(h * rate, xi)

        q = group.retract(state.q, h * rate)
        mu = jax.linear_transpose(transport, rate)(begun)[0] + impulse(t + h, q)
        return chosen(solved, GroupState(q, mu, rate), state), solved
