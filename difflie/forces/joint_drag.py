"""The drag of a fluid at a joint, which grows with the square of its rate."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..system.fields import number
from ..system.system import Joints
from ..system.topology import Topology
from .at_joint import AtJoint, JointCoupling


class JointDrag(AtJoint, JointCoupling):
    """Air or another fluid at rest that a joint with one degree of freedom moves a body through.

        effort = -drag v^2 tanh(v / v0)

    in N m or N, with v the joint's rate: -drag v |v|, made smooth at rest over the joint's own
    `friction_velocity` v0, as Coulomb friction is. drag in N m s^2 or N s^2/m^2, a scalar: half the
    fluid's density times a drag coefficient, times the area's third moment about the axis (or the
    area). It always dissipates. Where a joint carries another, only the rate between the two
    counts. Batchelor 1967, chapter 5.
    """

    joint: str = eqx.field(static=True)
    drag: jax.Array = eqx.field(converter=number(unit="N m s^2 or N s^2/m^2", nonnegative=True))

    def efforts(
        self, t: Topology, joints: Joints, x: Float[Array, " n_dofs"], rate: Float[Array, " n_dofs"]
    ) -> Float[Array, " n_dofs"]:
        k = self.dof(t)
        v = rate[k]
        effort = -self.drag * v**2 * jnp.tanh(v / joints.friction_velocity[k])
        return jnp.zeros_like(rate).at[k].set(effort)
