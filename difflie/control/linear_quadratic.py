"""Linear-quadratic problems along a horizon: what every solver makes of a problem in a step.

minimise sum_k g_k.d_k + d_k.H_k d_k / 2 + g_N.dx_N + dx_N.H_N dx_N / 2, d_k = (dx_k, du_k) subject
to dx_{k+1} = gap_k + D_k d_k, dx_0 = (0, 0, dz) with dz free
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import native
from .discretization import Discretization, Motion, Point
from .model import Model

# Loops over larger matrices are made of products of XLA's.
MOST_IN_A_PROGRAM = 64


class LinearQuadratic(NamedTuple):
    """gap (N, nx), D (N, nx, n), g (N, n), H (N, n, n), n = nx + nu; end_g (nx,), end_H (nx, nx).

    start (nz,): shows by its size how many entries at the end of dx_0 are free.
    """

    gap: jax.Array
    D: jax.Array
    g: jax.Array
    H: jax.Array
    end_g: jax.Array
    end_H: jax.Array
    start: jax.Array

    @property
    def steps(self) -> int:
        return self.gap.shape[0]

    @property
    def nx(self) -> int:
        return self.gap.shape[1]

    @property
    def nu(self) -> int:
        return self.D.shape[2] - self.nx

    @property
    def nz(self) -> int:
        return self.start.shape[0]

    def at(self, d: Float[Array, "N n"], end: Float[Array, " nx"]) -> LinearQuadratic:
        """The same about d (N, n), and dx_N (nx,), of its own dynamics, which leave no gaps."""
        g = self.g + jnp.einsum("kij,kj->ki", self.H, d)
        return self._replace(g=g, end_g=self.end_g + self.end_H @ end, gap=0 * self.gap)

    def change(
        self, d: Float[Array, "N n"], end: Float[Array, " nx"]
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """The first and the second derivative () of the cost along d (N, n), and dx_N (nx,)."""
        slope = jnp.sum(self.g * d) + self.end_g @ end
        return slope, jnp.einsum("ki,kij,kj->", d, self.H, d) + end @ (self.end_H @ end)


class Sweep(NamedTuple):
    """k (N, nu), K (N, nu, nx); dz (nz,), the change of the start; fine (): whether all is finite.

    free (N, nu): 1 for controls within the box and 0 for those at a bound.
    """

    k: jax.Array
    K: jax.Array
    dz: jax.Array
    free: jax.Array
    fine: jax.Array


def with_bounds(model: Model, nz: int, along: Any, end: Any) -> LinearQuadratic:
    """The problem of a model with a function of the bounds added to the costs.

    along, end: its derivative (N, m), (m,) by the bounded entries, and its second one, diagonal.
    """
    g, H = _added(model.along, *along)
    end_g, end_H = _added(model.end, *end)
    return LinearQuadratic(model.gap, model.D, g, H, end_g, end_H, jnp.zeros(nz, g.dtype))


def _added(q: Any, first: jax.Array, second: jax.Array) -> tuple[jax.Array, jax.Array]:
    if not q.C.shape[-2]:
        return q.g, q.H
    C = q.C
    g = q.g + jnp.einsum("...mi,...m->...i", C, first)
    H = q.H + jnp.swapaxes(C, -1, -2) @ (second[..., None] * C)
    return g, H


def linear_rollout(
    lq: LinearQuadratic, sweep: Sweep
) -> tuple[Float[Array, "N n"], Float[Array, " nx"]]:
    """The changes d (N, nx + nu) and dx_N (nx,) in the linear model, under the sweep."""

    def turn(dx: jax.Array, row: Any) -> tuple[jax.Array, jax.Array]:
        gap, D, k, K = row
        d = jnp.concatenate((dx, k + K @ dx))
        return gap + D @ d, d

    start = jnp.concatenate((jnp.zeros(lq.nx - lq.nz, lq.gap.dtype), sweep.dz))
    rows = lq.gap, lq.D, sweep.k, sweep.K
    end, d = loop(lq.nx + lq.nu)(turn, start, rows, lq.steps)
    return d, end


def costates(lq: LinearQuadratic) -> tuple[Float[Array, "N1 nx"], Float[Array, "N nu"]]:
    """The multipliers (N + 1, nx) of the steps, p_k = g + D' p_{k+1}, and what is left for u.

    The latter (N, nu) is the derivative of the cost by the controls, if all gaps are zero.
    """

    def turn(p: jax.Array, row: Any) -> tuple[jax.Array, Any]:
        D, g = row
        slope = g + D.T @ p
        return slope[: lq.nx], (slope[: lq.nx], slope[lq.nx :])

    _, (p, slope) = loop(lq.nx + lq.nu)(turn, lq.end_g, (lq.D, lq.g), lq.steps, reverse=True)
    return jnp.concatenate((p, lq.end_g[None])), slope


def loop(size: int) -> Any:
    """How a loop over knots with matrices of that size is compiled, called as `native.scan`."""
    if size <= MOST_IN_A_PROGRAM:
        return native.scan
    return jax.lax.scan


def with_exact_hessian(
    knots: Discretization,
    motion: Motion,
    costates: Float[Array, "N1 nx"],
    multipliers: tuple[Float[Array, "N m"], Float[Array, " m1"]],
    lq: LinearQuadratic,
) -> LinearQuadratic:
    """The problem whose H is that of the Lagrangian, plus what bounds add in `lq`.

    In the local coordinates of each knot, d^2/dd^2 of

        cost(d) + costate . difference(x_{k+1}, step(d)) + multiplier . bounded(d).
    """
    x, u = motion
    k = jnp.arange(knots.steps, dtype=u.dtype)
    start, end = jax.tree.map(lambda a: a[:-1], x), jax.tree.map(lambda a: a[1:], x)
    last = jax.tree.map(lambda a: a[-1], x)
    directions = jnp.eye(knots.nx + knots.nu, dtype=u.dtype)
    column = native.kernel(_second) if knots.tree.topology.unrolled else _second
    over_directions = jax.vmap(column, (*7 * (None,), 0))
    rows = start, u, k, end, costates[1:], multipliers[0]
    extra = jax.vmap(over_directions, (None, *6 * (0,), None))(knots, *rows, directions)
    at_end = native.kernel(_second_at_end) if knots.tree.topology.unrolled else _second_at_end
    extra_end = jax.vmap(at_end, (None, None, None, 0))(
        knots, last, multipliers[1], directions[: knots.nx, : knots.nx]
    )
    symmetric = lambda a: (a + jnp.swapaxes(a, -1, -2)) / 2  # noqa: E731
    return lq._replace(H=lq.H + symmetric(extra), end_H=lq.end_H + symmetric(extra_end))


def _second(
    knots: Discretization,
    x: Point,
    u: Any,
    k: Any,
    end: Point,
    costate: Any,
    multiplier: Any,
    direction: Any,
) -> jax.Array:
    """The derivative (n,) of the gradient along a direction (n,), less Gauss-Newton's part."""

    r0, _ = knots.residuals(x, u, k)

    def lagrangian(d: jax.Array) -> jax.Array:
        moved, du = knots.retract(x, d[: knots.nx]), u + d[knots.nx :]
        after = knots.difference(end, knots.step(moved, du, k))
        r, w = knots.residuals(moved, du, k)
        # w r r'' is what Gauss-Newton's matrix lacks.
        value = costate @ after + (w * r0) @ r
        return value + multiplier @ knots.bounded(moved, du, k)

    return _along(lagrangian, direction)


def _second_at_end(knots: Discretization, x: Point, multiplier: Any, direction: Any) -> jax.Array:
    r0, _ = knots.final_residuals(x)

    def lagrangian(dx: jax.Array) -> jax.Array:
        moved = knots.retract(x, dx)
        r, w = knots.final_residuals(moved)
        return (w * r0) @ r + multiplier @ knots.final_bounded(moved)

    return _along(lagrangian, direction)


def _along(f: Any, direction: jax.Array) -> jax.Array:
    zero = jnp.zeros_like(direction)
    return jax.jvp(jax.grad(f), (zero,), (direction,))[1]
