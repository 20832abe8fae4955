"""The discrete Lyapunov equation X = A X A' + W, by doubling.

Its solution is the sum of A^k W A'^k over k >= 0. With X_0 = W, A_0 = A and

    X_{j+1} = X_j + A_j X_j A_j',    A_{j+1} = A_j^2

X_j has 2^j terms of it: the number of correct digits doubles with each turn. Smith 1968, SIAM
Journal on Applied Mathematics 16, equation 2.5.
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
    stable = _doubled(jax.lax.stop_gradient(A), jnp.zeros_like(W))[1]

    def residual(X: jax.Array) -> jax.Array:
        return X - product(product(A, X), A.T)

    def solve(_: object, W: jax.Array) -> jax.Array:
        return _doubled(A, W)[0]

    def transposed(_: object, W: jax.Array) -> jax.Array:
        return _doubled(A.T, W)[0]

    X = jax.lax.custom_linear_solve(residual, W, solve, transposed)
    return jnp.where(stable, X, jnp.nan), stable


def _doubled(A: jax.Array, W: jax.Array) -> tuple[jax.Array, jax.Array]:
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
