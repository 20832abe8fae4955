"""Accelerations and velocities under constraints: the equations of index 1.

    M a = tau - bias + A^T lambda,    A a + c = 0

With Y = M^-1 A^T and the Gram matrix G = A Y the multipliers solve G lambda = -c - A a_0, where a_0
is the unconstrained acceleration, and a = a_0 + Y lambda. Redundant constraints make G singular;
then the multipliers of minimum norm are taken. No rank is decided, which could change between
evaluations, and the accelerations do not depend on it. Derivatives are those of the solution, by
one solve with the same matrices. Reuss 2002, (32).

The blocks, of `Balance.solve(f, b)`, with nu = -lambda:

    M    A^T     x        f         x and nu solve both rows, if b is in the range of A.
              .      =              nu is in the range of A: of all that solve, the smallest.
    A    0       nu       b         The matrix is symmetric: derivatives transpose it as itself.

All of this holds for derivatives as well: `_turned` adds what the smallest nu changes by where the
range of A rotates, on which the equations say nothing; its value is zero. Both ways to solve, by
the Gram matrix and on the null space, give the same x and nu where the rows of A are independent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..dynamics.crba import crba
from ..dynamics.rnea import rnea
from ..solvers.linear import factor_from_tips, minimum_norm, product
from ..system.kinematic_tree import Tree
from .equations import Equations, equations
from .friction import friction_forces, slips, with_friction

Solver = Callable[[jax.Array, jax.Array], tuple[jax.Array, jax.Array]]


class Balance(eqx.Module):
    """The linear equations M x + A^T nu = f, A x = b at a configuration.

    M (nv, nv); A (m, nv).
    """

    M: Float[Array, "nv nv"]
    A: Float[Array, "m nv"]

    def solve(
        self, f: Float[Array, " nv"], b: Float[Array, " m"]
    ) -> tuple[Float[Array, " nv"], Float[Array, " m"]]:
        """x (nv,) and nu (m,), differentiated by the equations they solve."""
        M, A = jax.lax.stop_gradient((self.M, self.A))
        # With M = U U^T: half = U^-1 A^T, and the Gram matrix A M^-1 A^T is half^T half.
        U = factor_from_tips(M)

        def triangular(given: jax.Array, trans: int = 0) -> jax.Array:
            return jax.scipy.linalg.solve_triangular(U, given, trans=trans)

        half = triangular(A.T)
        inverse = minimum_norm(product(half.T, half), half)

        def solved(f: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
            free = triangular(f)
            nu = inverse(product(half.T, free) - b)
            return triangular(free - product(half, nu), 1), nu

        return self._differentiated(solved, f, b)

    def _differentiated(
        self, solved: Solver, f: Float[Array, " nv"], b: Float[Array, " m"]
    ) -> tuple[Float[Array, " nv"], Float[Array, " m"]]:
        n, (M, A) = len(f), (self.M, self.A)

        def balance(x: jax.Array) -> jax.Array:
            x, nu = x[:n], x[n:]
            return jnp.concatenate((product(M, x) + product(A.T, nu), product(A, x)))

        def inverse(_: Any, known: jax.Array) -> jax.Array:
            return jnp.concatenate(solved(known[:n], known[n:]))

        known = jnp.concatenate((f, b))
        x = jax.lax.custom_linear_solve(balance, known, inverse, symmetric=True)
        x, nu = x[:n], x[n:]
        return x, nu + self._turned(nu, solved)

    def _turned(self, nu: Float[Array, " m"], solved: Solver) -> Float[Array, " nv"]:
        """Zero, with the derivative of the minimum-norm nu as the range of A rotates.

        The equations themselves leave it open. With A y = nu it is the part of dA y outside the
        range of A (Golub and Pereyra 1973).
        """
        A = jax.lax.stop_gradient(self.A)
        y, _ = solved(jnp.zeros_like(A, shape=A.shape[1]), jax.lax.stop_gradient(nu))
        change = product(self.A, y) - product(A, y)
        into, _ = solved(jnp.zeros_like(y), change)
        return change - product(A, into)


class IndependentVelocities(Balance):
    """The same equations on the null space of A, whose rows must be independent.

    With A N = 0, N (nv, nv - m), and x_p = A^+ b: N^T M N z = N^T (f - M x_p), x = x_p + N z.
    """

    def solve(
        self, f: Float[Array, " nv"], b: Float[Array, " m"]
    ) -> tuple[Float[Array, " nv"], Float[Array, " m"]]:
        M, A = jax.lax.stop_gradient((self.M, self.A))
        m = len(A)
        Q, R = jnp.linalg.qr(A.T, mode="complete")
        range_, N, R = Q[:, :m], Q[:, m:], R[:m]

        def triangular(given: jax.Array, trans: int) -> jax.Array:
            return jax.scipy.linalg.solve_triangular(R, given, trans=trans)

        def solved(f: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
            x = product(range_, triangular(b, 1))
            rest = product(N.T, f - product(M, x))
            reduced = jax.scipy.linalg.cho_factor(product(N.T, product(M, N)))
            x = x + product(N, jax.scipy.linalg.cho_solve(reduced, rest))
            return x, triangular(product(range_.T, f - product(M, x)), 0)

        return self._differentiated(solved, f, b)


def constrained_acceleration(
    tree: Tree,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    tau: Float[Array, " nv"],
    wrench: Float[Array, "nb 6"] | None = None,
    drift: Callable[[Equations], jax.Array | None] = lambda equations: None,
    form: type[Balance] = Balance,
) -> tuple[Float[Array, " nv"], Float[Array, " m"]]:
    """The acceleration (nv,) and the multipliers (m,) under tau (nv,) and body wrenches (nb, 6).

    q (nq,), v (nv,). drift: the right-hand side (m,) of A a + c = drift, from the equations; None
    for zero. form: how the linear equations are solved.
    """
    constraints = equations(tree, q)
    effort = tau - rnea(tree, q, v, jnp.zeros_like(v), wrench)
    c, wanted = constraints.bias(v), drift(constraints)
    required = -c if wanted is None else wanted - c
    equilibrium = form(crba(tree, q), constraints.jacobian())
    a, nu = equilibrium.solve(effort, required)
    if not with_friction(tree.system):
        return a, -nu
    S = equations(slips(tree), q).jacobian()
    still = jnp.zeros_like(required)
    push, unit = jax.vmap(lambda s: equilibrium.solve(s, still))(S)
    f = friction_forces(tree.system, product(S, v), -nu, -unit)
    return a + product(f, push), -nu - product(f, unit)


def consistent_velocity(
    tree: Tree, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> Float[Array, " nv"]:
    """The velocity (nv,) on the constraints that is nearest to v (nv,) in the metric of M."""
    constraints = equations(tree, q)
    M, A = crba(tree, q), constraints.jacobian()
    change, _ = Balance(M, A).solve(jnp.zeros_like(v), constraints.rate(v))
    return v - change
