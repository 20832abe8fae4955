"""Discrete Lyapunov and algebraic Riccati equations, by doubling.

The Lyapunov equation X = A X A' + W: its solution is the sum of A^k W A'^k over k >= 0. With X_0 =
W, A_0 = A and

    X_{j+1} = X_j + A_j X_j A_j',    A_{j+1} = A_j^2

X_j has 2^j terms of it: the number of correct digits doubles with each turn. Smith 1968, SIAM
Journal on Applied Mathematics 16, equation 2.5.

The algebraic Riccati equation, by structure-preserving doubling:

    P = A' P A - (A' P B + N) (R + B' P B)^-1 (B' P A + N') + Q                               (1)

Completing the square removes N: A_0 = A - B R^-1 N', Q_0 = Q - N R^-1 N'. With G_0 = B R^-1 B', H_0
= Q_0 and

    A_{j+1} = A_j (1 + G_j H_j)^-1 A_j
    G_{j+1} = G_j + A_j (1 + G_j H_j)^-1 G_j A_j'
    H_{j+1} = H_j + A_j' H_j (1 + G_j H_j)^-1 A_j

H_j is the cost to go of 2^j steps, and tends to P; A_j tends to zero like the 2^j-th power of the
closed loop, if and only if that is stable. Chu, Fan, Lin and Wang 2004, International Journal of
Control 77, algorithm 2.2 (for one period).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..solvers.linear import product

# So many doublings sum more terms than a rate of decay that differs from 1 in double precision has.
_MOST = 60


def lyapunov(
    A: Float[Array, "x x"], W: Float[Array, "x x"]
) -> tuple[Float[Array, "x x"], Bool[Array, ""]]:
    """The X (n, n) of X = A X A' + W, and whether A is stable (), its eigenvalues within 1.

    If not, X is NaN. Differentiated by the implicit function theorem, in both modes.
    """
    stable = _sum_by_doubling(jax.lax.stop_gradient(A), jnp.zeros_like(W))[1]

    def residual(X: jax.Array) -> jax.Array:
        return X - product(product(A, X), A.T)

    def solve(_: object, W: jax.Array) -> jax.Array:
        return _sum_by_doubling(A, W)[0]

    def transposed(_: object, W: jax.Array) -> jax.Array:
        return _sum_by_doubling(A.T, W)[0]

    X = jax.lax.custom_linear_solve(residual, W, solve, transposed)
    return jnp.where(stable, X, jnp.nan), stable


def _sum_by_doubling(A: jax.Array, W: jax.Array) -> tuple[jax.Array, jax.Array]:
    """X by doubling, and whether the powers of A vanish ()."""
    small = float(jnp.finfo(A.dtype).eps)

    def more(state: tuple) -> jax.Array:
        turns, power, _ = state
        size = jnp.linalg.norm(power)
        return (turns < _MOST) & (size > small) & (size < 1 / small**2)

    def turn(state: tuple) -> tuple:
        turns, power, X = state
        return turns + 1, product(power, power), X + product(product(power, X), power.T)

    _, power, X = jax.lax.while_loop(more, turn, (0, A, W))
    return X, jnp.linalg.norm(power) <= small


def gain(P: jax.Array, A: jax.Array, B: jax.Array, R: jax.Array, N: jax.Array) -> jax.Array:
    """The K (nu, nx) of u = -K x, the best command for the cost to go x' P x / 2 after it."""
    return jnp.linalg.solve(R + product(B.T, product(P, B)), product(B.T, product(P, A)) + N.T)


def cost_to_go(
    P: jax.Array, A: jax.Array, B: jax.Array, Q: jax.Array, R: jax.Array, N: jax.Array
) -> jax.Array:
    """The cost to go (nx, nx) one step earlier: the right-hand side of (1)."""
    K = gain(P, A, B, R, N)
    before = Q + product(A.T, product(P, A)) - product(product(A.T, product(P, B)) + N, K)
    return (before + before.T) / 2


def dare(
    A: Float[Array, "x x"],
    B: Float[Array, "x u"],
    Q: Float[Array, "x x"],
    R: Float[Array, "u u"],
    N: Float[Array, "x u"],
) -> tuple[Float[Array, "x x"], Bool[Array, ""]]:
    """The stabilising solution P (nx, nx) of (1), and whether there is one ().

    If not, P is NaN. It is differentiated by the implicit function theorem, in both modes: with
    the closed loop F = A - B K, dP = F' dP F + W, where W is the derivative of (1) at constant P.
    """
    P, found = _doubled(*jax.lax.stop_gradient((A, B, Q, R, N)))
    return jnp.where(found, _implicit(P, A, B, Q, R, N), jnp.nan), found


@jax.custom_jvp
def _implicit(P: jax.Array, *equation: jax.Array) -> jax.Array:
    """P, as a function of the equation (A, B, Q, R, N) that it solves."""
    return P


@_implicit.defjvp
def _(primals: tuple, tangents: tuple) -> tuple[jax.Array, jax.Array]:
    P, *equation = primals
    P = _implicit(P, *equation)
    A, B, _, R, N = equation
    _, W = jax.jvp(lambda *equation: cost_to_go(P, *equation), tuple(equation), tangents[1:])
    F = A - product(B, gain(P, A, B, R, N))
    return P, lyapunov(F.T, W)[0]


def _doubled(
    A: jax.Array, B: jax.Array, Q: jax.Array, R: jax.Array, N: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """P by doubling, and whether the closed loop is stable and P finite ()."""
    eps, one = float(jnp.finfo(A.dtype).eps), jnp.eye(len(A), dtype=A.dtype)
    across = jnp.linalg.solve(R, N.T)
    along = jnp.linalg.solve(R, B.T)
    start = A - product(B, across), product(B, along), Q - product(N, across)

    def more(state: tuple) -> jax.Array:
        turns, change, (A, _, H) = state
        moving = (change > eps * jnp.linalg.norm(H)) | (jnp.linalg.norm(A) > eps)
        return (turns < _MOST) & moving & jnp.isfinite(change)

    def turn(state: tuple) -> tuple:
        turns, _, (A, G, H) = state
        width = len(A)
        solved = jnp.linalg.solve(one + product(G, H), jnp.concatenate((A, G), axis=1))
        after, inner = solved[:, :width], solved[:, width:]
        G = G + product(A, product(inner, A.T))
        more = product(A.T, product(H, after))
        H = H + more
        change = jnp.linalg.norm(more)
        return turns + 1, change, (product(A, after), (G + G.T) / 2, (H + H.T) / 2)

    infinite = jnp.asarray(float(jnp.finfo(A.dtype).max), A.dtype)
    _, _, (power, _, P) = jax.lax.while_loop(more, turn, (0, infinite, start))
    return P, (jnp.linalg.norm(power) <= eps) & jnp.isfinite(P).all()
