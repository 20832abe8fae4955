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
    """A mechanical system with m constraints g(q) = 0, for RATTLE."""

    @abc.abstractmethod
    def residual(self, q: Float[Array, " nq"]) -> Float[Array, " m"]:
        """g(q) (m,)."""

    @abc.abstractmethod
    def jacobian(self, q: Float[Array, " nq"]) -> Float[Array, "m nv"]:
        """A(q) (m, nv), the derivative of g along left-trivialised rates."""

    @abc.abstractmethod
    def consistent(self, q: Float[Array, " nq"], p: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """p + A^T mu (nv,), with the mu for which A M^-1 (p + A^T mu) = 0."""

    @abc.abstractmethod
    def multipliers(
        self, t: Scalar, q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> Float[Array, " k"]:
        """The multipliers (k,) of the index-1 equations, one for each velocity constraint."""


class ConstrainedMomentum(NamedTuple):
    """The memory besides (q, v): that of `Momentum`, and the multipliers at (q, v).

    The multipliers are those of the index-1 equations and of order 2, as (q, v) is. The impulses of
    a step are of order 1 only.
    """

    p: jax.Array
    rates: tuple[jax.Array, jax.Array, jax.Array]
    multipliers: jax.Array


class Rattle(Method):
    """Order 2, implicit, for systems with constraints; keeps position and velocity constraints.

    Symplectic: the energy error stays bounded, and momentum maps of symmetries are kept. The
    discrete Lagrangian is that of `VariationalMidpoint`; without constraints the two methods are
    equal. Potentials act at the middle of the step, so stiff springs, dampers and drives are
    treated implicitly.
    """

    equations: ClassVar[type] = ConstrainedMechanics
    time_symmetric: ClassVar[bool] = True
    implicit: ClassVar[bool] = True
    order: ClassVar[int] = 2

    def init(self, problem: ConstrainedMechanics, t: Scalar, y: Any, h: Scalar) -> State:
        """The state from q (nq,) and v (nv,) that satisfy the constraints."""
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
        """q' (nq,), p' (nv,), the rate w (nv,) of the step, and whether it was solved ()."""
        manifold, n, A = mechanics.manifold, len(p), mechanics.jacobian(q)

        def impulse(w: jax.Array) -> jax.Array:
            return mechanics.force(manifold.retract(q, w * (h / 2)), w) * h

        def impulses(x: jax.Array) -> jax.Array:
            w, mu = x[:n], x[n:]
            return at_start(manifold, w * h, impulse(w)) + product(A.T, mu)

        def broken(w: jax.Array) -> jax.Array:
            # As a velocity, so that the equations stay well conditioned in small steps.
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
        # The small residual of the solve would otherwise accumulate in the momentum maps.
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
    """How impulses at the start of a step act, linearised at its rate w, for the whole step.

    Three values: the change of the rate (nv, m), the derivative (m, nv) of g(q') / h by the rate,
    and the impulses for a change of g(q') / h, as a linear function. The derivative of retract(q, h
    w) is dexp_{-h w}, approximated by Ad_{exp(-h w / 2)} to (h w)^2 / 24.
    """
    q, p, h, w, A = jax.lax.stop_gradient((q, p, h, w, A))
    manifold, unit = mechanics.manifold, jnp.eye(len(w), dtype=w.dtype)
    # Affine in the target, and small if the target is near p.
    targets = p + jnp.concatenate((0 * p[None], A))
    steps = jax.vmap(lambda target: mechanics.newton_step(q, w, h, target))(targets)
    response = (steps[1:] - steps[0]).T
    moved = jax.vmap(lambda e: manifold.adjoint(w * (-h / 2), e), out_axes=1)(unit)
    B = product(mechanics.jacobian(manifold.retract(q, w * h)), moved)
    return response, B, pseudoinverse(product(B, response))
