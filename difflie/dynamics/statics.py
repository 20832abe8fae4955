"""Force backpropagation J^T F, from wrenches on the bodies to joint forces, in O(n).

F_i = F_ext_i + sum over children of Ad_{X_c}^-T F_c,      tau_i = S_i . F_i
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..spatial import Force, Motion, Screw, Transform
from ..system.kinematic_tree import Tree
from ..system.traverse import backward_pass


def backpropagated(
    tree: Tree, poses: Transform, screws: Screw | Motion, wrenches: Force
) -> Float[Array, " n_dofs"]:
    """The force along every dof (n_dofs,) of wrenches on the dofs (n_dofs,), in their frames.

    poses, screws (n_dofs,): `tree.poses` and `tree.screws` at the configuration.
    """

    def backpropagate(children: Force, dof):
        pose, screw, force = dof
        force = force + children
        return pose.force(force), screw.dot(force)

    no_force = Force.zero(jnp.zeros((), tree.dtype))
    return backward_pass(tree.topology, backpropagate, no_force, (poses, screws, wrenches))
