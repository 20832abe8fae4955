"""Linear-quadratic regulators: of one linear model for ever, and of a sequence of them.

    minimise  sum_k (x_k' Q x_k + 2 x_k' N u_k + u_k' R u_k) / 2,    x_{k+1} = A x_k + B u_k

The best command is u = -K x, and the cost from x on is x' P x / 2. Anderson and Moore, Optimal
Control: Linear Quadratic Methods, 1990, sections 2.4 and 3.3.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from numpy.typing import ArrayLike

from .dare import cost_to_go, dare, gain
from .matrices import check_definite, check_symmetric, matrices


class Regulator(NamedTuple):
    """u = -K x with K (nu, nx), the cost matrix P (nx, nx), and whether there is one ().

    Where converged is False no command stabilises the model, or the cost does not see a part of it
    that does not decay by itself; K and P are NaN then.
    """

    K: Float[Array, "u x"]
    P: Float[Array, "x x"]
    converged: Bool[Array, ""]


class VaryingRegulator(NamedTuple):
    """u_k = -K_k x_k with K (n, nu, nx), and the cost matrices P (n + 1, nx, nx), final last."""

    K: Float[Array, "n u x"]
    P: Float[Array, "n+1 x x"]


def lqr(
    A: ArrayLike, B: ArrayLike, Q: ArrayLike, R: ArrayLike, N: ArrayLike | None = None
) -> Regulator:
    """The regulator of x_{k+1} = A x_k + B u_k that costs least for ever; see above.

    A (nx, nx), B (nx, nu), as `linearize` returns them for one knot; Q (nx, nx) positive
    semidefinite, R (nu, nu) positive definite, N (nx, nu), zero if None. P solves the discrete
    algebraic Riccati equation. All in the precision of A. Differentiable with respect to all of
    them, in both modes, by the implicit function theorem; for a batch use `jax.vmap`.

    Raises ValueError for a wrong shape and, where they are concrete, for numbers that are not
    finite, for a Q that is not symmetric, and for an R that is not symmetric and positive definite.
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
    A: ArrayLike, B: ArrayLike, Q: ArrayLike, R: ArrayLike, final: Any, N: ArrayLike | None = None
) -> VaryingRegulator:
    """The regulator of x_{k+1} = A_k x_k + B_k u_k that costs least over n steps; see above.

    A (n, nx, nx), B (n, nx, nu), as `linearize` returns them along a trajectory, whose deviation is
    x; Q (n, nx, nx), R (n, nu, nu), N (n, nx, nu), or without the leading axis if they are the same
    in all steps; final (nx, nx): the cost x' final x / 2 after the last. Otherwise as `lqr`. By
    Riccati's recursion, backwards.

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
