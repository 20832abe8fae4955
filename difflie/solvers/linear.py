"""Linear algebra: products in full precision, least squares, small problems in plain arithmetic.

Graphics processors multiply matrices in a lower precision unless told otherwise.

In the smallest solutions of singular equations no rank is decided, which would change from one
evaluation to the next. Eigenvalues or singular values s are inverted as s / (s^2 + e^2), with e far
below the largest: this removes rounding errors and damps small values.

What small matrices need is in plain arithmetic, which compiles into a native loop: elimination with
a complex shift, Gauss-Jordan elimination, and Jacobi's algorithms for eigenvalues and singular
values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

# So many times each pair of rows is rotated at most; ten are plenty for matrices of any size here.
_SWEEPS = 20
# Loops of more turns are not written out.
_MOST_WRITTEN_OUT = 8


def eigen(a: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Eigenvalues s (n,), in no order, and eigenvectors V (n, n): a V = V diag(s).

    a (n, n) is symmetric. For small matrices, for which a call of LAPACK costs more than this.
    Rotations in n / 2 planes at a time, which share no row, make entries outside of the diagonal
    zero; in n - 1 turns every pair has its own. Golub and Van Loan, Matrix Computations, 8.5.
    """
    n = len(a)
    half = (n + 1) // 2
    size = 2 * half
    # For an odd number of rows there is one of zeros, which stays the first.
    extra = size - n
    a = jnp.pad(a, ((extra, 0), (extra, 0)))
    every = np.arange(size)
    first, second = every[:half], every[half:]
    order = _next_pairs(half)
    outside = ~np.eye(size, dtype=bool)
    limit = (size * float(jnp.finfo(a.dtype).eps)) ** 2

    def unfinished(state: tuple) -> jax.Array:
        a, _, count = state
        left = jnp.sum(jnp.where(outside, a * a, 0)) > limit * jnp.sum(a * a)
        return left & (count < _SWEEPS * (size - 1))

    def turn(state: tuple) -> tuple:
        a, rows, count = state
        c, s = _rotations(a[first, first], a[first, second], a[second, second])

        def rotated(x: jax.Array) -> jax.Array:
            x, y = x[first], x[second]
            both = c[:, None] * x - s[:, None] * y, s[:, None] * x + c[:, None] * y
            return jnp.concatenate(both)[order]

        return rotated(rotated(a).T), rotated(rows), count + 1

    start = a, jnp.eye(size, dtype=a.dtype), jnp.asarray(0)
    a, rows, _ = jax.lax.while_loop(unfinished, turn, start)
    return a[every, every][extra:], rows[extra:, extra:].T


def _orthogonal(rows: jax.Array, width: int) -> jax.Array:
    """Rows (m, n), rotated until their first `width` entries are orthogonal; m is made even."""
    half = (len(rows) + 1) // 2
    rows = jnp.pad(rows, ((2 * half - len(rows), 0), (0, 0)))
    limit = width * float(jnp.finfo(rows.dtype).eps)
    order = _next_pairs(half)
    turns = max(1, 2 * half - 1)

    def unfinished(state: tuple) -> jax.Array:
        _, orthogonal, count = state
        return (orthogonal < turns) & (count < _SWEEPS * turns)

    def turn(state: tuple) -> tuple:
        rows, orthogonal, count = state
        x, y = rows[:half], rows[half:]
        pairs = ((x, x), (x, y), (y, y))
        xx, xy, yy = (jnp.sum(u[:, :width] * v[:, :width], axis=1) for u, v in pairs)
        # A comparison with what is not a number is false, and ends the search.
        oblique = jnp.any(jnp.abs(xy) > limit * jnp.sqrt(xx) * jnp.sqrt(yy))
        c, s = _rotations(xx, xy, yy)
        x, y = c[:, None] * x - s[:, None] * y, s[:, None] * x + c[:, None] * y
        rows = jnp.concatenate((x, y))[order]
        return rows, jnp.where(oblique, 0, orthogonal + 1), count + 1

    none = jnp.asarray(0)
    return jax.lax.while_loop(unfinished, turn, (rows, none, none))[0]


