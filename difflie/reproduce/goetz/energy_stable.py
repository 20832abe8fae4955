"""The energy-stable step for constant mass matrices and quadratic constraints.

In redundant coordinates q (n,) with velocity v and the constraints c(q) = 0 (m,), C = dc/dq,

    M dv/dt = C^T lambda - grad V,    dq/dt = v,    C v = 0

is a gradient system with a skew structure matrix. The Petrov-Galerkin approach with (q, v, Lambda),
dLambda/dt = lambda, linear in time and constant test functions gives the step (Egger, Habrich,
Shashkov 2021; Goetz 2024, (3.19) and (3.43), with means in place of the integrals there)

    M (v1 - v0) - h C(qm)^T mu + h gbar = 0,    q1 - q0 = h (v0 + v1)/2,    c(q1) = 0

with qm = (q0 + q1)/2 and a mean gradient gbar. C is linear in q, so its mean over the step is C(qm)
and C(qm) (q1 - q0) = c(q1) - c(q0): the constraints hold to rounding for any h. Multiplying the
first row with q1 - q0 gives T1 - T0 + gbar . (q1 - q0) = 0: the energy error is that of the mean
gradient. The velocity is tangent at the middle of each step, C(qm) (v0 + v1)/2 = 0, and at the
nodes up to O(h^2).

Means of the gradient of a potential along the straight step from q0 to q1.

The work of such a mean along the step, gbar . (q1 - q0), stands for V(q1) - V(q0); how well it does
is how well an energy-stable step keeps the energy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ...integrators.method import Scalar, State, chosen
from ...solvers.newton import Newton
from ...solvers.root import root

# gbar (n,) of potential(q) () from q0 (n,) to q1 (n,), in units of the potential per q.
MeanGradient = Callable[[Callable, jax.Array, jax.Array], jax.Array]


def gauss_mean(
    points: int, potential: Callable, q0: Float[Array, " n"], q1: Float[Array, " n"]
) -> Float[Array, " n"]:
    """Gauss quadrature with s points: gbar = sum_g w_g grad V(q0 + xi_g (q1 - q0)).

    Exact for polynomials V of degree 2s; else the energy error of a run falls with h^2s. ValueError
    for less than one point.
    """
    nodes, weights = np.polynomial.legendre.leggauss(points)
    gradients = (jax.grad(potential)(q0 + float(1 + x) / 2 * (q1 - q0)) for x in nodes)
    return sum((float(w) / 2 * g for w, g in zip(weights, gradients, strict=True)), 0 * q0)


def discrete_gradient(
    potential: Callable, q0: Float[Array, " n"], q1: Float[Array, " n"]
) -> Float[Array, " n"]:
    """Gonzalez' discrete gradient: grad V at the middle, corrected along the step.

    gbar = g + (V(q1) - V(q0) - g . d) d / |d|^2 with d = q1 - q0, so that gbar . d is the change of
    V for every V. Gonzalez, Journal of Nonlinear Science 6, 1996.
    """
    d, middle = q1 - q0, (q0 + q1) / 2
    square = jnp.sum(d * d)
    g = jax.grad(potential)(middle)
    # The numerator is of order |d|^3. Where that is below rounding the correction would be
    # nothing but rounding, divided by |d|.
    smallest = jnp.finfo(q0.dtype).eps ** (2 / 3) * jnp.sum(middle * middle)
    tiny = jax.lax.stop_gradient(square <= smallest)
    rest = potential(q1) - potential(q0) - jnp.sum(g * d)
    return g + jnp.where(tiny, 0, rest) / jnp.where(tiny, 1, square) * d


class ConstrainedProblem(NamedTuple):
    """A mechanical system in redundant coordinates q (n,), in SI units.

    kinetic_energy(v) (): v . M v / 2 with M constant, positive definite where the constraints leave
    freedom. constraint(q) (m,): quadratic. potential(q) (): any.
    """

    kinetic_energy: Callable[[jax.Array], jax.Array]
    constraint: Callable[[jax.Array], jax.Array]
    potential: Callable[[jax.Array], jax.Array]


def start(problem: ConstrainedProblem, q: Float[Array, " n"], v: Float[Array, " n"]) -> State:
    """The state at y = (q, v), q (n,) with c(q) = 0 and v (n,) with C v = 0.

    It remembers v1 - v0 and h mu of the last step (n + m,), where Newton's method begins.
    """
    return State((q, v), jnp.zeros_like(jnp.concatenate((v, problem.constraint(q)))))


def step(
    problem: ConstrainedProblem, mean: MeanGradient, state: State, h: Scalar
) -> tuple[State, Bool[Array, ""]]:
    """The state h (s) later, and whether the step was solved (); it stays where it was not.

    Of order 2 in the state; in the energy exact, or of the order of the mean gradient.
    """
    (q0, v0), guess = state
    n = len(q0)

    # The change of v is the unknown: that of q would lose its digits in a division by h^2.
    def moved(change: jax.Array) -> jax.Array:
        return q0 + h * (v0 + change / 2)

    def residual(x: jax.Array) -> jax.Array:
        q1 = moved(x[:n])
        reaction = jax.vjp(problem.constraint, (q0 + q1) / 2)[1](x[n:])[0]
        pull = h * mean(problem.potential, q0, q1)
        balance = jax.grad(problem.kinetic_energy)(x[:n]) - reaction + pull
        return jnp.concatenate((balance, problem.constraint(q1) / h))

    x, solved = root(residual, guess, Newton())
    after = State((moved(x[:n]), v0 + x[:n]), x)
    return chosen(solved, after, state), solved
