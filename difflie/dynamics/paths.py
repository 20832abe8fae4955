"""Tables over the paths from the dofs to the world.

An n x n matrix whose entry (i, j) vanishes unless dof j moves dof i has as many numbers in row i as
there are dofs between it and the world: it is kept as a table (n_dofs, longest path), whose column
e belongs to the dof at depth e of the path. This is the sparsity that the branches of a tree leave
in its mass matrix (Featherstone 2005); the table of an unbranched chain is the matrix itself.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..spatial import Force, Motion, Screw, Transform
from ..system.kinematic_tree import Tree
from ..system.topology import Topology
from ..system.traverse import forward_pass


def projected(tree: Tree, poses: Transform, screws: Screw | Motion, wrenches: Force) -> jax.Array:
    """The table of S_j . F_i: the wrench on dof i (n_dofs,), in its own frame, along screw j.

    The forward pass expresses the screws in the frame of dof i: no digits are lost far from the
    world's origin.
    """
    t = tree.topology
    nothing = Motion.zero(jnp.zeros(t.depth.max(initial=-1) + 1, tree.armature.dtype))

    def project(path: Motion, dof):
        pose, screw, own, wrench = dof
        path = screw.times(own).add_to(pose.inverse_motion(path))
        return path, path.dot(wrench)

    data = (poses, screws, own(t, tree.armature.dtype), wrenches)
    return forward_pass(t, project, nothing, data)


def own(t: Topology, dtype: np.dtype) -> jax.Array:
    """The table (n_dofs, longest path) of the identity matrix: one at each dof's own depth."""
    return jnp.asarray(t.depth[:, None] == np.arange(t.depth.max(initial=-1) + 1), dtype)


def dense(t: Topology, table: jax.Array) -> Float[Array, "n_dofs n_dofs"]:
    """The lower triangular matrix (n_dofs, n_dofs) of a table."""
    return table[:, t.depth] * jnp.asarray(t.ancestor_mask, table.dtype)
