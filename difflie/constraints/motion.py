"""Accelerations and velocities under constraints: the equations of index 1.

    M a = tau - bias + A^T lambda,    A a + c = 0

With Y = M^-1 A^T and the Gram matrix G = A Y the multipliers solve G lambda = -c - A a_0, where a_0
is the acceleration without constraints, and a = a_0 + Y lambda. Redundant equations make G
singular: of all multipliers that solve them the smallest are taken. There is no decision about a
rank, which would change from one evaluation to the next, and the accelerations do not depend on it.

Derivatives are those of the solution, by one solve with the same matrices. Reuss 2002, (32).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ..dynamics.crba import crba
from ..dynamics.rnea import rnea
from ..system.linkage import Linkage
from ..system.system import System
from .equations import Equations, equations
from .friction import friction_forces, slips, with_friction

Solver = Callable[[jax.Array, jax.Array], tuple[jax.Array, jax.Array]]


class Balance(eqx.Module):
    """The linear equations M x + A^T nu = f, A x = b at a configuration.

    M (nv, nv); A (m, nv).
    """

    M: jax.Array
    A: jax.Array

    def solve(self, f: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
        """x (nv,) and nu (m,), differentiated by the equations they solve."""
        M, A = jax.lax.stop_gradient((self.M, self.A))
        factor = jax.scipy.linalg.cho_factor(M)
        Y = jax.scipy.linalg.cho_solve(factor, A.T)
        inverse = minimum_norm(_product(A, Y))

        def solved(f: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
            free = jax.scipy.linalg.cho_solve(factor, f)
            nu = inverse(_product(A, free) - b)
            return free - _product(Y, nu), nu

        return self._differentiated(solved, f, b)

    def _differentiated(
        self, solved: Solver, f: jax.Array, b: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        n, (M, A) = len(f), (self.M, self.A)

        def product(x: jax.Array) -> jax.Array:
            x, nu = x[:n], x[n:]
            return jnp.concatenate((_product(M, x) + _product(A.T, nu), _product(A, x)))

        def inverse(_: Any, given: jax.Array) -> jax.Array:
            return jnp.concatenate(solved(given[:n], given[n:]))

        given = jnp.concatenate((f, b))
        x = jax.lax.custom_linear_solve(product, given, inverse, symmetric=True)
        x, nu = x[:n], x[n:]
        return x, nu + self._turned(nu, solved)

    def _turned(self, nu: jax.Array, solved: Solver) -> jax.Array:
        """Zero, with the derivative that the smallest nu has as the range of A turns.

        The equations themselves leave it open. With A y = nu it is the part of dA y out of the
        range of A (Golub and Pereyra 1973).
        """
        A = jax.lax.stop_gradient(self.A)
        y, _ = solved(jnp.zeros_like(A, shape=A.shape[1]), jax.lax.stop_gradient(nu))
        change = _product(self.A, y) - _product(A, y)
        into, _ = solved(jnp.zeros_like(y), change)
        return change - _product(A, into)


class IndependentVelocities(Balance):
    """The same equations on the null space of A, whose rows must be independent.

    With A N = 0 and x_p = A^+ b: N^T M N z = N^T (f - M x_p), x = x_p + N z.
    """

    def solve(self, f: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
        M, A = jax.lax.stop_gradient((self.M, self.A))
        m = len(A)
        Q, R = jnp.linalg.qr(A.T, mode="complete")
        range_, N, R = Q[:, :m], Q[:, m:], R[:m]

        def triangular(given: jax.Array, trans: int) -> jax.Array:
            return jax.scipy.linalg.solve_triangular(R, given, trans=trans)

        def solved(f: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
            x = _product(range_, triangular(b, 1))
            rest = _product(N.T, f - _product(M, x))
            reduced = jax.scipy.linalg.cho_factor(_product(N.T, _product(M, N)))
            x = x + _product(N, jax.scipy.linalg.cho_solve(reduced, rest))
            return x, triangular(_product(range_.T, f - _product(M, x)), 0)

        return self._differentiated(solved, f, b)


def constrained_acceleration(
    system: System,
    linkage: Linkage,
    q: jax.Array,
    v: jax.Array,
    tau: jax.Array,
    wrench: jax.Array | None = None,
    drift: Callable[[Equations], jax.Array | None] = lambda equations: None,
    form: type[Balance] = Balance,
) -> tuple[jax.Array, jax.Array]:
    """The acceleration (nv,) and the multipliers (m,) under tau (nv,) and body wrenches (nb, 6).

    drift of the equations, (m,): what A a + c is to be; None for zero. form: how they are solved.
    """
    here = equations(system, linkage, q)
    effort = tau - rnea(linkage, q, v, jnp.zeros_like(v), wrench)
    c, wanted = here.bias(v), drift(here)
    required = -c if wanted is None else wanted - c
    equilibrium = form(crba(linkage, q), here.jacobian())
    a, nu = equilibrium.solve(effort, required)
    if not with_friction(system):
        return a, -nu
    S = equations(slips(system), linkage, q).jacobian()
    still = jnp.zeros_like(required)
    push, unit = jax.vmap(lambda s: equilibrium.solve(s, still))(S)
    f = friction_forces(system, _product(S, v), -nu, -unit)
    return a + _product(f, push), -nu - _product(f, unit)


def consistent_velocity(system: System, linkage: Linkage, q: jax.Array, v: jax.Array) -> jax.Array:
    """The velocity (nv,) nearest to v in the metric of M that keeps the constraints."""
    here = equations(system, linkage, q)
    M, A = crba(linkage, q), here.jacobian()
    change, _ = Balance(M, A).solve(jnp.zeros_like(v), here.rate(v))
    return v - change


def _product(a: jax.Array, b: jax.Array) -> jax.Array:
    return jnp.matmul(a, b, precision=jax.lax.Precision.HIGHEST)


def minimum_norm(gram: jax.Array) -> Callable[[jax.Array], jax.Array]:
    """The smallest x (m,) with gram x = b, as a linear function of b (m,) in the range of gram.

    For a positive semidefinite gram (m, m), which is not differentiated. Eigenvalues s act by
    s / (s^2 + e^2) with e far below the largest, which leaves out what is rounding; a refinement
    makes up for what small ones lose by it.
    """
    m = len(gram)
    if not m:
        return lambda b: b
    eps = float(jnp.finfo(gram.dtype).eps)
    s, basis = jnp.linalg.eigh(jax.lax.stop_gradient(gram))
    e = eps**0.6 * jnp.maximum(s[-1], jnp.finfo(gram.dtype).tiny ** 0.25)
    weight = s / (s * s + e * e)

    def solved(b: jax.Array) -> jax.Array:
        return _product(basis, weight * _product(basis.T, b))

    def refined(b: jax.Array) -> jax.Array:
        x = solved(b)
        return x + solved(b - _product(basis, s * _product(basis.T, x)))

    return refined
