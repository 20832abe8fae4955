"""RATTLE: the variational integrator of a mechanical system with constraints.

The discrete Euler-Lagrange equations (`variational.py`) with reactions at both nodes of a step:

p + A(q)^T mu^+ = -D1 L_d(q, q') - F^-,            g(q') = 0
p'              = D2 L_d(q, q') + F^+ + A(q')^T mu^-,    A(q') M(q')^-1 p' = 0

mu^+ and mu^- are impulses, about h/2 times the multipliers. The first line gives q' and mu^+, the
second, which is linear, p' and mu^-. Without friction and drives the map (q, p) -> (q', p') is
symplectic on the constrained states. With L_d of the method of Stormer and Verlet this is RATTLE
(Andersen 1983; Leimkuhler and Skeel 1994), with any other the method of Marsden and West 2001, 3.5;
Hairer, Lubich and Wanner 2006, VII.1.4; Leimkuhler and Reich 2004, 7.2. On Lie groups A is the
derivative of g along left-trivialised rates.
"""

from __future__ import annotations

import abc
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..solvers.corrections import Corrections
from ..solvers.linear import product, pseudoinverse
from ..solvers.root import root
from .method import Method, Scalar, State
from .variational import DiscreteMechanics, at_start, continued, transported


class ConstrainedMechanics(DiscreteMechanics):
    """What RATTLE asks of a system with m equations of constraints g(q) = 0."""

    @abc.abstractmethod
    def residual(self, q: Float[Array, " nq"]) -> Float[Array, " m"]:
        """g (m,)."""

    @abc.abstractmethod
    def jacobian(self, q: Float[Array, " nq"]) -> Float[Array, "m nv"]:
        """A (m, nv), the derivative of g along rates."""

    @abc.abstractmethod
    def consistent(self, q: Float[Array, " nq"], p: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """p + A^T mu (nv,), with the mu for which A M^-1 of it is zero."""

    @abc.abstractmethod
    def multipliers(
        self, t: Scalar, q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> Float[Array, " k"]:
        """Those of the equations of index 1 at a state, one for each equation of velocities."""


class ConstrainedMomentum(NamedTuple):
    """What is kept besides (q, v): as of `Momentum`, and the multipliers at (q, v).

    These are those of the equations of index 1, of order 2 as (q, v) are; the impulses of a step
    are of order 1 only.
    """

    p: jax.Array
    rates: tuple[jax.Array, jax.Array, jax.Array]
    multipliers: jax.Array


class Rattle(Method):
    """Order 2, implicit, for systems with constraints, which positions and velocities keep.

    Symplectic: the energy error stays bounded, and the momenta of symmetries are kept. The discrete
    Lagrangian is that of `VariationalMidpoint`, which this is where there are no constraints: a
    potential acts halfway, so that stiff springs, dampers and drives are solved for.
    """

    equations: ClassVar[type] = ConstrainedMechanics
    time_symmetric: ClassVar[bool] = True
    implicit: ClassVar[bool] = True
    order: ClassVar[int] = 2

    def init(self, problem: ConstrainedMechanics, t: Scalar, y: Any, h: Scalar) -> State:
        """From q (nq,) and v (nv,) that keep the constraints."""
        q, v = y
        multipliers = problem.multipliers(t, q, v)
        return State(y, ConstrainedMomentum(problem.momentum(q, v), (v, v, v), multipliers))

    def step(
        self, problem: ConstrainedMechanics, t: Scalar, state: State, h: Scalar
    ) -> tuple[State, Bool[Array, ""]]:
        (q, _), (p, rates, _) = state
        q, p, w, solved = self._moved(problem, q, p, h, continued(rates))
        v = problem.velocity(q, p)
        multipliers = problem.multipliers(t + h, q, v)
        return State((q, v), ConstrainedMomentum(p, (*rates[1:], w), multipliers)), solved

    def _moved(
        self,
        mechanics: ConstrainedMechanics,
        q: Float[Array, " nq"],
        p: Float[Array, " nv"],
        h: Scalar,
        guess: Float[Array, " nv"],
    ) -> tuple[Float[Array, " nq"], Float[Array, " nv"], Float[Array, " nv"], Bool[Array, ""]]:
        """q' (nq,), p' (nv,), the rate w (nv,) that leads there, and whether it was found ()."""
        manifold, n, A = mechanics.manifold, len(p), mechanics.jacobian(q)

        def impulse(w: jax.Array) -> jax.Array:
            return mechanics.force(manifold.retract(q, w * (h / 2)), w) * h

        def impulses(x: jax.Array) -> jax.Array:
            w, mu = x[:n], x[n:]
            return at_start(manifold, w * h, impulse(w)) + product(A.T, mu)

        def broken(w: jax.Array) -> jax.Array:
            # As a velocity: the equations keep their condition in small steps.
            return mechanics.residual(manifold.retract(q, w * h)) / h

        def residual(x: jax.Array) -> jax.Array:
            balance = mechanics.momenta(q, x[:n], h)[0] - p - impulses(x)
            return jnp.concatenate((balance, broken(x[:n])))

        response, B, inverse = _reactions(mechanics, q, p, h, guess, A)

        def correction(x: jax.Array, b: jax.Array) -> jax.Array:
            w, target = x[:n], p + b[:n] + impulses(x)
            free = mechanics.newton_step(q, w, h, target)
            mu = inverse(b[n:] - broken(w) - product(B, free))
            return jnp.concatenate((free + product(response, mu), mu))

        guess = jnp.concatenate((guess, jnp.zeros(len(A), p.dtype)))
        x, solved = root(residual, guess, Corrections(correction))
        w = x[:n]
        start, end = mechanics.momenta(q, w, h)
        whole = impulse(w)
        # What is not solved, little as it is, would collect in the momenta of symmetries.
        unsolved = transported(manifold, w * h, start - impulses(x) - p)
        end = end + (whole - at_start(manifold, w * h, whole)) - unsolved
        q = manifold.retract(q, w * h)
        return q, mechanics.consistent(q, end), w, solved


def _reactions(
    mechanics: ConstrainedMechanics,
    q: Float[Array, " nq"],
    p: Float[Array, " nv"],
    h: Scalar,
    w: Float[Array, " nv"],
    A: jax.Array,
) -> tuple:
    """How impulses at the start change the rate (nv, m), the rate g(q') / h (m, nv), and the
    impulses that do so: at the rate w, for the whole step.

    The derivative of retract(q, h w) is dexp_{-h w}, here Ad_{exp(-h w / 2)}: good to (h w)^2 / 24.
    """
    q, p, h, w, A = jax.lax.stop_gradient((q, p, h, w, A))
    manifold, unit = mechanics.manifold, jnp.eye(len(w), dtype=w.dtype)
    # Affine in the target, and little where the target is p.
    targets = p + jnp.concatenate((0 * p[None], A))
    steps = jax.vmap(lambda target: mechanics.newton_step(q, w, h, target))(targets)
    response = (steps[1:] - steps[0]).T
    moved = jax.vmap(lambda e: manifold.adjoint(w * (-h / 2), e), out_axes=1)(unit)
    B = product(mechanics.jacobian(manifold.retract(q, w * h)), moved)
    return response, B, pseudoinverse(product(B, response))
