"""Articulated-body algorithm: forward dynamics in O(n) (Featherstone 1983; Reuss 2002 (38)-(43)).

forward   V_i = Ad_{X_i}^-1 V_p + S_i v_i,      c_i = ad(V_i) S_i v_i + b_i
          p_i = -ad(V_i)^T I_i V_i - F_ext
backward  U_i = IA_i S_i,  D_i = S_i . U_i + armature_i,  u_i = tau_i - S_i . pA_i
          IA_p += Ad_{X_i}^-T (IA_i - U_i U_i^T / D_i) Ad_{X_i}^-1
          pA_p += Ad_{X_i}^-T (pA_i + Ia_i c_i + U_i u_i / D_i)
forward   a_i = (u_i - U_i . A'_i) / D_i,  A'_i = Ad_{X_i}^-1 A_p + c_i,  A_i = A'_i + S_i a_i

with b_i the bias acceleration of the joint, at its last dof.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..spatial import ArticulatedInertia, Force
from ..system.kinematic_tree import Tree
from ..system.traverse import backward_pass, forward_pass, tree_algorithm


@tree_algorithm
def aba(
    tree: Tree,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    tau: Float[Array, " nv"],
    wrench: Float[Array, "nb 6"] | None = None,
) -> Float[Array, " nv"]:
    """The acceleration (nv,) under the generalised force tau (nv,) at (q (nq,), v (nv,)).

    wrench (nb, 6): external wrenches (moment N m, force N) on the bodies, in body frames. Only for
    systems without mimic joints and inerters, whose coordinates are independent.
    """
    t = tree.topology
    poses = tree.poses(q)
    rates = tree.rates(v)
    efforts = tree.rates(tau)
    screws, own = tree.screws(q), tree.bias(q, rates)
    external = None if wrench is None else tree.dof_forces(wrench)

    def velocity_and_bias(parent, dof):
        pose, screw, rate, inertia, own, external = dof
        joint = screw.times(rate)
        velocity = joint.add_to(pose.inverse_motion(parent))
        product = joint.bracket(velocity)
        if own is not None:
            product = product + own
        bias = velocity.cross_force(inertia @ velocity)
        if external is not None:
            bias = bias - external
        return velocity, (product, bias)

    products, biases = forward_pass(
        t,
        velocity_and_bias,
        tree.zero_twist,
        (poses, screws, rates, tree.inertia, own, external),
    )

    def articulate(children, dof):
        pose, screw, inertia, bias, product, effort, armature = dof
        articulated = ArticulatedInertia.of_rigid(inertia) + children[0]
        bias = bias + children[1]
        column = screw.column(articulated)
        inverse = 1 / (screw.dot(column) + armature)
        remaining = effort - screw.dot(bias)
        projected = articulated.minus_outer(column, inverse)
        force = bias + projected @ product + column * (inverse * remaining)
        return (projected.change_frame(pose), pose.force(force)), (column, inverse, remaining)

    zero = jnp.zeros((), tree.dtype)
    nothing = ArticulatedInertia.zero(zero), Force.zero(zero)
    columns, inverses, remaining = backward_pass(
        t,
        articulate,
        nothing,
        (poses, screws, tree.inertia, biases, products, efforts, tree.armature),
    )

    def accelerate(parent, dof):
        pose, screw, product, column, inverse, remaining = dof
        acceleration = pose.inverse_motion(parent) + product
        rate = inverse * (remaining - acceleration.dot(column))
        return screw.times(rate).add_to(acceleration), rate

    accelerations = forward_pass(
        t,
        accelerate,
        tree.base_acceleration,
        (poses, screws, products, columns, inverses, remaining),
    )
    return tree.generalised(accelerations)
