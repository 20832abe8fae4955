"""Projection of positions onto the constraints.

From q the correction is along M^-1 A^T, the shortest way in the metric of M:

    q' = q exp(-Y x),    g(q') = 0,    Y = M^-1 A(q)^T

The matrices stay those of the first configuration, so each correction reduces the error by a factor
of the order of |g|. Derivatives are those of the root; NaN where it ceases to exist.

Redundant equations have a solution as long as they are consistent. A change of the machine that
makes them inconsistent has no derivative, but least squares would return a number all the same. The
residual of the linearized equations detects this.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..dynamics.crba import crba
from ..solvers.corrections import Corrections
from ..solvers.linear import factor_from_tips, minimum_norm, product
from ..solvers.root import root
from ..system.kinematic_tree import Tree
from .equations import equations, holonomic


@jax.custom_jvp
def preserving_constraints(
    value: Float[Array, " n"], error: Float[Array, " m"], scale: Float[Array, ""]
) -> Float[Array, " n"]:
    """The value (n,), whose derivative is NaN where that of the error (m,) is not zero.

    error: the residual of the equations that determine the value. scale (): by how much an error
    changes with the value. In forward mode only: reverse mode is that of the value.
    """
    return value


@preserving_constraints.defjvp
def _(primals: tuple, tangents: tuple) -> tuple[jax.Array, jax.Array]:
    value, _, scale = primals
    change, left, _ = tangents
    n, eps = len(value), float(jnp.finfo(value.dtype).eps)

    # Solving with the identity, for what is done in a solution is left out of reverse mode.
    def checked(_: object, both: jax.Array) -> jax.Array:
        size = jnp.max(jnp.abs(both[:n]), initial=0)
        # Below the second of them is the rounding of changes of the size of one.
        tolerance = eps**0.4 * scale * size + eps**0.6
        kept = jnp.max(jnp.abs(both[n:]), initial=0) <= tolerance
        return jnp.where(kept, both, jnp.nan)

    both = jax.lax.custom_linear_solve(
        lambda x: x, jnp.concatenate((change, left)), checked, lambda _, x: x
    )
    return value, both[:n]


def consistent_position(
    tree: Tree, q: Float[Array, " nq"]
) -> tuple[Float[Array, " nq"], Bool[Array, ""]]:
    """The configuration (nq,) near q (nq,) on the constraints, and whether it was found ().

    q itself where it was not.
    """
    if not holonomic(tree.system.constraints).any():
        return q, jnp.asarray(True)
    ways, half, size = ways_back(tree, q)
    x, converged = correction(tree, q, ways, half)
    near = reached(tree, q, ways, jnp.where(converged, x, 0 * x))
    left = equations(tree, near).residual()
    return preserving_constraints(near, left, size), converged


def ways_back(
    tree: Tree, q: Float[Array, " nq"]
) -> tuple[Float[Array, "nv p"], Float[Array, "nv p"], Float[Array, ""]]:
    """Y (nv, p) over a scale, so that x is of the size of g; half (nv, p); the largest of A ().

    half^T half is A Y (p, p) over the same scale.
    """
    rows = np.flatnonzero(holonomic(tree.system.constraints))
    A = equations(tree, q).jacobian()[rows]
    U = factor_from_tips(crba(tree, q))
    half = jax.scipy.linalg.solve_triangular(U, A.T)
    Y = jax.scipy.linalg.solve_triangular(U, half, trans=1)
    scale = jax.lax.stop_gradient(jnp.sum(half * half) / len(rows))
    scale = jnp.where(scale > 0, scale, 1)
    return Y / scale, half / jnp.sqrt(scale), jnp.max(jnp.abs(A))


def reached(
    tree: Tree, q: Float[Array, " nq"], ways: Float[Array, "nv p"], x: Float[Array, " p"]
) -> Float[Array, " nq"]:
    """q' (nq,), from q (nq,) by the correction x (p,)."""
    return tree.topology.manifold.retract(q, -product(ways, x))


def correction(
    tree: Tree, q: Float[Array, " nq"], ways: Float[Array, "nv p"], half: Float[Array, "nv p"]
) -> tuple[Float[Array, " p"], Bool[Array, ""]]:
    """The x (p,) with g(q') = 0, and whether it was found ()."""

    def residual(x: jax.Array) -> jax.Array:
        return equations(tree, reached(tree, q, ways, x)).residual()

    inverse = minimum_norm(product(half.T, half), half)

    def change(x: jax.Array, b: jax.Array) -> jax.Array:
        return inverse(residual(x) - b)

    return root(residual, jnp.zeros(half.shape[1], q.dtype), Corrections(change))
