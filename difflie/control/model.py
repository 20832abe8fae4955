"""The problem to second order about points and controls: gaps, steps, costs and bounds.

In local coordinates d = (dx, du) at each knot, with dx' = difference(x_{k+1}, step(x_k + d)),

    dx' = gap + D d,      cost + g.d + d.H d / 2,      bounded + C d.

H is the Gauss-Newton matrix of the costs, sum w J^T J, which has no negative eigenvalues.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import native
from .discretization import Discretization, Motion, Point


class Quadratic(NamedTuple):
    """Costs and bounds to second order: cost (), g (n,), H (n, n), bounded (m,), C (m, n)."""

    cost: jax.Array
    g: Any
    H: Any
    bounded: jax.Array
    C: Any

    @property
    def values(self) -> Quadratic:
        """The same without derivatives."""
        return Quadratic(self.cost, None, None, self.bounded, None)


class Model(NamedTuple):
    """gap (N, nx), D (N, nx, nx + nu); costs and bounds along the motion and at its end."""

    gap: jax.Array
    D: Any
    along: Quadratic
    end: Quadratic

    @property
    def cost(self) -> Float[Array, ""]:
        """The cost of the points and controls."""
        return jnp.sum(self.along.cost) + self.end.cost

    @property
    def values(self) -> Model:
        """The same without derivatives."""
        return Model(self.gap, None, self.along.values, self.end.values)


@eqx.filter_jit
def model_of(knots: Discretization, motion: Motion) -> Model:
    """The model about a motion."""
    x, u = motion
    k = jnp.arange(u.shape[0], dtype=u.dtype)
    start, last = jax.tree.map(lambda a: a[:-1], x), jax.tree.map(lambda a: a[-1], x)
    gap, D = steps_to_first_order(knots, motion)
    along = jax.vmap(_kernel(knots, _costs_along), (None, 0, 0, 0))(knots, start, u, k)
    return Model(gap, D, along, _kernel(knots, _costs_at_end)(knots, last))


def values_of(
    knots: Discretization, motion: Motion, gap: Float[Array, "N nx"] | None = None
) -> Model:
    """Gaps, costs and bounds alone: None stands for all derivatives. gap: if it is known."""
    x, u = motion
    gap = gaps_of(knots, motion) if gap is None else gap
    k = jnp.arange(u.shape[0], dtype=u.dtype)
    start, last = jax.tree.map(lambda a: a[:-1], x), jax.tree.map(lambda a: a[-1], x)
    along = jax.vmap(_kernel(knots, _values_along), (None, 0, 0, 0))(knots, start, u, k)
    return Model(gap, None, along, _kernel(knots, _values_at_end)(knots, last))


def gaps_of(knots: Discretization, motion: Motion) -> Float[Array, "N nx"]:
    """The gaps between the ends of steps and the next points."""
    return _along(knots, _gap, motion)


def steps_to_first_order(
    knots: Discretization, motion: Motion
) -> tuple[Float[Array, "N nx"], Float[Array, "N nx n"]]:
    """The gaps (N, nx) between the ends of steps and the next points, and D (N, nx, nx + nu)."""
    return _along(knots, _step, motion)


def _along(knots: Discretization, f: Callable, motion: Motion) -> Any:
    """f at every knot, of its point, controls, number, and the next point."""
    x, u = motion
    k = jnp.arange(u.shape[0], dtype=u.dtype)
    start, end = jax.tree.map(lambda a: a[:-1], x), jax.tree.map(lambda a: a[1:], x)
    return jax.vmap(_kernel(knots, f), (None, 0, 0, 0, 0))(knots, start, u, k, end)


def _kernel(knots: Discretization, f: Callable) -> Callable:
    return native.kernel(f) if knots.tree.topology.unrolled else f


def _gap(knots: Discretization, x: Point, u: jax.Array, k: jax.Array, end: Point) -> jax.Array:
    return knots.difference(end, knots.step(x, u, k))


@eqx.filter_jit
def _step(
    knots: Discretization, x: Point, u: jax.Array, k: jax.Array, end: Point
) -> tuple[jax.Array, jax.Array]:
    def ended(d: jax.Array) -> tuple[Point, Point]:
        moved = knots.retract(x, d[: knots.nx])
        after = knots.step(moved, u + d[knots.nx :], k, by_matrices=True)
        return after, after

    def gap(after: Point) -> tuple[jax.Array, jax.Array]:
        value = knots.difference(end, after)
        return value, value

    # As matrices: a pose has fewer entries than there are directions.
    by_d, after = jax.jacfwd(ended, has_aux=True)(jnp.zeros(knots.nx + knots.nu, u.dtype))
    by_end, value = jax.jacfwd(gap, has_aux=True)(after)
    parts = jax.tree.leaves(jax.tree.map(jnp.matmul, by_end, by_d))
    return value, functools.reduce(jnp.add, parts)


def _costs_along(knots: Discretization, x: Point, u: jax.Array, k: jax.Array) -> Quadratic:
    def parts(d: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        moved, du = knots.retract(x, d[: knots.nx]), u + d[knots.nx :]
        return *knots.residuals(moved, du, k), knots.bounded(moved, du, k)

    return _quadratic(parts, jnp.zeros(knots.nx + knots.nu, u.dtype))


def _costs_at_end(knots: Discretization, x: Point) -> Quadratic:
    def parts(dx: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        moved = knots.retract(x, dx)
        return *knots.final_residuals(moved), knots.final_bounded(moved)

    return _quadratic(parts, jnp.zeros(knots.nx, x.q.dtype))


def _values_along(knots: Discretization, x: Point, u: jax.Array, k: jax.Array) -> Quadratic:
    r, w = knots.residuals(x, u, k)
    return Quadratic(_cost(r, w), None, None, knots.bounded(x, u, k), None)


def _values_at_end(knots: Discretization, x: Point) -> Quadratic:
    r, w = knots.final_residuals(x)
    return Quadratic(_cost(r, w), None, None, knots.final_bounded(x), None)


def _cost(r: jax.Array, w: jax.Array) -> jax.Array:
    return jnp.sum(w * r * r) / 2


def _quadratic(parts: Callable, zero: jax.Array) -> Quadratic:
    def both(d: jax.Array) -> tuple:
        r, w, bounded = parts(d)
        return (r, bounded), (r, w, bounded)

    (J, C), (r, w, bounded) = jax.jacfwd(both, has_aux=True)(zero)
    weighted = w[:, None] * J
    return Quadratic(_cost(r, w), weighted.T @ r, weighted.T @ J, bounded, C)
