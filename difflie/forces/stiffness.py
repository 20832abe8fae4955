"""The stiffness matrix of a system's springs."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..system.arguments import checked
from ..system.kinematic_tree import Tree
from ..system.system import System
from .energy import storing
from .passive import joint_force
from .points import coupling_force


def stiffness_matrix(system: System, q: Any) -> Float[Array, "nv nv"]:
    """The stiffness matrix K (nv, nv): minus the derivative of the springs' generalised force.

    In N m/rad or N/m, at q (nq,). The springs are those at the joints, the elastic couplings, and
    contacts and joint stops with the conservative part of their force; gravity is not included (see
    `inverse_dynamics_derivatives`). Column k is the derivative along `integrate(system, q, s e_k)`
    at s = 0. The symmetric part of K is the Hessian of `elastic_energy` along `integrate`. K itself
    is symmetric where all joints have plain coordinates, and where the springs balance. Otherwise,
    in the dofs of a spherical or free joint, K - K^T is the Lie bracket with the springs' moment,
    since rotations do not commute.
    """
    (q,) = checked(system, q=(q, (system.nq,)))
    return _stiffness_matrix(Tree.of(system), q)


@jax.jit
def _stiffness_matrix(tree, q):
    still = jnp.zeros(tree.topology.nv, q.dtype)
    springs = storing(tree.system.couplings)

    def force(step):
        moved = tree.topology.manifold.retract(q, step)
        at_joints = joint_force(tree, moved, still)
        return at_joints + coupling_force(tree, springs, moved, still)

    return -jax.jacfwd(force)(still)