def _rotations(p: jax.Array, pq: jax.Array, q: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Cosines and sines (k,) of the smaller angles that make the entries pq (k,) zero."""
    d = q - p
    far = jnp.abs(d) + jnp.sqrt(d * d + 4 * pq * pq)
    turns = far > 0
    t = jnp.where(turns, jnp.where(d < 0, -2, 2) * pq / jnp.where(turns, far, 1), 0)
    c = 1 / jnp.sqrt(1 + t * t)
    return c, t * c


def _next_pairs(half: int) -> np.ndarray:
    """The places (2 half,) that rows come from: all but the first move on, as in a tournament."""
    first, second = list(range(half)), list(range(half, 2 * half))
    if half == 1:
        return np.array([0, 1])
    return np.array([0, second[0], *first[1:-1], *second[1:], first[-1]])


# Larger matrices are left to LAPACK, and with it the loop to XLA.
SMALL = 40

Linear = Callable[[jax.Array], jax.Array]


def product(a: Any, b: jax.Array) -> jax.Array:
    """a @ b in full precision, in the dtype of b; a (m, n), b (n,) or (n, k), or stacks of them."""
    return jnp.matmul(jnp.asarray(a, b.dtype), b, precision=jax.lax.Precision.HIGHEST)


def factor_from_tips(a: jax.Array) -> jax.Array:
    """U (n, n), upper triangular with a = U U^T, of a positive definite a (n, n).

    By elimination from the last row to the first, which in the mass matrix of a tree, whose dofs
    come after those that move them, leaves all zeros as they are (Featherstone 2005).
    """
    return jnp.linalg.cholesky(a[::-1, ::-1])[::-1, ::-1]


State = TypeVar("State")


def after_turns(count: int, turn: Callable[[State], State], state: State) -> State:
    """The state after so many turns: a program writes out a few, and repeats more in a loop."""
    if count <= _MOST_WRITTEN_OUT:
        return jax.lax.fori_loop(0, count, lambda _, state: turn(state), state)

    def next_turn(numbered: tuple[State, jax.Array]) -> tuple[State, jax.Array]:
        return turn(numbered[0]), numbered[1] + 1

    return jax.lax.while_loop(lambda x: x[1] < count, next_turn, (state, jnp.asarray(0)))[0]


def minimum_norm(gram: jax.Array, half: jax.Array | None = None) -> Linear:
    """The smallest x (m,) with gram x = b, as a linear function of b (m,) in the range of gram.

    gram (m, m) is positive semidefinite and is not differentiated. half (n, m): a factor of it,
    gram = half^T half, which makes redundant equations cheaper: with fewer rows than columns half
    half^T has the same eigenvalues but for zeros. Refinements make up for the damping of small
    eigenvalues and for the rounding of the inverse.
    """
    if not len(gram):
        return lambda b: b
    gram, half = jax.lax.stop_gradient((gram, half))
    # Products with gram or half leave nothing outside of the range, where the inverse is large.
    if half is None or len(half) >= len(gram):
        into, back, inverse = None, gram, damped_inverse(gram)
    else:
        into, back, inverse = half, half.T, damped_inverse(product(half, half.T))

    def solved(b: jax.Array) -> jax.Array:
        b = b if into is None else product(into, b)
        return product(back, product(inverse, product(inverse, b)))

    def refined(b: jax.Array) -> jax.Array:
        x = solved(b)
        for _ in range(2):
            x = x + solved(b - product(gram, x))
        return x

    return refined


def damped_inverse(a: jax.Array) -> jax.Array:
    """V diag(s / (s^2 + e^2)) V^T (n, n) of a positive semidefinite a = V diag(s) V^T (n, n).

    It is the real part of the inverse of a + i e, which elimination finds without pivots, since
    its real and imaginary parts are positive (semi)definite (Higham 1998, Factorizing complex
    symmetric matrices with positive definite real and imaginary parts). Each of n turns, with the
    first row (p, r), leaves a symmetric matrix, the row eliminated last:

        p    r^T          R - r r^T / p    r / p
                    to
        r    R            r^T / p          -1 / p        in the end that of the negative inverse
    """
    n = len(a)
    largest = jnp.max(jnp.diag(a))
    scale = jnp.where(largest > 0, largest, 1)
    if n > SMALL:
        s, basis = jnp.linalg.eigh(a / scale)
        return product(basis * _weights(s, jnp.ones_like(scale)), basis.T) / scale
    # The entries on and below the diagonal, row by row.
    i, j = np.tril_indices(n)
    place = np.zeros((n, n), int)
    place[i, j] = place[j, i] = np.arange(len(i))
    at, (left, right) = place[0], np.tril_indices(n - 1)
    rest = place[left + 1, right + 1]

    def turn(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        re, im = state
        p, p_im, r, r_im = re[0], im[0], re[at[1:]], im[at[1:]]
        size = p * p + p_im * p_im
        q, q_im = p / size, -p_im / size
        over, over_im = r * q - r_im * q_im, r * q_im + r_im * q
        less = over[left] * r[right] - over_im[left] * r_im[right]
        less_im = over[left] * r_im[right] + over_im[left] * r[right]
        return (
            jnp.concatenate((re[rest] - less, over, -q[None])),
            jnp.concatenate((im[rest] - less_im, over_im, -q_im[None])),
        )

    e = np.where(i == j, float(jnp.finfo(a.dtype).eps) ** 0.6, 0)
    inverse, _ = after_turns(n, turn, (a[i, j] / scale, jnp.asarray(e, a.dtype)))
    return -inverse[place] / scale


def decomposed(a: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Eigenvalues (n,), in no order, and eigenvectors (n, n) of a symmetric a (n, n)."""
    s, basis = eigen(a) if len(a) <= SMALL else jnp.linalg.eigh(a)
    return s, basis


def pseudoinverse(matrix: jax.Array) -> Linear:
    """The smallest x (m,) with matrix x = b, as a linear function of b (m,) in the range.

    matrix (m, m) is not differentiated. The damping of small singular values is left to an outer
    iteration.
    """
    if not len(matrix):
        return lambda b: b
    matrix = jax.lax.stop_gradient(matrix)
    if len(matrix) <= SMALL:
        # Rotations r make the rows of w = r matrix orthogonal, their lengths are the values.
        largest = jnp.max(jnp.abs(matrix))
        scale = jnp.where(largest > 0, largest, 1)
        unit = jnp.eye(len(matrix), dtype=matrix.dtype)
        rows = _orthogonal(jnp.concatenate((matrix / scale, unit), axis=1), len(matrix))
        w, r = jnp.split(rows, 2, axis=1)
        s = jnp.sqrt(jnp.sum(w * w, axis=1))
        w, weight = w / scale, _weights(s, jnp.max(s), 0)
    else:
        u, s, w = jnp.linalg.svd(matrix)
        r, weight = u.T, _weights(s, s[0])

    def solved(b: jax.Array) -> jax.Array:
        return product(w.T, weight * product(r, b))

    return solved


def _weights(s: jax.Array, largest: jax.Array, power: int = 1) -> jax.Array:
    """s^power / (s^2 + e^2), with e far below the largest s."""
    limits = jnp.finfo(s.dtype)
    e = float(limits.eps) ** 0.6 * jnp.maximum(largest, limits.tiny**0.25)
    return s**power / (s * s + e * e)


def inverse(a: jax.Array, turns: jax.Array | int) -> jax.Array:
    """The inverse (n, n) of a matrix a (n, n), with the largest pivot of each column.

    turns: n, or 0 where the result does not matter. For small matrices, for which a call of LAPACK
    costs more than this. NaN if a is singular. In place (Golub and Van Loan, Matrix Computations,
    3.4): each turn exchanges the first x and the y of the largest pivot p, which become the last,

        y_0    p  r^T   x_0             y    R - c r^T / p    c / p    x
                              to
        y      c  R     x               x_0      -r^T / p      1 / p   y_0

    so that in the end x is given by the y in the order of the pivots.
    """
    n = len(a)
    rows = jnp.arange(n)

    def exchange(k: jax.Array, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        w, order = state
        sizes = jnp.where(rows < n - k, jnp.abs(w[:, 0]), -1)
        best = rows == jnp.min(jnp.where(sizes == jnp.max(sizes), rows, n - 1))
        row = product(best.astype(w.dtype), w)
        name = jnp.sum(jnp.where(best, order, 0))
        # The first row takes the place of the pivot's.
        moved, names = (jnp.where(b, x[0], x)[1:] for b, x in ((best[:, None], w), (best, order)))
        p, r, c = row[:1, None], row[None, 1:] / row[0], moved[:, :1]
        w = jnp.block([[moved[:, 1:] - c * r, c / p], [-r, 1 / p]])
        return w, jnp.append(names, name)

    w, order = jax.lax.fori_loop(0, turns, exchange, (a, rows))
    return product(w, (order[:, None] == rows[None]).astype(w.dtype))


def inverted(a: jax.Array) -> jax.Array:
    """The inverse (n, n) of a matrix a (n, n); NaN if a is singular."""
    # A program writes the elimination of few rows out, which is faster than a loop.
    few, n = 12, len(a)
    return inverse(a, n) if few < n <= 2 * SMALL else jnp.linalg.inv(a)


def plain_product(a: jax.Array, x: jax.Array) -> jax.Array:
    """a @ x for a (m, n) and x (n,)."""
    # Larger sums have no native code.
    rows = max(1, 4095 // max(1, len(x)))
    return jax.lax.map(lambda row: jnp.sum(row * x), a, batch_size=min(rows, len(a)))
