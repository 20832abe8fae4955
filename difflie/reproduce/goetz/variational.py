"""The variational midpoint rule for joint angles.

A machine whose joints are all revolute, with fixed axes, moves on (S1)^n; in the joint angles phi
(n,) the attitude of each link turns by half of phi1 - phi0 to the middle of a step and by the other
half to its end. With a rate of the angle, omega', the discrete Lagrangian and its step (Lee, Leok,
McClamroch 2005; Goetz 2024, (4.26)-(4.31)) are

    L_d(phi0, phi1) = h L((phi0 + phi1)/2, omega'),    p0 = -D1 L_d,    p1 = D2 L_d

The map from (phi0, p0) to (phi1, p1) is symplectic.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ...integrators.method import Scalar, State, chosen
from ...solvers.newton import Newton
from ...solvers.root import root


def angle_rate(turn: Float[Array, " n"], h: Scalar) -> Float[Array, " n"]:
    """omega' = (phi1 - phi0)/h, the constant rate (n,) of a turn (n,) in the time h."""
    return turn / h


def chord_rate(turn: Float[Array, " n"], h: Scalar) -> Float[Array, " n"]:
    """omega' = sin(phi1 - phi0)/h (n,), the thesis' (4.31), q0^T S^T q1 of unit attitudes q.

    Of order 2 as `angle_rate` is, with larger errors, and not invertible beyond a quarter turn.
    """
    return jnp.sin(turn) / h


def step(
    lagrangian: Callable[[jax.Array, jax.Array], jax.Array],
    rate: Callable[[jax.Array, Scalar], jax.Array],
    state: State,
    h: Scalar,
) -> tuple[State, Bool[Array, ""]]:
    """The state h (s) later, and whether the step was solved (); it stays where it was not.

    The state is at y = (phi, p), angles and momenta (n,), and remembers (phi1 - phi0)/h of the last
    step (n,), where Newton's method begins. lagrangian(phi, rate): in J, twice differentiable;
    rate: `angle_rate` or `chord_rate`.
    """
    (phi0, p0), guess = state

    def discrete(phi0: jax.Array, phi1: jax.Array) -> jax.Array:
        return h * lagrangian((phi0 + phi1) / 2, rate(phi1 - phi0, h))

    def residual(mean_rate: jax.Array) -> jax.Array:
        return p0 + jax.grad(discrete)(phi0, phi0 + h * mean_rate)

    mean_rate, solved = root(residual, guess, Newton())
    phi1 = phi0 + h * mean_rate
    after = State((phi1, jax.grad(discrete, 1)(phi0, phi1)), mean_rate)
    return chosen(solved, after, state), solved
