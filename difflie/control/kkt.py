"""The linear equations by which a solution moves, and their solution by a Riccati sweep.

With H the exact Hessian of the Lagrangian at each knot, D the steps and C the bounds, at each knot

    H d + D' lam' - lam + C' y + s = g,      D d - dx' = gap,      -dx_0 = start,
    C d - y / stiff = along  where a bound is active, else y = 0;  du = box where it is, else s = 0,

where lam acts on dx and s on du. The matrix of these equations is symmetric:

              d_k      dx_k+1    lam_k     lam_k+1   y_k            s_k
    d_k       H        .         -E'       D'        C' on          held          = g
    lam_k+1   D        -E        .         .         .              .             = gap
    y_k       C on     .         .         .         -1 / stiff     .             = along
    s_k       held     .         .         .         .              .             = box

E picks dx of d = (dx, du). Rows and columns of y and s that are not active hold 1 on the diagonal
and nothing else, so that the matrix is never singular for want of them. The last knot has dx
alone, the first one -dx_0 = start in the row of lam_0; of the entries z of the start, which are
free, lam_0 is zero (1 on the diagonal), or s_z holds them. `times` is the matrix, `solve` its
inverse: what one does to a block the other must undo, and `sensitivity` takes both for one linear
system, whose transpose is itself.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from .discretization import Discretization, Motion
from .linear_quadratic import with_bounds, with_exact_hessian
from .model import model_of
from .riccati import affine, factors

# Active bounds are equations up to this share of the largest entry of the Hessian.
_SLACK = 1e-10


class Solution(NamedTuple):
    """A motion, and its multipliers: costates (N + 1, nx), bounds (N, m) and, at the end, (m,).

    slope (N, nu), z_slope (nz,): the derivative of the Lagrangian by controls, and by z at the
    start, which are zero but at bounds of the box.
    """

    motion: Motion
    costates: jax.Array
    multipliers: tuple[jax.Array, jax.Array]
    slope: jax.Array
    z_slope: jax.Array


class Unknowns(NamedTuple):
    """Of the equations, and their right-hand sides, which have the same shapes.

    d (N, n), end (nx,): changes of points and controls, g at the right. lam (N, nx): of the next
    knots, gap at the right; lam_0 (nx,): start at the right. y (N, m), y_end (m,); s (N, nu), s_z
    (nz,): of the box, which is at the right.
    """

    d: jax.Array
    end: jax.Array
    lam: jax.Array
    lam_0: jax.Array
    y: jax.Array
    y_end: jax.Array
    s: jax.Array
    s_z: jax.Array


class Matrices(NamedTuple):
    """D, H (N, n, n), end_H; C (N, m, n), end_C; on, on_end, held, z_held: 1 where active."""

    D: jax.Array
    H: jax.Array
    end_H: jax.Array
    C: jax.Array
    end_C: jax.Array
    on: jax.Array
    on_end: jax.Array
    held: jax.Array
    z_held: jax.Array
    stiff: jax.Array

    def times(self, x: Unknowns) -> Unknowns:
        """The left-hand sides."""
        m, nx, nz = self, self.end_H.shape[0], x.s_z.shape[0]
        states = jnp.concatenate((x.d[1:, :nx], x.end[None]))
        back = jnp.concatenate((x.lam_0.at[nx - nz :].set(0.0)[None], x.lam))
        g = jnp.einsum("kij,kj->ki", m.H, x.d) + jnp.einsum("kij,ki->kj", m.D, x.lam)
        g = g + jnp.einsum("kmi,km->ki", m.C, m.on * x.y)
        g = g.at[:, :nx].add(-back[:-1]).at[:, nx:].add(m.held * x.s)
        g = g.at[0, nx - nz : nx].add(m.z_held * x.s_z)
        end = m.end_H @ x.end - x.lam[-1] + m.end_C.T @ (m.on_end * x.y_end)
        start = -x.d[0, :nx]
        dz = start[nx - nz :]
        start = start.at[nx - nz :].set(x.lam_0[nx - nz :])
        along = jnp.einsum("kmi,ki->km", m.C, x.d) - x.y / m.stiff
        at_end = m.end_C @ x.end - x.y_end / m.stiff
        return Unknowns(
            g,
            end,
            jnp.einsum("kij,kj->ki", m.D, x.d) - states,
            start,
            jnp.where(m.on > 0, along, x.y),
            jnp.where(m.on_end > 0, at_end, x.y_end),
            jnp.where(m.held > 0, x.d[:, nx:], x.s),
            jnp.where(m.z_held > 0, -dz, x.s_z),
        )

    def solve(self, b: Unknowns) -> Unknowns:
        """The unknowns for right-hand sides."""
        m, nx, nz = self, self.end_H.shape[0], b.s_z.shape[0]
        steps = b.d.shape[0]
        y, y_end = m.on * b.y, m.on_end * b.y_end
        stiff, stiff_end = m.stiff * m.on, m.stiff * m.on_end
        g = -b.d - jnp.einsum("kmi,km->ki", m.C, stiff * y)
        end_g = -b.end - m.end_C.T @ (stiff_end * y_end)
        H = m.H + jnp.einsum("kmi,km,kmj->kij", m.C, stiff, m.C)
        end_H = m.end_H + m.end_C.T @ (stiff_end[:, None] * m.end_C)
        # Controls at a bound are given: their columns move to the right-hand side.
        shift = jnp.concatenate((jnp.zeros((steps, nx), g.dtype), m.held * b.s), axis=1)
        free = jnp.concatenate((jnp.ones((steps, nx), g.dtype), 1 - m.held), axis=1)
        gap = -b.lam + jnp.einsum("kij,kj->ki", m.D, shift)
        reduced = free * (g + jnp.einsum("kij,kj->ki", H, shift))
        fixed = H * free[:, :, None] * free[:, None] + jax.vmap(jnp.diag)(1 - free)
        f = factors(m.D * free[:, None], fixed, end_H)
        start = (-b.lam_0).at[nx - nz :].set(0.0)
        d, end, lam = affine(f, gap, reduced, end_g, start, m.z_held * b.s_z, m.z_held == 0)
        d = d + shift
        y = stiff * (jnp.einsum("kmi,ki->km", m.C, d) - b.y) + (1 - m.on) * b.y
        y_end = stiff_end * (m.end_C @ end - b.y_end) + (1 - m.on_end) * b.y_end
        slope = g + jnp.einsum("kij,kj->ki", H, d) + jnp.einsum("kij,ki->kj", m.D, lam[1:])
        s = jnp.where(m.held > 0, -slope[:, nx:], b.s)
        s_z = jnp.where(m.z_held > 0, -slope[0, nx - nz : nx], b.s_z)
        lam_0 = lam[0].at[nx - nz :].set(b.lam_0[nx - nz :])
        return Unknowns(d, end, lam[1:], lam_0, y, y_end, s, s_z)


def matrices(knots: Discretization, s: Solution) -> Matrices:
    """Those at a solution."""
    model = model_of(knots, s.motion)
    none = [jnp.zeros_like(y) for y in s.multipliers]
    lq = with_bounds(model, knots.nz, (none[0], none[0]), (none[1], none[1]))
    lq = with_exact_hessian(knots, s.motion, s.costates, s.multipliers, lq)
    largest = jnp.maximum(jnp.max(jnp.abs(lq.H)), jnp.max(jnp.abs(lq.end_H)))
    stiff = (1 + largest) / jnp.maximum(_SLACK, 10 * jnp.finfo(largest.dtype).eps ** 0.75)
    active = [jnp.where(a != 0, 1.0, 0.0) for a in (*s.multipliers, s.slope, s.z_slope)]
    active = [a.astype(largest.dtype) for a in active]
    return Matrices(lq.D, lq.H, lq.end_H, model.along.C, model.end.C, *active, stiff)
