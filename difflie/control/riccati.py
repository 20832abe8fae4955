"""The Riccati sweep: the best change of all controls in a quadratic model of a problem.

With the value of the rest of the horizon p.dx + dx.P dx / 2 at a knot, and dx' = gap + D d,

    q = g + D' (p + P gap),    Q = H + D' P D,    du = k + K dx = argmin q.d + d.Q d / 2

within the box of the controls. Where a bound is active, its row of K is zero. Li and Todorov 2004;
the box: Tassa, Mansard, Todorov 2014; the gaps: Mastalli et al. 2020 (Crocoddyl).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import native
from ..solvers.linear import inverse
from .box_qp import box_qp, root_of_inverse
from .linear_quadratic import MOST_IN_A_PROGRAM, LinearQuadratic, Sweep, loop


class Box(NamedTuple):
    """The bounds (N, nu) of du, and (nz,) of dz at the start."""

    lower: jax.Array
    upper: jax.Array
    z_lower: jax.Array
    z_upper: jax.Array


def riccati(lq: LinearQuadratic, box: Box | None, shift: Float[Array, ""]) -> Sweep:
    """The sweep from the end to the start; shift () is added to the diagonal of Q in du."""
    nx, nz, n = lq.nx, lq.nz, lq.steps
    unit = jnp.eye(lq.nu, dtype=lq.gap.dtype)
    best = native.kernel(_best_controls) if lq.nu <= MOST_IN_A_PROGRAM else _best_controls

    def turn(value: Any, row: Any) -> tuple[Any, Any]:
        (P, p), (gap, D, g, H, bounds, across) = value, row
        Dt = D.T if across is None else across
        Q = _symmetric(H + Dt @ (P @ D))
        # P is symmetric, and vectors times matrices use the rows of these as they lie in memory.
        q = g + (p + gap @ P) @ D
        Qxx, Qxu, Quu = Q[:nx, :nx], Q[:nx, nx:], Q[nx:, nx:] + shift * unit
        qx, qu = q[:nx], q[nx:]
        k, free, U = best(Quu, qu, bounds)
        Y = Qxu @ U
        K = -(U @ Y.T)
        P = Qxx - Y @ Y.T
        p = qx + Qxu @ k
        return (_symmetric(P), p), (k, K, free)

    bounds = None if box is None else (box.lower, box.upper)
    # XLA multiplies by a matrix much faster than by the transpose of one.
    across = jnp.swapaxes(lq.D, 1, 2) if nx + lq.nu > MOST_IN_A_PROGRAM else None
    rows = lq.gap, lq.D, lq.g, lq.H, bounds, across
    (P, p), (k, K, free) = loop(nx + lq.nu)(turn, (lq.end_H, lq.end_g), rows, n, reverse=True)
    dz = jnp.zeros(nz, P.dtype)
    if nz:
        # What is free at the start is best where the value is least.
        free_P, free_p = P[nx - nz :, nx - nz :], p[nx - nz :]
        lower, upper = (jnp.full_like(dz, s * jnp.inf) for s in (-1, 1))
        if box is not None:
            lower, upper = box.z_lower, box.z_upper
        dz = box_qp(free_P + shift * jnp.eye(nz, dtype=P.dtype), free_p, lower, upper)[0]
    fine = jnp.all(jnp.isfinite(k)) & jnp.all(jnp.isfinite(dz)) & jnp.all(jnp.isfinite(K))
    return Sweep(k, K, dz, free, fine)


def _best_controls(Q: jax.Array, q: jax.Array, bounds: Any) -> tuple[jax.Array, ...]:
    """As `box_qp`; bounds: None, or the lower and the upper ones."""
    if bounds is not None:
        return box_qp(Q, q, *bounds)
    U = root_of_inverse(jax.lax.linalg.cholesky(Q, symmetrize_input=False))
    return -(U @ (U.T @ q)), jnp.ones_like(q), U


def _symmetric(m: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """The matrix of its lower half; the entries above need not be computed."""
    return jnp.where(np.tri(m.shape[0], dtype=bool), m, m.T)


def inverse_of(a: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """The inverse (n, n) of a small matrix, by a native call."""
    return native.kernel(lambda a: inverse(a, len(a)))(a)


class Factors(NamedTuple):
    """The sweep of the matrices alone: D; P (N, nx, nx) of the next knot; K (N, nu, nx).

    inverse (N, nu, nu): of Q in du. first (nx, nx): P of the first knot.
    """

    D: jax.Array
    P: jax.Array
    K: jax.Array
    inverse: jax.Array
    first: jax.Array


def factors(D: jax.Array, H: jax.Array, end_H: jax.Array) -> Factors:
    """The matrices of a sweep, for any vectors (`affine`)."""
    nx = D.shape[1]

    def turn(P: jax.Array, row: Any) -> tuple[jax.Array, Any]:
        D, H = row
        Q = H + D.T @ P @ D
        across = inverse_of(Q[nx:, nx:])
        K = -across @ Q[nx:, :nx]
        before = Q[:nx, :nx] + Q[nx:, :nx].T @ K
        return (before + before.T) / 2, (P, K, across)

    rows = D, H
    first, (P, K, across) = loop(D.shape[2])(turn, end_H, rows, len(D), reverse=True)
    return Factors(D, P, K, across, first)


def affine(
    f: Factors,
    gap: Float[Array, "N nx"],
    g: Float[Array, "N n"],
    end_g: Float[Array, " nx"],
    start: Float[Array, " nx"],
    dz: Float[Array, " nz"],
    free: Float[Array, " nz"],
) -> tuple[Float[Array, "N n"], Float[Array, " nx"], Float[Array, "N1 nx"]]:
    """The solution d (N, n), dx_N (nx,), and its costates (N + 1, nx), linear in all vectors.

    start (nx,): dx_0 but for its end z, of which entries that are not free (nz,) are dz.
    """
    nx, nz = f.P.shape[1], dz.shape[0]

    def back(p: jax.Array, row: Any) -> tuple[jax.Array, Any]:
        D, P, K, across, gap, g = row
        q = g + D.T @ (p + P @ gap)
        return q[:nx] + K.T @ q[nx:], (-across @ q[nx:], p)

    rows = f.D, f.P, f.K, f.inverse, gap, g
    over, n = loop(f.D.shape[2]), len(f.D)
    p, (k, p_next) = over(back, end_g, rows, n, reverse=True)
    if nz:
        m = nx - nz
        start = start.at[m:].set(dz)
        pull = jnp.where(free, p[m:] + f.first[m:] @ start, 0.0)
        inside = jnp.outer(free, free)
        matrix = jnp.where(inside, f.first[m:, m:], jnp.eye(nz, dtype=p.dtype))
        start = start.at[m:].add(-inverse_of(matrix) @ pull)

    def forth(dx: jax.Array, row: Any) -> tuple[jax.Array, jax.Array]:
        D, K, gap, k = row
        d = jnp.concatenate((dx, k + K @ dx))
        return gap + D @ d, d

    end, d = over(forth, start, (f.D, f.K, gap, k), n)
    states = jnp.concatenate((d[1:, :nx], end[None]))
    costates = p_next + jnp.einsum("kij,kj->ki", f.P, states)
    return d, end, jnp.concatenate(((p + f.first @ start)[None], costates))
