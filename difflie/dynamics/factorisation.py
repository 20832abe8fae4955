"""The factorisation M = L^T D L of the mass matrix along the tree.

L is unit lower triangular with L_ij = 0 unless dof j moves dof i, D is diagonal: elimination from
the tips to the root causes no fill-in (Featherstone 2005). The articulated
bodies give both without M (Rodriguez 1987; Ploen, Park 1999, Proposition 1, where L^T is
I + S^T G^T Pi and D is Omega):

backward  U_i = IA_i S_i,  D_i = S_i . U_i + armature_i
          IA_p += Ad_{X_i}^-T (IA_i - U_i U_i^T / D_i) Ad_{X_i}^-1
forward   L_ij = S_j . U_i / D_i for the dofs j that move dof i
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from ..spatial import ArticulatedInertia
from ..system.kinematic_tree import Tree
from ..system.topology import Topology
from ..system.traverse import backward_pass, forward_pass
from .paths import dense, own, projected


class Factorisation(eqx.Module):
    """M = L^T D L; vectors are (nv,), in the order of v.

    lower (nv, depth): the rows of L without their ones, each along its path from the world.
    diagonal (nv,): D, the articulated inertia along each degree of freedom in kg m^2 or kg;
    positive. topology: the tree of the system.
    """

    lower: jax.Array
    diagonal: jax.Array
    topology: Topology = eqx.field(static=True)

    def solve(self, b: ArrayLike) -> Float[Array, " nv"]:
        """M^-1 b (nv,) of b (nv,); the cost is the number of nonzero entries of L."""
        y = self._transposed_solve(jnp.asarray(b)) / self.diagonal
        return self._solve(y)

    def multiply(self, x: ArrayLike) -> Float[Array, " nv"]:
        """M x (nv,) of x (nv,); the cost is the number of nonzero entries of L."""
        y = self._multiply(jnp.asarray(x)) * self.diagonal
        return self._transposed_multiply(y)

    def matrices(self) -> tuple[Float[Array, "nv nv"], Float[Array, " nv"]]:
        """L (nv, nv), lower triangular, and D (nv,), both in the order of v."""
        t = self.topology
        lower = dense(t, self.lower + own(t, self.lower.dtype))
        return lower, self.diagonal

    def log_determinant(self) -> Float[Array, ""]:
        """log det M, a scalar."""
        return jnp.sum(jnp.log(self.diagonal))

    # Each pass carries one value per depth, for the dofs on the path to the world.

    def _solve(self, y: Float[Array, " nv"]) -> Float[Array, " nv"]:
        def visit(path, dof):
            lower, own, y = dof
            x = y - jnp.sum(lower * path)
            return path * (1 - own) + own * x, x

        return forward_pass(self.topology, visit, self._nothing, self._rows(y))

    def _multiply(self, x: Float[Array, " nv"]) -> Float[Array, " nv"]:
        def visit(path, dof):
            lower, own, x = dof
            return path * (1 - own) + own * x, x + jnp.sum(lower * path)

        return forward_pass(self.topology, visit, self._nothing, self._rows(x))

    def _transposed_solve(self, b: Float[Array, " nv"]) -> Float[Array, " nv"]:
        def visit(children, dof):
            lower, own, b = dof
            y = b - jnp.sum(own * children)
            return children + lower * y, y

        return backward_pass(self.topology, visit, self._nothing, self._rows(b))

    def _transposed_multiply(self, y: Float[Array, " nv"]) -> Float[Array, " nv"]:
        def visit(children, dof):
            lower, own, y = dof
            return children + lower * y, y + jnp.sum(own * children)

        return backward_pass(self.topology, visit, self._nothing, self._rows(y))

    def _rows(self, x: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        return self.lower, own(self.topology, self.lower.dtype), x

    @property
    def _nothing(self) -> jax.Array:
        return jnp.zeros(self.lower.shape[1:], self.lower.dtype)


def factorised(tree: Tree, q: Float[Array, " nq"]) -> Factorisation:
    """The factorisation of M(q (nq,)); for systems without mimic joints."""
    t = tree.topology
    poses, screws = tree.poses(q), tree.screws(q)

    def articulate(children, dof):
        pose, screw, inertia, armature = dof
        articulated = ArticulatedInertia.of_rigid(inertia) + children
        column = screw.column(articulated)
        diagonal = screw.dot(column) + armature
        remaining = articulated.minus_outer(column, 1 / diagonal)
        return remaining.change_frame(pose), (column, diagonal)

    nothing = ArticulatedInertia.zero(jnp.zeros((), tree.dtype))
    data = (poses, screws, tree.inertia, tree.armature)
    columns, diagonal = backward_pass(t, articulate, nothing, data)
    lower = projected(tree, poses, screws, columns * (1 / diagonal))
    return Factorisation(lower * (1 - own(t, lower.dtype)), diagonal, t)
