"""Singular configurations, at which constraints become dependent that are independent elsewhere.

There a machine has more independent velocities than elsewhere, such as a parallelogram whose bars
are collinear: the constraints do not determine how the motion continues, and multipliers may grow
without bound on the way there.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..dynamics.crba import crba
from ..system.kinematic_tree import Tree
from .equations import equations
from .unilateral import bilateral


def independence(tree: Tree, q: Float[Array, " nq"]) -> Float[Array, " n"]:
    """Singular values (min(m, nv),) of A M^-1/2, the largest first.

    A (m, nv), M (nv, nv) at the configuration q (nq,). They do not depend on the choice of the
    velocities.
    """
    A = equations(bilateral(tree), q).jacobian()
    factor = jnp.linalg.cholesky(crba(tree, q))
    scaled = jax.scipy.linalg.solve_triangular(factor, A.T, lower=True)
    return jnp.linalg.svd(scaled, compute_uv=False)


class Margin(eqx.Module):
    """How far a motion is from losing the rank that its constraints have at the start.

    rank (): that at the start; value (): the singular value of `independence` that would be lost;
    lost (): whether it is zero, or would be within another such step.
    """

    rank: jax.Array
    value: jax.Array
    lost: jax.Array

    @staticmethod
    def start(tree: Tree, q: Float[Array, " nq"]) -> Margin | None:
        """The margin at the configuration q (nq,); None for a system without constraints."""
        if not bilateral(tree.system).constraints:
            return None
        values = independence(tree, q)
        rank = jnp.sum(values > _rounding(values))
        return Margin(rank, values[rank - 1], jnp.asarray(False))

    def at(self, tree: Tree, q: Float[Array, " nq"]) -> Margin:
        """The margin at the configuration q (nq,) one step later."""
        values = independence(tree, q)
        value = values[self.rank - 1]
        lost = (value <= self.value - value) | (value <= _rounding(values))
        return Margin(self.rank, value, lost)


def _rounding(values: jax.Array) -> jax.Array:
    return 1e3 * jnp.finfo(values.dtype).eps * values[0]
