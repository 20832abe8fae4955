"""The controllability Gramian: what commands of unit size can reach.

    W = sum_k A^k B B' A'^k

The states that commands u_0, u_1, ... with the sum of |u_k|^2 at most 1 lead to, from zero, are the
ellipsoid x' W^-1 x <= 1. W is singular where some state cannot be reached. Anderson and Moore,
Optimal Control: Linear Quadratic Methods, 1990, appendix B.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float
from numpy.typing import ArrayLike

from ..solvers.linear import product
from .lyapunov import lyapunov
from .matrices import matrices


class Gramian(NamedTuple):
    """W (nx, nx), and whether the model is stable (); if not, the sum has no end and W is NaN."""

    W: Float[Array, "x x"]
    stable: Bool[Array, ""]


def controllability_gramian(A: ArrayLike, B: ArrayLike) -> Gramian:
    """The Gramian W (nx, nx) of x_{k+1} = A x_k + B u_k: W = A W A' + B B'.

    A (nx, nx), B (nx, nu), as `linearize` returns them for one knot. Differentiable in both modes,
    by the implicit function theorem. Raises ValueError for a wrong shape, and for concrete numbers
    that are not finite.
    """
    return _gramian(*matrices("controllability_gramian", A=(A, "xx"), B=(B, "xu")))


@jax.jit
def _gramian(A: jax.Array, B: jax.Array) -> Gramian:
    return Gramian(*lyapunov(A, product(B, B.T)))


def finite_gramian(A: ArrayLike, B: ArrayLike) -> Float[Array, "x x"]:
    """The Gramian W (nx, nx) of n steps x_{k+1} = A_k x_k + B_k u_k, stable or not.

    A (n, nx, nx), B (n, nx, nu), as `linearize` returns them along a trajectory. With W_0 = 0 it is
    the last of W_{k+1} = A_k W_k A_k' + B_k B_k'. Raises ValueError for a wrong shape,
    and for concrete numbers that are not finite.
    """
    A, B = matrices("finite_gramian", A=(A, "nxx"), B=(B, "nxu"))
    return _finite(A, B)


@jax.jit
def _finite(A: jax.Array, B: jax.Array) -> jax.Array:
    def later(W: jax.Array, step: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        A, B = step
        return product(product(A, W), A.T) + product(B, B.T), None

    return jax.lax.scan(later, jnp.zeros_like(A[0]), (A, B))[0]
