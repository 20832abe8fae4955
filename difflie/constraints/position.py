"""Projection of positions onto the constraints.

From q the correction is along M^-1 A^T, the shortest way in the metric of M:

    q' = q exp(-Y x),    g(q') = 0,    Y = M^-1 A(q)^T

The matrices stay those of the first configuration, so each correction reduces the error by a factor
of the order of |g|. Derivatives are those of the root; NaN where it ceases to exist.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..dynamics.crba import crba
from ..solvers.corrections import Corrections
from ..solvers.linear import minimum_norm, product
from ..solvers.root import root
from ..system.kinematic_tree import Tree
from .consistency import while_kept
from .equations import equations, holonomic


def consistent_position(
    tree: Tree, q: Float[Array, " nq"]
) -> tuple[Float[Array, " nq"], Bool[Array, ""]]:
    """The configuration (nq,) near q (nq,) on the constraints, and whether it was found ().

    q itself where it was not.
    """
    rows = np.flatnonzero(holonomic(tree.system.constraints))
    if not rows.size:
        return q, jnp.asarray(True)
    A = equations(tree, q).jacobian()[rows]
    Y = jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(crba(tree, q)), A.T)
    gram = product(A, Y)
    # The unknowns are of the size of g.
    scale = jax.lax.stop_gradient(jnp.trace(gram) / len(rows))
    scale = jnp.where(scale > 0, scale, 1)
    Y, gram = Y / scale, gram / scale

    def reached(x: jax.Array) -> jax.Array:
        return tree.topology.manifold.retract(q, -product(Y, x))

    def residual(x: jax.Array) -> jax.Array:
        return equations(tree, reached(x)).residual()

    inverse = minimum_norm(gram)

    def correction(x: jax.Array, b: jax.Array) -> jax.Array:
        return inverse(residual(x) - b)

    zero = jnp.zeros(len(rows), q.dtype)
    x, converged = root(residual, zero, Corrections(correction))
    near = reached(jnp.where(converged, x, zero))
    left = equations(tree, near).residual()
    return while_kept(near, left, jnp.max(jnp.abs(A))), converged
