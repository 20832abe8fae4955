"""Singular values of small matrices, in plain arithmetic, which compiles into native loops.

Reflections leave a band of two diagonals. How many values are above a number is counted in the
signs of the pivots of the symmetric matrix that holds the band and its transpose, and a value is
bisected by these counts. Rounding is that of the largest value; what `a^T a` would lose of the
small ones is kept. Golub and Van Loan, Matrix Computations, 8.6.1 and 8.4.1. Not differentiated.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from .linear import after_turns, product


def bidiagonal(a: Float[Array, "m n"]) -> Float[Array, " k"]:
    """Sizes (2 min(m, n) - 1,) of the entries of the band: row by row, two in a row.

    The band of a diagonal matrix is its diagonal, with zeros in between.
    """
    a = jax.lax.stop_gradient(a)
    a = a.T if a.shape[0] > a.shape[1] else a
    m = len(a)
    if not m:
        return jnp.zeros(0, a.dtype)

    def reflection(x: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """The length of x, and v and b of the reflection I - b v v^T along its first axis."""
        length = jnp.sqrt(jnp.sum(x * x))
        v = jnp.concatenate((x[:1] + jnp.where(x[:1] < 0, -length, length), x[1:]))
        size = jnp.sum(v * v)
        return length, v, jnp.where(size > 0, 2 / jnp.where(size > 0, size, 1), 0)

    def turn(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        """What is left of a, moved to its first row and column, zeros in the last ones."""
        a, band = state
        on, v, b = reflection(a[0])
        a = (a - jnp.outer(b * product(a, v), v))[1:]
        beside, v, b = reflection(a[:, 0])
        a = a[:, 1:] - jnp.outer(v, b * product(v, a[:, 1:]))
        a = jnp.pad(a, ((0, 1), (0, 1)))
        return a, jnp.concatenate((band[2:], jnp.stack((on, beside))))

    largest = jnp.max(jnp.abs(a))
    scale = jnp.where(largest > 0, largest, 1)
    # The last row has nothing below it.
    start = jnp.pad(a / scale, ((0, 1), (0, 0))), jnp.zeros(2 * m, a.dtype)
    _, band = after_turns(m, turn, start)
    return scale * band[:-1]


def values_above(band: Float[Array, " k"], x: Float[Array, ""]) -> Int[Array, ""]:
    """How many singular values of the matrix with this band are larger than x > 0 ()."""
    least = jnp.max(band) * float(jnp.finfo(band.dtype).eps) ** 2
    count, pivot = jnp.asarray(0), -x
    for b in [*band, None]:
        pivot = jnp.where(jnp.abs(pivot) < least, -least, pivot)
        count = count + jnp.where(pivot > 0, 1, 0)
        # Divided first, since the square of what is small may be zero.
        pivot = pivot if b is None else -x - b * (b / pivot)
    return count


def singular_value(
    band: Float[Array, " k"], order: Int[Array, ""], bits: int | None = None
) -> Float[Array, ""]:
    """A singular value () of the matrix with this band (k,), k > 0; order 0: the largest.

    bits: to so many it is found, all by default. NaN where the matrix is not finite.
    """
    limits = jnp.finfo(band.dtype)
    # No value is larger than the largest sum of a row; below its rounding none is told from zero.
    top = 2 * jnp.max(band)
    # The first halvings are of the exponent, which has fewer than 2^6 values.
    halvings = 6 + (limits.nmant + 1 if bits is None else bits)

    def halve(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        low, high = state
        middle = jnp.sqrt(low) * jnp.sqrt(high)
        more = values_above(band, middle) > order
        return jnp.where(more, middle, low), jnp.where(more, high, middle)

    low, high = after_turns(halvings, halve, (top * float(limits.eps) / 2, top))
    return jnp.sqrt(low) * jnp.sqrt(high)
