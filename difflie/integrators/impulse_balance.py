"""Velocities whose change is that by impulses, which laws give as functions of the velocities.

    M (v - v*) = A^T g(A v)

By convex laws v is the minimum of a convex function. Coulomb's law is none: where Newton's method
does not find it from the last velocity, convex problems are solved
(`difflie.solvers.semismooth`).
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..solvers.convex import ConvexNewton
from ..solvers.linear import product
from ..solvers.root import found, root
from ..solvers.rows import Rows
from ..solvers.semismooth import ConvexRounds
from .impulse_laws import Law


def parts(laws: Sequence[Law], flat: Float[Array, "m ..."]) -> list[jax.Array]:
    """What belongs to each law, (k, d, ...), of numbers (m, ...) one after the other."""
    sizes, start, split = [law.target.shape for law in laws], 0, []
    for k, d in sizes:
        split.append(flat[start : start + k * d].reshape(k, d, *flat.shape[1:]))
        start += k * d
    return split


def impulses(laws: Sequence[Law], A: Float[Array, "m nv"], v: Float[Array, " nv"]) -> jax.Array:
    """The impulses g (m,) of laws at v (nv,); A: the rows of all of them."""
    each = zip(laws, parts(laws, product(A, v)), strict=True)
    return jnp.concatenate([law.impulses(u).ravel() for law, u in each])


def steep(
    laws: Sequence[Law],
    A: Float[Array, "m nv"],
    v: Float[Array, " nv"],
    of: Float[Array, "m c"],
) -> Float[Array, "m c"]:
    """G times numbers (m, c), by the slopes G = -dg/du at v (nv,)."""
    each = zip(laws, parts(laws, product(A, v)), parts(laws, of), strict=True)
    found = [product(law.slopes(u), x).reshape(-1, of.shape[1]) for law, u, x in each]
    return jnp.concatenate(found)


def least_velocity(
    M: Float[Array, "nv nv"],
    momentum: Float[Array, " nv"],
    rows: Sequence[Rows],
    laws: Sequence[Law],
    guess: Float[Array, " nv"],
    scale: Float[Array, " nv"],
) -> tuple[Float[Array, " nv"], Float[Array, " m"], Bool[Array, ""]]:
    """v (nv,) by convex laws, its impulses (m,), and whether it was found ().

    momentum (nv,): M v*. rows: those of each law. scale (nv,): a velocity by whose size rounding
    errors are measured.
    """
    # Velocities in units in which M has ones on its diagonal: rad/s and m/s are alike then.
    unit = 1 / jnp.sqrt(jnp.diag(M))
    least = jnp.max(jnp.abs(scale / unit))

    n, acting = len(momentum), [each for each in zip(rows, laws, strict=True) if len(each[0])]

    def residual(x: jax.Array) -> jax.Array:
        v = unit * x
        moved = [rows.times(law.impulses(rows.of(v)), n) for rows, law in acting]
        return unit * (product(M, v) - sum(moved, momentum))

    def hessian(x: jax.Array) -> jax.Array:
        v = unit * x
        each = [rows.squared(law.slopes(rows.of(v)), n) for rows, law in acting]
        return unit[:, None] * sum(each, M) * unit

    def size(x: jax.Array) -> jax.Array:
        return jnp.maximum(jnp.max(jnp.abs(x)), least)

    x, solved = root(residual, guess / unit, ConvexNewton(hessian, size))
    v = unit * x
    found = [law.impulses(own.of(v)).ravel() for own, law in zip(rows, laws, strict=True)]
    return v, jnp.concatenate(found), solved


def coulomb_velocity(
    M: Float[Array, "nv nv"],
    free: Float[Array, " nv"],
    A: Float[Array, "m nv"],
    laws: Sequence[Law],
    guess: Float[Array, " nv"],
    last: Float[Array, " m"],
    mobility: Sequence[Float[Array, "k 1"]],
    soft: float,
) -> tuple[Float[Array, " nv"], Float[Array, " m"], Float[Array, ""], Bool[Array, ""]]:
    """v (nv,) by any laws, its impulses (m,), the rounds (), and whether it was found ().

    free (nv,): v*. guess, last: of v and of the impulses. mobility: the inverse masses that the
    impulses of each law move. soft: a softness in parts of these with which there always is a
    solution, which is taken where there is none near it by laws that are harder.
    """
    nv = len(free)

    def softened(least: float) -> list[jax.Array]:
        """By what the laws are multiplied to be no harder than this, in parts of the masses."""
        each = zip(laws, mobility, strict=True)
        return [jnp.maximum(least * inverse / law.softness, 1) for law, inverse in each]

    def flat(each: Sequence[jax.Array]) -> jax.Array:
        wide = [jnp.broadcast_to(a, law.target.shape) for a, law in zip(each, laws, strict=True)]
        return jnp.concatenate([a.ravel() for a in wide])

    # Velocities in units in which M has ones on its diagonal: rad/s and m/s are alike then. What
    # the impulses do is measured likewise.
    unit, push = 1 / jnp.sqrt(jnp.diag(M)), jnp.sqrt(flat(mobility))
    scale = jnp.max(jnp.abs(free / unit))

    def about(p: jax.Array, least: float) -> list[Law]:
        """Laws no harder than `least` with the same solution, which has the impulses p / push."""
        each = zip(laws, parts(laws, p / push), softened(least), strict=True)
        return [law.about(g, factor) for law, g, factor in each]

    def balance(laws: Sequence[Law], x: jax.Array) -> jax.Array:
        v = unit * x
        return unit * (product(M, v - free) - product(A.T, impulses(laws, A, v)))

    def slope(laws: Sequence[Law], x: jax.Array) -> jax.Array:
        return unit[:, None] * (M + product(A.T, steep(laws, A, unit * x, A))) * unit

    def associated(lower: jax.Array, softness: jax.Array) -> list[Law]:
        start, found = 0, []
        for law, factor in zip(laws, softened(soft), strict=True):
            k = len(law.target)
            found.append(law.softer(softness * factor).convex(lower[start : start + k]))
            start += k
        return found

    def shift(x: jax.Array) -> jax.Array:
        each = zip(laws, parts(laws, product(A, unit * x)), softened(soft), strict=True)
        return jnp.concatenate([law.softer(factor).excess(u) for law, u, factor in each])

    # The root is differentiated with laws as soft as the masses: with steep ones most digits of
    # what slides would be lost.
    def residual(y: jax.Array) -> jax.Array:
        x, p = y[:nv], y[nv:]
        moved = unit * (product(M, unit * x - free) - product(A.T, p / push))
        return jnp.concatenate((moved, p - push * impulses(about(p, 1.0), A, unit * x)))

    def of_residual(x: jax.Array, p: jax.Array) -> jax.Array:
        each = zip(laws, softened(1.0), strict=True)
        more = flat([(factor - 1) * law.softness for law, factor in each])
        rows = jnp.concatenate((A * unit, -jnp.diag(more / push)), axis=1)
        lower = push[:, None] * steep(about(p, 1.0), A, unit * x, rows)
        upper = jnp.concatenate((M * unit, -A.T / push), axis=1)
        eye = jnp.eye(len(A), nv + len(A), nv, dtype=x.dtype)
        return jnp.concatenate((unit[:, None] * upper, eye + lower))

    search = ConvexRounds(
        relaxed=lambda x, p: balance(about(p, soft), x),
        passed=lambda x, p: push * impulses(about(p, soft), A, unit * x),
        jacobian=lambda x, p: slope(about(p, soft), x),
        convex=lambda x, lower, softness: balance(associated(lower, softness), x),
        hessian=lambda x, lower, softness: slope(associated(lower, softness), x),
        shift=shift,
        size=lambda x: jnp.maximum(jnp.max(jnp.abs(x)), scale),
        derivative=of_residual,
        n=nv,
    )
    y, solved, rounds = found(residual, jnp.concatenate((guess / unit, push * last)), search)
    return unit * y[:nv], y[nv:] / push, rounds, solved


def hardness(dtype: jnp.dtype) -> tuple[float, float]:
    """The softness of impulses, in parts of the inverse mass that they move; and a softer one."""
    hard = max(1e-7, 1e3 * float(jnp.finfo(dtype).eps))
    return hard, max(hard, 1e-5)
