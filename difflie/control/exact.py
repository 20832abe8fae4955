"""The exact second derivatives of a problem."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import native
from .discretization import Discretization, Motion, Point
from .linear_quadratic import LinearQuadratic


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
