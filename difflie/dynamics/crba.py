"""Composite-rigid-body algorithm: the mass matrix (Walker, Orin 1982; Featherstone 2008, ch. 6).

backward  IC_i = I_i + sum over children of Ad_{X_c}^-T IC_c Ad_{X_c}^-1
          U_i = IC_i S_i: the momentum of all that dof i moves, at its unit rate
forward   M_ij = S_j . U_i for the dofs j that move dof i, and M_ji = M_ij;   M_ii += armature_i
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..groups.components import Vector
from ..spatial import Inertia, Symmetric
from ..system.kinematic_tree import Tree
from ..system.traverse import backward_pass, tree_algorithm
from .inertances import inertance_matrix
from .paths import dense, projected


@tree_algorithm
def crba(tree: Tree, q: Float[Array, " nq"]) -> Float[Array, "nv nv"]:
    """The mass matrix M(q) (nv, nv), exactly symmetric; with mimic joints G^T M_dofs G."""
    t = tree.topology
    poses, screws = tree.poses(q), tree.screws(q)

    def compose(children: Inertia, dof):
        pose, screw, inertia = dof
        composite = inertia + children
        return composite.change_frame(pose), composite @ screw.add_to(tree.zero_twist)

    zero = jnp.zeros((), tree.dtype)
    nothing = Inertia(zero, Vector(zero, zero, zero), Symmetric(*[zero] * 6))
    momenta = backward_pass(t, compose, nothing, (poses, screws, tree.inertia))
    lower = dense(t, projected(tree, poses, screws, momenta))
    below = jnp.asarray(~np.eye(t.n_dofs, dtype=bool), lower.dtype)
    matrix = lower + (lower * below).T + tree.armature[:, None] * (1 - below)
    M = jax.vmap(tree.generalised)(jax.vmap(tree.generalised)(matrix).T)
    return M + inertance_matrix(tree, q) if tree.inerters else M
