"""Articulated-body recursion of a time step: Newton's method for discrete inverse dynamics in O(n).

The momenta at the start of a step (`discrete_inverse_dynamics`, same symbols) depend on the rate w
of the step through the displacements X_i = h V_i, and

dV_i = A_i dV_p + b_i dw_i,     A_i = dexp_{X_i}^-1 dexp_{Y_i} Ad_{f_i}^-1,  Y_i = Ad_{f_i}^-1 X_p
                                b_i = dexp_{X_i}^-1 Ad_{exp Y_i} dexp_{h S_i w_i} S_i
dm_i = K_i dV_i

so that the Newton step follows as accelerations do in the articulated-body algorithm, to which it
reduces for h = 0. The matrices are no longer symmetric:

backward  D_i = S_i . KA_i b_i + slope_i,  u_i = target_i - S_i . mA_i
          KA_p += Ad_{f_i}^-T (KA_i - KA_i b_i S_i^T KA_i / D_i) A_i,       KA_i begins with K_i
          mA_p += Ad_{f_i}^-T (mA_i + KA_i b_i u_i / D_i),                  mA_i with m_i
forward   dw_i = (u_i - S_i . KA_i A_i dV_p) / D_i
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..groups import coefficients as co
from ..groups.components import Matrix, Vector
from ..spatial import Force, Motion, MotionToForce, MotionTransform, Transform
from ..system.kinematic_tree import Tree
from ..system.traverse import backward_pass, forward_pass, tree_algorithm
from .discrete_inverse_dynamics import displacements


@tree_algorithm
def newton_step(
    tree: Tree,
    q: Float[Array, " nq"],
    w: Float[Array, " nv"],
    h: jax.Array | float,
    target: Float[Array, " nv"],
    slope: Float[Array, " nv"],
) -> Float[Array, " nv"]:
    """The change dw (nv,) with momenta(q, w + dw, h)[0] + slope dw = target, to first order.

    q (nq,), w (nv,), h (s), target and slope (nv,). Affine in the target. Only for systems without
    mimic joints.
    """
    t = tree.topology
    screws, poses = tree.fixed_screws, tree.poses(q)
    # 1 at the first dof of a joint, 0 at its others.
    is_first = (t.motion_start == np.arange(t.n_dofs)).astype(q.dtype)
    is_first = None if is_first.all() else is_first
    moved = displacements(tree, poses, w * h)
    still = tree.zero_twist

    def articulate(children, dof):
        pose, screw, moved, is_first, inertia, target, slope = dof
        momentum = inertia @ (moved.total * (1 / h))
        backward = MotionTransform.dexp_inv(moved.total)
        gradient = backward.transposed_times(MotionToForce.of_rigid(inertia))
        gradient = gradient + _through_dexp(moved.total, momentum, h) + children[0]
        momentum = backward.transposed_times(momentum) + children[1]

        unit = screw.add_to(still)
        column = unit if is_first is None else MotionTransform.dexp(moved.joint) @ unit
        column = backward @ Transform.exp(moved.above).motion(column)
        transfer = backward @ MotionTransform.dexp(moved.above)
        if is_first is not None:
            # The dofs of a whole joint share one displacement; the first one passes it on.
            transfer = jax.tree.map(lambda a, b: jnp.where(is_first == 1, a, b), transfer, identity)
        transfer = transfer @ MotionTransform.of_inverse(pose)

        response, along = gradient @ column, gradient.transposed_times(unit)
        inverse = 1 / (screw.dot(response) + slope)
        remaining = target - screw.dot(momentum)
        projected = gradient.minus_outer(response * inverse, along) @ transfer
        momentum = momentum + response * (inverse * remaining)
        value = projected.change_frame(pose), pose.force(momentum)
        return value, (transfer, column, along, inverse, remaining)

    zero = jnp.zeros((), tree.dtype)
    nothing = (
        MotionToForce(*[Matrix(*[zero] * 9)] * 4),
        Force.zero(zero),
    )
    identity = MotionTransform(Matrix.scaled_identity(zero + 1), Matrix.scaled_identity(zero))
    slopes = tree.armature + tree.rates(slope)
    targets = tree.rates(target) - tree.armature * tree.rates(w)
    data = (poses, screws, moved, is_first, tree.inertia, targets, slopes)
    reduced = backward_pass(t, articulate, nothing, data)

    def correct(parent: Motion, dof):
        transfer, column, along, inverse, remaining = dof
        change = transfer @ parent
        rate = inverse * (remaining - change.dot(along))
        return change + column * rate, rate

    return tree.generalised(forward_pass(t, correct, still, reduced))


def _through_dexp(moved: Motion, momentum: Force, h: jax.Array | float) -> MotionToForce:
    """The derivative of dexp_{h V}^-T P with respect to V at fixed P.

    As that on SO(3), in dual numbers w = angular + e linear and f = force + e moment.
    """

    def gradient(w: Vector, f: Vector) -> Matrix:
        x, turn = w.square(), w.cross(f)
        quadratic = Matrix.skew(turn) + Matrix.skew(w) @ Matrix.skew(f)
        return Matrix.skew(f * -0.5) - quadratic * co.k_g(x) + (w.cross(turn) * co.k_h(x)).outer(w)

    point, direction = (moved.angular, momentum.force), (moved.linear, momentum.moment)
    real, dual = jax.jvp(gradient, point, direction)
    return MotionToForce(dual * h, real * h, real * h, Matrix.scaled_identity(0 * h))
