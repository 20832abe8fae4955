"""Discrete inverse dynamics: the momenta at both ends of a time step, in O(n).

Between q and q' = retract(q, h w) every body is assumed to move along one screw. With the kinetic
energy T of these motions and L_d(q, q') = h T, the momenta are -D1 L_d at the start and D2 L_d at
the end, the discrete Legendre transforms (Marsden and West 2001, 1.5). The recursion is that of
Lee, Liu, Park and Srinivasa 2018 and Fan, Schultz and Murphey 2018, extended to all joint types:

forward   X_i = log(exp(Ad_{f_i}^-1 X_p) exp(h S_i w_i)),      X_world = 0
          m_i = dexp_{X_i}^-T I_i X_i / h
backward  F_i = m_i + sum over children of Ad_{f_c}^-T F_c,     p_i = S_i . F_i         (start)
          F_i = Ad_{exp X_i}^T m_i + sum over children of Ad_{f'_c}^-T F_c, p_i' = S_i . F_i (end)

X_i is the displacement of the frame of dof i, in that frame; f_i and f'_i are its poses in the
frame of the dof before it, at q and q'. The dofs of a joint that moves as a whole share one
displacement along h S w, so its subspace must be constant. The rotors have the momenta
armature_i w_i; as in `rnea` they do not turn with the joint.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..spatial import Force, Motion, MotionTransform, Transform
from ..system.kinematic_tree import Tree
from ..system.topology import WORLD, Topology
from ..system.traverse import forward_pass, tree_algorithm
from .statics import backpropagated


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Displacements:
    """The displacements of the frames of the dofs in a step (n_dofs,), each in its own frame.

    above: of the frame before the joint. joint: along the joint. total: both in sequence. All dofs
    of a joint that moves as a whole have the values of the joint.
    """

    above: Motion
    joint: Motion
    total: Motion


def displacements(tree: Tree, poses: Transform, step: Float[Array, " nv"]) -> Displacements:
    """The displacements for a change `step` (nv,) of the coordinates, from the relative poses."""
    still = tree.zero_twist

    def displace(parent, dof):
        before, begun = parent
        pose, screw, step, is_last = dof
        above = pose.inverse_motion(before)
        joint = screw.times(step).add_to(still if begun is None else pose.inverse_motion(begun))
        total = above.then(joint)
        if is_last is None:
            return (total, None), (above, joint, total)

        def chosen(if_complete: Motion, otherwise: Motion) -> Motion:
            return jax.tree.map(lambda a, b: jnp.where(is_last == 1, a, b), if_complete, otherwise)

        return (chosen(total, above), chosen(still, joint)), (above, joint, total)

    t = tree.topology
    # 1 at the last dof of a joint, 0 where others follow.
    is_last = (t.motion_end == np.arange(t.n_dofs)).astype(step.dtype)
    is_last = None if is_last.all() else is_last
    start = (still, None if is_last is None else still)
    data = (poses, tree.fixed_screws, tree.rates(step), is_last)
    each = forward_pass(t, displace, start, data)
    return Displacements(*(tree.along_joints(motions) for motions in each))


def body_momenta(tree: Tree, moved: Motion, h: jax.Array | float) -> Force:
    """dexp_X^-T I X / h (n_dofs,): momenta of the bodies at the start of a step of h (s)."""
    return MotionTransform.dexp_inv(moved).transposed_times(tree.inertia @ (moved * (1 / h)))


@tree_algorithm
def momenta(
    tree: Tree, q: Float[Array, " nq"], w: Float[Array, " nv"], h: jax.Array | float
) -> tuple[Float[Array, " nv"], Float[Array, " nv"]]:
    """The momenta (nv,) at both ends of a step of h (s) from q (nq,) along w (nv,)."""
    poses = tree.poses(q)
    moved = displacements(tree, poses, w * h).total
    bodies = body_momenta(tree, moved, h)
    start = _generalised(tree, poses, bodies)
    poses = tree.poses(tree.topology.manifold.retract(q, w * h))
    end = _generalised(tree, poses, Transform.exp(moved).inverse_force(bodies))
    # Next to the world the momentum only changes frame. The same value, rounded only once.
    adjoint = tree.topology.manifold.adjoint
    (in_new_frame,) = jax.linear_transpose(lambda x: adjoint(w * h, x), w)(start)
    end = jnp.where(_next_to_world(tree.topology), in_new_frame, end)
    rotors = tree.generalised(tree.armature * tree.rates(w))
    return start + rotors, end + rotors


def _next_to_world(t: Topology) -> np.ndarray:
    """(nv,) whether a dof's joint, or the first part of it, begins at the world."""
    near = np.zeros(t.nv, dtype=bool)
    at_world = t.dof_parent[t.motion_start] == WORLD
    near[t.dof_velocity[at_world]] = True
    return near


def _generalised(tree: Tree, poses: Transform, momenta: Force) -> Float[Array, " nv"]:
    """The generalised momenta (nv,) of momenta of the dofs' bodies."""
    return tree.generalised(backpropagated(tree, poses, tree.fixed_screws, momenta))
