"""Recursive Newton-Euler: inverse dynamics in O(n) (Luh, Walker, Paul 1980; Reuss 2002 (33)-(37)).

V_i = Ad_{X_i}^-1 V_p + S_i v_i
A_i = Ad_{X_i}^-1 A_p + S_i a_i + ad(V_i) S_i v_i + b_i,      A_world = (0, -g)
F_i = I_i A_i - ad(V_i)^T I_i V_i - F_ext + sum over children of Ad_{X_c}^-T F_c
tau_i = S_i . F_i + armature_i a_i

with b_i the bias acceleration of the joint, at its last dof. What inertances add is in
`inertances`.
"""

from __future__ import annotations

from jaxtyping import Array, Float

from ..system.kinematic_tree import Tree
from ..system.traverse import forward_pass, tree_algorithm
from .inertances import inertance_force
from .statics import backpropagated


@tree_algorithm
def rnea(
    tree: Tree,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    a: Float[Array, " nv"],
    wrench: Float[Array, "nb 6"] | None = None,
) -> Float[Array, " nv"]:
    """The generalised force (nv,) that gives the acceleration a (nv,) at (q (nq,), v (nv,)).

    wrench (nb, 6): external wrenches (moment N m, force N) on the bodies, in body frames.
    """
    t = tree.topology
    poses = tree.poses(q)
    rates, accelerations = tree.rates(v), tree.rates(a)
    screws, bias = tree.screws(q), tree.bias(q, rates)
    external = None if wrench is None else tree.dof_forces(wrench)

    def motion_and_force(parent, dof):
        velocity, acceleration = parent
        pose, screw, rate, accelerated, inertia, bias, external = dof
        joint = screw.times(rate)
        velocity = joint.add_to(pose.inverse_motion(velocity))
        acceleration = screw.times(accelerated).add_to(pose.inverse_motion(acceleration))
        acceleration = acceleration + joint.bracket(velocity)
        if bias is not None:
            acceleration = acceleration + bias
        force = inertia @ acceleration + velocity.cross_force(inertia @ velocity)
        if external is not None:
            force = force - external
        return (velocity, acceleration), force

    forces = forward_pass(
        t,
        motion_and_force,
        (tree.zero_twist, tree.base_acceleration),
        (poses, screws, rates, accelerations, tree.inertia, bias, external),
    )
    efforts = backpropagated(tree, poses, screws, forces)
    tau = tree.generalised(efforts + tree.armature * accelerations)
    return tau + inertance_force(tree, q, v, a) if tree.inerters else tau
