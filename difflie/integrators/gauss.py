"""Gauss methods on a manifold, in a chart centred at the half step, where they are symmetric.

With h the step and F_j the rates of the stages in the chart, y(t) = y_m . exp(theta(t)),

    delta   = h sum_j b_j F_j,    y_m = y . exp(delta / 2),    y' = y_m . exp(delta / 2)
    theta_i = h sum_j (a_ij - b_j / 2) F_j
    F_i     = dexp_{-theta_i}^-1 field(t + c_i h, y_m . exp(theta_i))

Seen from y' with the step -h these are the same equations, for a symmetric tableau: n steps forth
and n steps back return to the start, up to rounding. In the usual chart at y they do not, for more
than one stage. On a vector space it is the Runge-Kutta method of the tableau.
Hairer, Lubich and Wanner 2006, IV.8 and V.6; Zanna, Engoe and Munthe-Kaas 2001.
"""

from __future__ import annotations

import functools
import operator
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from ..solvers.newton import FixedPoint
from ..solvers.root import root
from . import tableaux
from .method import Scalar, State, TableauMethod, VectorField, in_precision_of, zero_tangent
from .tableau import SymmetricTableau


class SymmetricMethod(TableauMethod):
    """The time-symmetric method of a symmetric tableau; its memory is the rates F (s, n) of a step.

    The polynomial through these, extrapolated, is the initial guess of the next step.
    """

    time_symmetric: ClassVar[bool] = True
    implicit: ClassVar[bool] = True

    tableau: SymmetricTableau = eqx.field(static=True)

    def init(self, problem: VectorField, t: Scalar, y: Any, h: Scalar) -> State:
        rate, _ = ravel_pytree(zero_tangent(problem.manifold, y))
        return State(y, jnp.zeros((self.stages, *rate.shape), rate.dtype))

    def step(self, problem: VectorField, t: Scalar, state: State, h: Scalar) -> tuple[State, Any]:
        manifold, field, (y, memory) = problem.manifold, problem.field, state
        t, h = in_precision_of(y, t, h)
        _, tangent = ravel_pytree(zero_tangent(manifold, y))
        a, b, c = (np.asarray(x) for x in (self.tableau.a, self.tableau.b, self.tableau.c))

        def middle(rates: jax.Array) -> tuple[Any, Any]:
            """delta / 2 and y_m."""
            half = tangent(h * _sums(b[None] / 2, rates)[0])
            return half, manifold.retract(y, half)

        def again(rates: jax.Array) -> jax.Array:
            _, y_m = middle(rates)

            def rate(row: tuple) -> jax.Array:
                theta, c = row
                theta = tangent(theta)
                moved = field(t + c * h, manifold.retract(y_m, theta))
                return ravel_pytree(manifold.dexp_inv(theta, moved))[0]

            thetas = h * _sums(a - b / 2, rates)
            return jax.lax.map(rate, (thetas, jnp.asarray(c, h.dtype)))

        # Increments h F, in the units of y, measure the distance to the solution.
        guess = h * _sums(_continuation(c), memory)
        x, solved = root(
            lambda x: x - h * again(x.reshape(memory.shape) / h).ravel(),
            *(guess.ravel(), FixedPoint()),
        )
        rates = jnp.where(solved, x, 0).reshape(memory.shape) / h
        half, y_m = middle(rates)
        return State(manifold.retract(y_m, half), jax.lax.stop_gradient(rates)), solved


def _sums(coefficients: np.ndarray, rates: jax.Array) -> jax.Array:
    """sum_j c_ij k_j for c (r, s) and k (s, n)."""
    rows = [[float(c) * k for c, k in zip(row, rates, strict=True)] for row in coefficients]
    return jnp.stack([functools.reduce(operator.add, row) for row in rows])


def _continuation(c: np.ndarray) -> np.ndarray:
    """The values at the nodes 1 + c of the polynomial through values at the nodes c, (s, s)."""
    powers = np.arange(len(c))
    return (1 + c[:, None]) ** powers @ np.linalg.inv(c[:, None] ** powers)


class ImplicitMidpoint(SymmetricMethod):
    """Order 2, 1 stage: y' = y . exp(h k) with k the rate at the middle y . exp(h k / 2)."""

    tableau: ClassVar[SymmetricTableau] = tableaux.GAUSS2


class GaussLegendre4(SymmetricMethod):
    """Order 4, 2 stages."""

    tableau: ClassVar[SymmetricTableau] = tableaux.GAUSS4


class GaussLegendre6(SymmetricMethod):
    """Order 6, 3 stages."""

    tableau: ClassVar[SymmetricTableau] = tableaux.GAUSS6
