"""Linear least squares in which windows have unknowns of their own: these are eliminated.

    min |J d + r|^2 + |D d|^2,    d = (x, s_1, s_2, ...)

Residuals of window b depend on x, which all share, on the unknowns s_b of the window, and on those
of the next one. So J has bands: its columns by s_1, s_3, ... are found in one set of directions and
those by s_2, s_4, ... in another (Curtis, Powell and Reid 1974), and orthogonal transformations
eliminate one window after the other (Golub and Plemmons 1980; Björck 1996, section 6.3). Neither
time nor memory grows faster than the number of windows.

Rows and columns, with three windows, each row standing for as many as a window has unknowns:

              s_1   s_2   s_3   x    r                  s_1   s_2   s_3   x    r
    window 1   #     #     .    #    #       front 1     T     #     .    #    #
    window 2   .     #     #    #    #   ->  front 2     .     T     #    #    #
    window 3   .     .     #    #    #       front 3     .     .     T    #    #
    all else   .     .     .    #    #       left        .     .     .    T    #

T is an upper triangle. On either side the sums of products of columns are the same, J^T J and
J^T r: each step is orthogonal. A front has the rows in which its own s comes first, so that s_b
follows from s_b+1 and x, from the last window to the first; what is left are rows of x alone.

Here are also the Jacobian by all unknowns, and the triangular factor of any number of rows.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.sharding import AxisType, PartitionSpec
from jaxtyping import Array, Float
from numpy.typing import NDArray
from scipy.optimize import nnls

_ROWS = 256


@eqx.filter_jit
def residuals_and_jacobian(
    residual: Callable, unknown: Any, args: Any, directions: Any = None
) -> tuple[Float[Array, " k"], Float[Array, "k c"]]:
    """residual(unknown, args) (k,) and its Jacobian (k, n), in forward mode.

    unknown: a pytree of n numbers. directions (c, n): of the derivatives, by default those of all
    numbers. These columns are divided among jax's devices; a CPU counts as `jax_num_cpu_devices` of
    them.
    """
    flat, whole = ravel_pytree(unknown)
    arrays, fixed = eqx.partition((residual, args), eqx.is_array)

    def columns(directions, flat, arrays):
        residual, args = eqx.combine(arrays, fixed)

        def along(direction):
            return jax.jvp(lambda flat: residual(whole(flat), args), (flat,), (direction,))

        return jax.vmap(along, out_axes=(None, -1))(directions)

    every = jnp.eye(len(flat), dtype=flat.dtype)
    unit = every if directions is None else jnp.asarray(directions, flat.dtype)
    count, shares = len(unit), jax.device_count()
    unit = jnp.pad(unit, ((0, -count % shares), (0, 0)))
    if shares > 1:
        mesh = jax.make_mesh((shares,), ("columns",), axis_types=(AxisType.Auto,))
        each, same = PartitionSpec("columns"), PartitionSpec()
        columns = jax.shard_map(
            columns,
            mesh=mesh,
            in_specs=(each, same, same),
            out_specs=(same, PartitionSpec(None, "columns")),
            check_vma=False,
        )
    r, jacobian = columns(unit, flat, arrays)
    return r, jacobian[:, :count]


def triangle(rows: NDArray) -> NDArray:
    """The upper triangle R (n, n), or (k, n) if k < n, with R^T R = A^T A for rows A (k, n).

    By blocks of rows, then of their triangles, each so small that LAPACK runs it on one core:
    threads would spend more time waiting for each other than working. Demmel et al. 2012.
    """
    n = rows.shape[1]
    size = max(_ROWS, 4 * n)
    while len(rows) > 2 * size:
        blocks = np.pad(rows, ((0, -len(rows) % size), (0, 0))).reshape(-1, size, n)
        rows = np.asarray(np.linalg.qr(blocks, mode="r")).reshape(-1, n)
    return np.asarray(np.linalg.qr(rows, mode="r"))


# What is left of columns that cancel, in rounding units of the longest.
_CANCELLED = 1e3


def column_sizes(columns: NDArray) -> NDArray:
    """The lengths (n,) of columns (k, n), infinite where they are zero but for rounding.

    Columns divided by them are of length 1 whatever their units, or zero.
    """
    sizes = np.linalg.norm(columns, axis=0)
    rounding = _CANCELLED * np.finfo(columns.dtype).eps * sizes.max(initial=0)
    return np.where(sizes > rounding, sizes, np.inf)


# Directions that the residuals do not determine are held by so much of a column's length.
_ROUNDING = float(np.finfo(float).eps) ** 0.5


class Windows(NamedTuple):
    """Successive residuals that depend on unknowns of windows, each with `size` of them.

    of (k,): the window b, from 0 to count - 1, on whose unknowns a residual depends, and on those
    of b + 1.
    """

    of: NDArray
    count: int
    size: int

    @property
    def colours(self) -> int:
        """The directions that all derivatives by unknowns of windows need."""
        return min(2, self.count) * self.size


class Windowed(eqx.Module):
    """residual(unknown, args) that begins with the rows of windows, whose unknowns come last."""

    @abc.abstractmethod
    def __call__(self, unknown: Any, args: Any) -> jax.Array:
        """The residuals (k,)."""

    @abc.abstractmethod
    def windows(self, args: Any) -> tuple[Windows, ...]:
        """The sequences of windows, in the order of their rows and of their unknowns."""


class _Front(NamedTuple):
    """The rows by which a window's unknowns follow from all after it.

    own (m, m): upper triangle by its unknowns; after (m, m): by those of the next window; rest (m,
    n + 1): by x, and the constant.
    """

    own: NDArray
    after: NDArray
    rest: NDArray


@dataclasses.dataclass(frozen=True)
class Linearised:
    """Residuals and their Jacobian in few rows, with the same sums of products.

    chains: for each sequence of windows their triangles (., 2 m + n + 1), with columns by the own
    unknowns, by those of the next window, by x, and the residual; rest: the triangle (., n + 1) of
    all other residuals. cost: half the sum of squares. lengths (N,): of the columns of J, in the
    order of the unknowns.
    """

    chains: tuple[list[NDArray], ...]
    rest: NDArray
    cost: float
    lengths: NDArray

    @staticmethod
    # The squares of a motion that diverges may be beyond the range of numbers.
    @np.errstate(over="ignore", invalid="ignore")
    def of(residual: Callable, unknown: Any, args: Any) -> Linearised:
        """Of residual(unknown, args); a `Windowed` one says which windows there are."""
        r, shared, own = compressed(residual, unknown, args)
        cost = float(np.sum(np.square(r, dtype=float))) / 2
        done, triangles = 0, []
        for windows in windows_of(residual, args):
            part = slice(done, done + len(windows.of))
            triangles.append(_triangles(windows, own[part], shared[part], r[part]))
            done += len(windows.of)
        rest = _in_few_rows(np.column_stack((shared[done:], r[done:])))
        return Linearised(tuple(triangles), rest, cost, _lengths(triangles, rest))

    def minimum(self, damping: NDArray, ahead: NDArray | None = None) -> tuple[NDArray, float]:
        """The least squares d (N,), damped by D = damping (N,) > 0, and how far the cost falls.

        That is half of |r|^2 - |J d + r|^2. ahead (n,): limits of d for x, on the side of their
        sign; 0 for none.
        """
        n = self.rest.shape[1] - 1
        fronts, rows, done = [], [self.rest], n
        for chain in self.chains:
            m = (chain[0].shape[1] - n - 1) // 2
            own = damping[done : done + m * len(chain)].reshape(len(chain), m)
            front, left = _eliminated(chain, own)
            fronts.append(front)
            rows.append(left)
            done += own.size
        damped = np.column_stack((np.diag(damping[:n]), np.zeros(n)))
        r = triangle(np.concatenate((*rows, damped)))[:n]
        x = _within(r, np.zeros(n) if ahead is None else ahead)
        given = np.append(x, 1)[:, None]
        d = np.concatenate((x, *(_substituted(front, given).ravel() for front in fronts)))
        constants = [f.rest[:, -1] for front in fronts for f in front]
        square = sum(float(c @ c) for c in (r[:, n], *constants))
        square -= float(np.sum((r @ given) ** 2))
        return d, (square + float(np.sum((damping * d) ** 2))) / 2


def windows_of(residual: Callable, args: Any) -> tuple[Windows, ...]:
    """The sequences of windows of residual(unknown, args); none unless it is `Windowed`."""
    return residual.windows(args) if isinstance(residual, Windowed) else ()


def compressed(residual: Callable, unknown: Any, args: Any) -> tuple[NDArray, NDArray, NDArray]:
    """residual (k,), its derivatives (k, n) by x, and those along c directions (k, c) of windows.

    The first directions move every other window's unknowns, from window 0 on, and the following
    ones those of the windows between.
    """
    chains = windows_of(residual, args)
    n = _size(unknown) - sum(w.count * w.size for w in chains)
    width = max((w.colours for w in chains), default=0)
    directions = None
    if width:
        each = [np.tile(np.eye(w.colours, width), (w.count, 1))[: w.count * w.size] for w in chains]
        shared = np.eye(n + width, n), np.eye(n + width, width, -n) @ np.concatenate(each).T
        directions = np.concatenate(shared, axis=1)
    r, jacobian = (
        np.asarray(a) for a in residuals_and_jacobian(residual, unknown, args, directions)
    )
    return r, jacobian[:, :n], jacobian[:, n:]


def projected(columns: NDArray, own: NDArray, chains: tuple[Windows, ...]) -> NDArray:
    """What is left of derivatives (k, n) when the unknowns of windows make up for all they can.

        P = J_x - J_s J_s^+ J_x

    own (k, c): the compressed J_s. P^T P is the inverse of the block of x in (J^T J)^-1; at a
    minimum, where J_s^T r = 0, P^T r over any rows has their scores with the windows' unknowns
    eliminated. Zero where only rounding is left.
    """
    left, done, n = np.array(columns), 0, columns.shape[1]
    for windows in chains:
        part = slice(done, done + len(windows.of))
        done += len(windows.of)
        if not windows.size:
            continue
        triangles = _triangles(windows, own[part], columns[part], np.zeros(len(windows.of)))
        damping = _lengths([triangles], np.zeros((0, n + 1)))[n:].reshape(-1, windows.size)
        damping = _ROUNDING * np.where(damping > 0, damping, 1)
        follow = _substituted(_eliminated(triangles, damping)[0], np.eye(n + 1, n))
        for b, moved in enumerate(follow):
            rows = part.start + np.flatnonzero((windows.of == b) | (windows.of == b - 1))
            along = (b % 2) * windows.size + np.arange(windows.size)
            left[rows] += own[np.ix_(rows, along)] @ moved
    rounding = _ROUNDING * np.linalg.norm(columns, axis=0)
    return np.where(np.linalg.norm(left, axis=0) > rounding, left, 0)


def _size(unknown: Any) -> int:
    return sum(np.size(leaf) for leaf in jax.tree.leaves(unknown))


def _triangles(windows: Windows, own: NDArray, shared: NDArray, r: NDArray) -> list[NDArray]:
    """The triangle of each window; see `Linearised`."""
    colours = np.split(own[:, : windows.colours], min(2, windows.count), axis=1)
    found = []
    for b in range(windows.count):
        rows = windows.of == b
        here = colours[b % 2][rows]
        after = np.zeros_like(here) if b + 1 == windows.count else colours[(b + 1) % 2][rows]
        found.append(_in_few_rows(np.column_stack((here, after, shared[rows], r[rows]))))
    return found


def _in_few_rows(rows: NDArray) -> NDArray:
    """The triangle of rows, in double precision."""
    return triangle(rows).astype(float)


def _lengths(chains: Sequence[list[NDArray]], rest: NDArray) -> NDArray:
    """The lengths (N,) of the columns of the Jacobian."""
    n = rest.shape[1] - 1
    shared, own = np.sum(rest[:, :n] ** 2, axis=0), []
    for chain in chains:
        m = (chain[0].shape[1] - n - 1) // 2
        squares = np.stack([np.sum(t[:, :-1] ** 2, axis=0) for t in chain])
        squares[1:, :m] += squares[:-1, m : 2 * m]
        own.append(squares[:, :m].ravel())
        shared = shared + squares[:, 2 * m :].sum(axis=0)
    return np.sqrt(np.concatenate((shared, *own)))


def _eliminated(chain: list[NDArray], damping: NDArray) -> tuple[list[_Front], NDArray]:
    """The fronts of windows, damped by damping (w, m), and the rows (., n + 1) that are left."""
    m = damping.shape[1]
    fronts, left = [], np.zeros((0, chain[0].shape[1] - m))
    for t, damp in zip(chain, damping, strict=True):
        width = t.shape[1]
        # What earlier windows have left begins with the unknowns of this one.
        before = np.zeros((len(left), width))
        before[:, :m], before[:, 2 * m :] = left[:, :m], left[:, m:]
        rows = triangle(np.concatenate((t, before, np.eye(m, width) * damp[:, None])))
        fronts.append(_Front(rows[:m, :m], rows[:m, m : 2 * m], rows[:m, 2 * m :]))
        left = rows[m:, m:]
    return fronts, left[:, m:]


def _within(r: NDArray, ahead: NDArray) -> NDArray:
    """The least squares x (n,) of rows r (n, n + 1) with x / ahead <= 1 where ahead is not 0.

    With x = ahead (1 - z), z are nonnegative least squares of the rows in which all others have
    been eliminated. Lawson and Hanson 1974, chapter 23.
    """
    n = r.shape[1] - 1
    limited, free = np.flatnonzero(ahead), np.flatnonzero(ahead == 0)
    if not len(limited) or not np.isfinite(r).all():
        return -np.linalg.solve(r[:, :n], r[:, n])
    rows, k = triangle(r[:, [*free, *limited, n]]), len(free)
    columns = rows[k:, k:n] * ahead[limited]
    sizes = np.linalg.norm(columns, axis=0)
    z = nnls(columns / sizes, columns.sum(axis=1) + rows[k:, n])[0] / sizes
    x = np.zeros(n)
    x[limited] = ahead[limited] * (1 - z)
    x[free] = -np.linalg.solve(rows[:k, :k], rows[:k, k:n] @ x[limited] + rows[:k, n])
    return x


def _substituted(fronts: list[_Front], given: NDArray) -> NDArray:
    """The unknowns (w, m, c) that minimise the fronts' rows, for x and 1 (n + 1, c)."""
    found, after = [], np.zeros((fronts[0].own.shape[0], given.shape[1]))
    for front in reversed(fronts):
        after = -np.linalg.solve(front.own, front.rest @ given + front.after @ after)
        found.append(after)
    return np.stack(found[::-1])
