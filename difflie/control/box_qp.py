"""Quadratic problems in a box, by projected Newton steps (Bertsekas 1982; Tassa et al. 2014)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

_MOST, _LENGTHS = 30, 8


def box_qp(
    H: Float[Array, "n n"],
    g: Float[Array, " n"],
    lower: Float[Array, " n"],
    upper: Float[Array, " n"],
) -> tuple[Float[Array, " n"], Float[Array, " n"], Float[Array, "n n"]]:
    """x (n,) = argmin g.x + x.H x / 2 in lower <= x <= upper, for positive definite H.

    Also which entries are free, 1, or at a bound, 0, as numbers (n,); and U (n, n) with U U^T the
    inverse of H within the free ones, with zeros elsewhere. Not finite where H is not positive
    definite.
    """
    unit = jnp.eye(g.shape[0], dtype=g.dtype)
    lengths = jnp.asarray(0.5, g.dtype) ** jnp.arange(_LENGTHS, dtype=g.dtype)

    def free_at(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        slope = g + H @ x
        held = ((x <= lower) & (slope > 0)) | ((x >= upper) & (slope < 0))
        return jnp.where(held, 0, 1).astype(g.dtype), slope

    def factor(free: jax.Array) -> jax.Array:
        return jax.lax.linalg.cholesky(
            H * jnp.outer(free, free) + unit * (1 - free)[None], symmetrize_input=False
        )

    def solved(L: jax.Array, b: jax.Array) -> jax.Array:
        y = jax.lax.linalg.triangular_solve(L, b, left_side=True, lower=True)
        return jax.lax.linalg.triangular_solve(L, y, left_side=True, lower=True, transpose_a=True)

    def attempt(state: tuple) -> tuple:
        x, free, _, count = state
        _, slope = free_at(x)
        step = -solved(factor(free), (free * slope)[:, None])[:, 0]
        tries = jnp.clip(x[None] + lengths[:, None] * step[None], lower[None], upper[None])
        moved = tries - x[None]
        gain = moved @ slope + jnp.sum(moved * (moved @ H), axis=1) / 2
        good = gain <= 1e-4 * (moved @ slope)
        chosen = jnp.sum(jnp.cumsum(jnp.where(good, 1, 0)) == 0)
        best = jnp.minimum(chosen, _LENGTHS - 1)
        after = jnp.where(jnp.any(good), tries[best], x)
        free_after, _ = free_at(after)
        full = jnp.all(good[0] & (jnp.abs(tries[0] - x - step) <= 0))
        same = jnp.all(free_after == free)
        done = (full & same) | ~jnp.any(good) | (jnp.max(jnp.abs(after - x)) <= 0)
        return after, free_after, done, count + 1

    x = jnp.clip(jnp.zeros_like(g), lower, upper)
    start = x, free_at(x)[0], jnp.zeros((), bool), jnp.zeros((), jnp.int32)
    x, free, _, _ = jax.lax.while_loop(lambda s: ~s[2] & (s[3] < _MOST), attempt, start)
    return x, free, root_of_inverse(factor(free)) * free[:, None] * free


def root_of_inverse(L: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """U (n, n) = L^-T, upper triangular: U U^T is the inverse of L L^T."""
    unit = jnp.eye(L.shape[0], dtype=L.dtype)
    return jax.lax.linalg.triangular_solve(L, unit, left_side=True, lower=True).T
