"""The variational midpoint rule for joint angles.

A machine whose joints are all revolute, with fixed axes, moves on (S1)^n; in the joint angles phi
(n,) the attitude of each link turns by half of phi1 - phi0 to the middle of a step and by the other
half to its end. With a rate of the angle, omega', the discrete Lagrangian and its step (Lee, Leok,
McClamroch 2005; Goetz 2024, (4.26)-(4.31)) are

    L_d(phi0, phi1) = h L((phi0 + phi1)/2, omega'),    p0 = -D1 L_d,    p1 = D2 L_d

The map from (phi0, p0) to (phi1, p1) is symplectic. Its first momentum is that of the first state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from ..solvers.newton import Newton
from ..solvers.root import root
from .method import Method, Scalar, chosen, in_precision_of

Lagrangian = Callable[[jax.Array, jax.Array], jax.Array]


def angle_rate(turn: jax.Array, h: Scalar) -> jax.Array:
    """omega' = (phi1 - phi0)/h, the constant rate (n,) of a turn (n,) in the time h."""
    return turn / h


def chord_rate(turn: jax.Array, h: Scalar) -> jax.Array:
    """omega' = sin(phi1 - phi0)/h (n,), the thesis' (4.31), q0^T S^T q1 of unit attitudes q.

    Of order 2 as `angle_rate` is, with larger errors, and not invertible beyond a quarter turn.
    """
    return jnp.sin(turn) / h


class LagrangianMechanics(NamedTuple):
    """A problem in angles phi (n,) and their rate (n,), y = (phi, rate).

    lagrangian(phi, rate) is a scalar in J, twice differentiable.
    """

    lagrangian: Lagrangian


class PhaseState(NamedTuple):
    """Angles phi (n,), momenta p (n,), and (phi1 - phi0)/h of the last step, Newton's guess."""

    phi: jax.Array
    p: jax.Array
    mean_rate: jax.Array


class PlanarVariational(Method):
    """Order 2, symplectic, for angles (n,) in rad; rate: `angle_rate`, or `chord_rate`."""

    equations: ClassVar[type] = LagrangianMechanics
    time_symmetric: ClassVar[bool] = True
    implicit: ClassVar[bool] = True

    rate: Callable[[jax.Array, jax.Array], jax.Array] = eqx.field(default=angle_rate, static=True)

    @property
    def order(self) -> int:
        return 2

    def init(
        self, problem: LagrangianMechanics, t: Scalar, y: tuple[jax.Array, jax.Array], h: Scalar
    ) -> PhaseState:
        phi, rate = y
        return PhaseState(phi, jax.grad(problem.lagrangian, 1)(phi, rate), rate)

    def step(
        self, problem: LagrangianMechanics, t: Scalar, state: PhaseState, h: Scalar
    ) -> tuple[PhaseState, jax.Array]:
        """The state at t + h, and whether the step was solved (); it stays where it was not."""
        lagrangian, phi0 = problem.lagrangian, state.phi
        (h,) = in_precision_of(phi0, h)

        def discrete(phi0: jax.Array, phi1: jax.Array) -> jax.Array:
            return h * lagrangian((phi0 + phi1) / 2, self.rate(phi1 - phi0, h))

        def residual(mean_rate: jax.Array) -> jax.Array:
            return state.p + jax.grad(discrete, 0)(phi0, phi0 + h * mean_rate)

        mean_rate, solved = root(residual, state.mean_rate, Newton())
        phi1 = phi0 + h * mean_rate
        after = PhaseState(phi1, jax.grad(discrete, 1)(phi0, phi1), mean_rate)
        return chosen(solved, after, state), solved
