"""Linear models: their linear-quadratic regulators, and what commands can reach.

Regulators, of one model for ever and of a sequence of models:

    minimise  sum_k (x_k' Q x_k + 2 x_k' N u_k + u_k' R u_k) / 2,    x_{k+1} = A x_k + B u_k

The best command is u = -K x, and the cost from x on is x' P x / 2. Anderson and Moore, Optimal
Control: Linear Quadratic Methods, 1990, sections 2.4 and 3.3.

The controllability Gramian

    W = sum_k A^k B B' A'^k

The states that commands u_0, u_1, ... with the sum of |u_k|^2 at most 1 lead to, from zero, are the
ellipsoid x' W^-1 x <= 1. W is singular where some state cannot be reached. Anderson and Moore,
Optimal Control: Linear Quadratic Methods, 1990, appendix B.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float
from numpy.typing import ArrayLike

from ..solvers.linear import product
from ..system.validation import real_numbers
from .matrix_equations import cost_to_go, dare, gain, lyapunov

# Relative to the largest entry; derivatives of costs are symmetric up to rounding.
_TOLERANCE = 1e-4


def matrices(where: str, **given: tuple[Any, str]) -> list[jax.Array]:
    """The matrices, passed as name = (value, axes), in the precision of the first.

    axes names each axis by a letter: "xu" is (nx, nu), "nxu" also has a leading axis (n,); what
    has the same letter has the same size. Raises TypeError for what are no real numbers, and
    ValueError for other shapes and for concrete numbers that are not finite.
    """
    sizes: dict[str, int] = {}
    made: list[jax.Array] = []
    for name, (value, axes) in given.items():
        matrix = real_numbers(where, name, value)
        dtype = made[0].dtype if made else jnp.promote_types(matrix.dtype, jnp.float32)
        known = matrix.ndim == len(axes)
        fits = known and all(
            n == sizes.setdefault(axis, n) for n, axis in zip(matrix.shape, axes, strict=True)
        )
        if not fits:
            needed = ", ".join(
                str(sizes.get(axis, {"n": "n"}.get(axis, f"n{axis}"))) for axis in axes
            )
            raise ValueError(f"{where}: {name} has shape {matrix.shape}, needed is ({needed})")
        if not isinstance(matrix, Tracer) and not np.isfinite(np.asarray(matrix)).all():
            raise ValueError(f"{where}: {name} has entries that are not finite")
        made.append(matrix.astype(dtype))
    return made


def check_symmetric(where: str, name: str, matrix: jax.Array) -> None:
    """Raises ValueError if a concrete matrix (..., n, n) is not symmetric."""
    if isinstance(matrix, Tracer):
        return
    values = np.asarray(matrix)
    skew = np.abs(values - np.swapaxes(values, -1, -2)).max(initial=0)
    if skew > _TOLERANCE * np.abs(values).max(initial=0):
        raise ValueError(
            f"{where}: {name} is not symmetric, by {skew:.3g}; give ({name} + {name}.T) / 2"
        )


def check_definite(where: str, name: str, matrix: jax.Array) -> None:
    """Raises ValueError if a concrete matrix (..., n, n) is not symmetric and positive definite."""
    check_symmetric(where, name, matrix)
    if isinstance(matrix, Tracer):
        return
    least = np.linalg.eigvalsh(np.asarray(matrix, float)).min(initial=np.inf)
    if not least > 0:
        raise ValueError(
            f"{where}: {name} has the eigenvalue {least:.3g} and must be positive definite, since "
            "commands that cost nothing have no limit"
        )


class Regulator(NamedTuple):
    """u = -K x with K (nu, nx), the cost matrix P (nx, nx), and whether there is one ().

    K is in units of u over x, P in those of the cost over x^2. Where converged is False no command
    stabilises the model, or the cost does not see a part of it that does not decay by itself; K and
    P are NaN then.
    """

    K: Float[Array, "u x"]
    P: Float[Array, "x x"]
    converged: Bool[Array, ""]


class VaryingRegulator(NamedTuple):
    """u_k = -K_k x_k with K (n, nu, nx), and the cost matrices P (n + 1, nx, nx), final last.

    In units as of `Regulator`.
    """

    K: Float[Array, "n u x"]
    P: Float[Array, "n+1 x x"]


def lqr(
    A: ArrayLike, B: ArrayLike, Q: ArrayLike, R: ArrayLike, N: ArrayLike | None = None
) -> Regulator:
    """The regulator u = -K x of x_{k+1} = A x_k + B u_k that costs least for ever.

    The cost is sum_k (x_k' Q x_k + 2 x_k' N u_k + u_k' R u_k) / 2; from x on it is x' P x / 2.
    A (nx, nx), B (nx, nu), as `linearize` returns them for one knot; Q (nx, nx) positive
    semidefinite, R (nu, nu) positive definite, N (nx, nu), zero if None. P solves the discrete
    algebraic Riccati equation. All in the precision of A. Differentiable with respect to all of
    them, in both modes, by the implicit function theorem; for a batch use `jax.vmap`.

    Raises ValueError for a wrong shape and, where they are concrete, for numbers that are not
    finite, for a Q that is not symmetric, and for an R that is not symmetric and positive definite.

    >>> cart = dl.chain([dl.Body(name="cart", joint=dl.Prismatic(axis=(1, 0, 0)), mass=2.0)])
    >>> A, B = dl.linearize(cart, [0.0], [0.0], dt=0.1)
    >>> print(dl.control.lqr(A, B, np.eye(2), np.eye(1)).K.round(3))
    [[0.946 2.163]]
    """
    N = np.zeros(np.shape(B)) if N is None else N
    given = matrices("lqr", A=(A, "xx"), B=(B, "xu"), Q=(Q, "xx"), R=(R, "uu"), N=(N, "xu"))
    check_symmetric("lqr", "Q", given[2])
    check_definite("lqr", "R", given[3])
    return _regulator(*given)


@jax.jit
def _regulator(A: jax.Array, B: jax.Array, Q: jax.Array, R: jax.Array, N: jax.Array) -> Regulator:
    P, converged = dare(A, B, Q, R, N)
    return Regulator(gain(P, A, B, R, N), P, converged)


def tvlqr(
    A: ArrayLike,
    B: ArrayLike,
    Q: ArrayLike,
    R: ArrayLike,
    final: ArrayLike,
    N: ArrayLike | None = None,
) -> VaryingRegulator:
    """The regulator of x_{k+1} = A_k x_k + B_k u_k that costs least over n steps.

    The cost is that of `lqr`, with the matrices of each step. A (n, nx, nx), B (n, nx, nu), as
    `linearize` returns them along a trajectory, whose deviation is x; Q (n, nx, nx), R (n, nu, nu),
    N (n, nx, nu), or without the leading axis if they are the same in all steps; final (nx, nx):
    the cost x' final x / 2 after the last. Otherwise as `lqr`. By Riccati's recursion, backwards.

    Raises ValueError as `lqr`.
    """
    steps = np.shape(A)[:1]
    N = np.zeros(np.shape(B)) if N is None else N
    Q, R, N = (_for_all(steps, a) for a in (Q, R, N))
    given = {"A": (A, "nxx"), "B": (B, "nxu"), "Q": (Q, "nxx"), "R": (R, "nuu"), "N": (N, "nxu")}
    *along, final = matrices("tvlqr", **given, final=(final, "xx"))
    check_symmetric("tvlqr", "Q", along[2])
    check_symmetric("tvlqr", "final", final)
    check_definite("tvlqr", "R", along[3])
    return _varying(along, final)


def _for_all(steps: tuple[int, ...], matrix: Any) -> Any:
    """The matrix with a leading axis, if it has none."""
    if np.ndim(matrix) != 2:
        return matrix
    return jnp.broadcast_to(jnp.asarray(matrix), (*steps, *np.shape(matrix)))


@jax.jit
def _varying(along: list[jax.Array], final: jax.Array) -> VaryingRegulator:
    def earlier(P: jax.Array, step: list[jax.Array]) -> tuple[jax.Array, tuple]:
        A, B, Q, R, N = step
        before = cost_to_go(P, A, B, Q, R, N)
        return before, (gain(P, A, B, R, N), before)

    _, (K, P) = jax.lax.scan(earlier, final, along, reverse=True)
    return VaryingRegulator(K, jnp.concatenate((P, final[None])))


class Gramian(NamedTuple):
    """W (nx, nx), and whether the model is stable (); if not, the sum has no end and W is NaN.

    W is in the unit of x squared, for commands in their unit.
    """

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
