"""A problem as a sparse nonlinear program: f(X) -> min, lower <= g(X) <= upper.

X (n,) has the tangents from a given motion, (dz_0, du_0, dx_1, du_1, dx_2, ... dx_N); g the gaps of
all steps, the bounded entries along the motion, and those at the end. A step depends on
e = (dx_k, du_k, dx_{k+1}) (w,) alone, so that all derivatives are blocks of that size.
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import native
from .discretization import Discretization, Motion, Point
from .penalty import Bounds
from .transcription import Transcription


class Parts(NamedTuple):
    """A number for all values of a program, or blocks of their derivatives.

    cost (N,), end_cost (); gaps (N, nx); bounded (N, m), end_bounded (m,). Derivatives by e, and by
    dx_N at the end, have these as further axes.
    """

    cost: jax.Array
    end_cost: jax.Array
    gaps: jax.Array
    bounded: jax.Array
    end_bounded: jax.Array


class Pattern(NamedTuple):
    """Where there is something in the sparse matrices.

    rows: the constraints that have a bound at all. jacobian, hessian: rows and columns, of the
    lower triangle of the latter; of_jacobian, of_hessian: their entries in all blocks, joined.
    """

    rows: np.ndarray
    jacobian: tuple[np.ndarray, np.ndarray]
    of_jacobian: np.ndarray
    hessian: tuple[np.ndarray, np.ndarray]
    of_hessian: np.ndarray


class Program(eqx.Module):
    """The program about a motion."""

    knots: Discretization
    transcription: Transcription
    motion: Motion

    @property
    def size(self) -> int:
        """n."""
        k = self.knots
        return k.nz + k.steps * (k.nu + k.nx)

    @property
    def places(self) -> np.ndarray:
        """Where in X the entries (N, w) of e are; n for those of the start, which is given."""
        k = self.knots
        start = np.concatenate([np.full(k.nx - k.nz, self.size), np.arange(k.nz)])
        steps = k.nz + np.arange(k.steps * (k.nu + k.nx)).reshape(k.steps, -1)
        before = np.concatenate([start[None], steps[:-1, k.nu :]])
        return np.concatenate([before, steps], axis=1)

    def moved(self, X: Float[Array, " n"]) -> Motion:
        """The motion at X."""
        nx, nu = self.knots.nx, self.knots.nu
        e = _taken(self, X)
        return self.motion.moved(self.knots, e[:, : nx + nu], e[-1, nx + nu :])

    def variable_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The least and the largest X (n,)."""
        k, (x, u) = self.knots, self.motion

        def joined(u_bound: jax.Array, z_bound: jax.Array, none: float) -> np.ndarray:
            steps = np.full((k.steps, k.nu + k.nx), none)
            steps[:, : k.nu] = np.asarray(u_bound - u)
            return np.concatenate([np.asarray(z_bound - x.z[0]), steps.ravel()])

        return joined(k.u_lower, k.z_lower, -np.inf), joined(k.u_upper, k.z_upper, np.inf)

    def constraint_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The least and the largest g (m,)."""
        b, gaps = Bounds.of(self.knots), np.zeros(self.knots.steps * self.knots.nx)
        lower = np.concatenate([gaps, np.ravel(b.lower), np.ravel(b.end_lower)])
        return lower, np.concatenate([gaps, np.ravel(b.upper), np.ravel(b.end_upper)])

    def weights(self, factor: float, y: np.ndarray) -> Parts:
        """A factor of the cost, and y (m,) of the constraints."""
        knots, dtype = self.knots, self.motion.u.dtype
        m = Bounds.of(knots).lower.shape
        ends = np.cumsum([knots.steps * knots.nx, m[0] * m[1]])
        gaps, along, end = (jnp.asarray(part, dtype) for part in np.split(y, ends))
        cost = jnp.full(knots.steps, factor, dtype)
        return Parts(cost, cost[0], gaps.reshape(-1, knots.nx), along.reshape(m), end)

    def controls(self, X: Float[Array, " n"]) -> tuple[jax.Array, jax.Array]:
        """The entries of the controls (N, nu), and of z at the start (nz,)."""
        start, steps = jnp.split(X, (self.knots.nz,))
        return steps.reshape(self.knots.steps, -1)[:, : self.knots.nu], start

    def gathered(self, along: jax.Array, end: jax.Array) -> np.ndarray:
        """The derivative (n,) by X that has the parts (N, w) by e, and (nx,) by dx_N."""
        places = self.places
        sums = np.bincount(places.ravel(), np.ravel(along), self.size + 1)
        sums[places[-1, -self.knots.nx :]] += np.asarray(end)
        return sums[: self.size]

    def lagrangian(self, slopes: Parts, y: Parts) -> tuple[jax.Array, jax.Array]:
        """The derivatives (N, w), (nx,) of the sum of all values, weighted with y."""
        along = slopes.cost * y.cost[:, None]
        along = along + jnp.einsum("kiw,ki->kw", slopes.gaps, y.gaps)
        along = along + jnp.einsum("kiw,ki->kw", slopes.bounded, y.bounded)
        return along, slopes.end_cost * y.end_cost + y.end_bounded @ slopes.end_bounded

    def pattern(self) -> Pattern:
        """The pattern of the Jacobian and the Hessian."""
        places, n, nx, b = self.places, self.size, self.knots.nx, Bounds.of(self.knots)
        steps, w = places.shape
        end = places[-1, -nx:]
        lower, upper = self.constraint_bounds()
        rows = np.flatnonzero(np.isfinite(lower) | np.isfinite(upper))
        numbers = np.full(lower.size, -1)
        numbers[rows] = np.arange(rows.size)
        row = np.repeat(numbers, [w] * (steps * nx + b.lower.size) + [nx] * b.end_lower.size)
        column = np.concatenate(
            [np.repeat(places, size, axis=0).ravel() for size in (nx, b.lower.shape[1])]
            + [np.tile(end, b.end_lower.size)]
        )
        of_jacobian = np.flatnonzero((column < n) & (row >= 0))
        # X stands in the order of e, so what is a lower triangle stays one.
        i, j = (
            np.concatenate([spread(p, p.size) for p in (*places, end)])
            for spread in (np.repeat, np.tile)
        )
        of_hessian = np.flatnonzero((i >= j) & (i < n) & (j < n))
        return Pattern(
            rows,
            (row[of_jacobian], column[of_jacobian]),
            of_jacobian,
            (i[of_hessian], j[of_hessian]),
            of_hessian,
        )


def constraints(parts: Parts) -> np.ndarray:
    """g (m,), or all blocks of its derivative joined."""
    return np.concatenate([np.ravel(a) for a in (parts.gaps, parts.bounded, parts.end_bounded)])


@eqx.filter_jit
def values(program: Program, X: Float[Array, " n"]) -> Parts:
    """f and g, in their parts."""
    rows, e = _rows(program), _taken(program, X)
    f = native.kernel(_step) if program.knots.tree.topology.unrolled else _step
    along = jax.vmap(f, (None, None, 0, 0))(program.knots, program.transcription, rows, e)
    at_end = _end(program.knots, _last(program), _end_of(program, e))
    return Parts(along[0], at_end[0], along[1], along[2], at_end[1])


@eqx.filter_jit
def slopes(program: Program, X: Float[Array, " n"]) -> Parts:
    """Their derivatives."""
    rows, e = _rows(program), _taken(program, X)
    f = native.kernel(_step_slopes) if program.knots.tree.topology.unrolled else _step_slopes
    along = jax.vmap(f, (None, None, 0, 0))(program.knots, program.transcription, rows, e)
    end = _end_of(program, e)
    at_end = jax.jacfwd(lambda dx: _end(program.knots, _last(program), dx))(end)
    return Parts(along[0], at_end[0], along[1], along[2], at_end[1])


@eqx.filter_jit
def curvatures(
    program: Program, X: Float[Array, " n"], weights: Parts
) -> tuple[Float[Array, "N w w"], Float[Array, "nx nx"]]:
    """The second derivatives by e, and by dx_N at the end, of a weighted sum of the values."""
    knots, rows, e = program.knots, _rows(program), _taken(program, X)
    column = native.kernel(_step_column) if knots.tree.topology.unrolled else _step_column
    parts = weights.cost, weights.gaps, weights.bounded
    over_directions = jax.vmap(column, (*5 * (None,), 0))
    unit = jnp.eye(e.shape[1], dtype=e.dtype)
    along = jax.vmap(over_directions, (None, None, 0, 0, 0, None))(
        knots, program.transcription, rows, e, parts, unit
    )

    def at_end(dx: jax.Array) -> jax.Array:
        cost, bounded = _end(knots, _last(program), dx)
        return weights.end_cost * cost + weights.end_bounded @ bounded

    return along, jax.jacfwd(jax.grad(at_end))(_end_of(program, e))


def _rows(program: Program) -> tuple[Point, jax.Array, jax.Array, Point]:
    """What steps start from, for each of them: point, control, its number, the next point."""
    x, u = program.motion
    start, end = jax.tree.map(lambda a: a[:-1], x), jax.tree.map(lambda a: a[1:], x)
    return start, u, jnp.arange(program.knots.steps, dtype=u.dtype), end


def _taken(program: Program, X: jax.Array) -> jax.Array:
    """e (N, w)."""
    return jnp.concatenate((X, jnp.zeros(1, X.dtype)))[program.places]


def _last(program: Program) -> Point:
    return jax.tree.map(lambda a: a[-1], program.motion.x)


def _end_of(program: Program, e: jax.Array) -> jax.Array:
    return e[-1, program.knots.nx + program.knots.nu :]


def _step(
    knots: Discretization, transcription: Transcription, row: tuple, e: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The cost (), the gap (nx,) and the bounded entries (m,) of a step."""
    x, u, k, end = row
    dx, du, dx_end = jnp.split(e, (knots.nx, knots.nx + knots.nu))
    x, u, end = knots.retract(x, dx), u + du, knots.retract(end, dx_end)
    return *transcription.step(knots, x, u, k, end), knots.bounded(x, u, k)


def _step_slopes(
    knots: Discretization, transcription: Transcription, row: tuple, e: jax.Array
) -> tuple:
    return jax.jacfwd(lambda e: _step(knots, transcription, row, e))(e)


def _step_column(
    knots: Discretization,
    transcription: Transcription,
    row: tuple,
    e: jax.Array,
    weights: tuple,
    direction: jax.Array,
) -> jax.Array:
    """The derivative (w,) of the gradient along a direction (w,)."""

    def weighted(e: jax.Array) -> jax.Array:
        parts = _step(knots, transcription, row, e)
        return sum((jnp.sum(w * a) for w, a in zip(weights, parts, strict=True)), jnp.zeros(()))

    return jax.jvp(jax.grad(weighted), (e,), (direction,))[1]


def _end(knots: Discretization, x: Point, dx: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The cost () and the bounded entries (m,) at the last knot."""
    x = knots.retract(x, dx)
    r, w = knots.final_residuals(x)
    return jnp.sum(w * r * r) / 2, knots.final_bounded(x)
