"""Stribeck friction: the extra friction near zero velocity, which must be overcome to move."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..system.fields import number
from ..system.system import Joints
from ..system.topology import Topology
from .at_joint import AtJoint, JointCoupling


class Stribeck(AtJoint, JointCoupling):
    """The Stribeck friction of a joint, which fades with speed, added to its Coulomb friction.

        effort = -breakaway exp(-(v / v_s)^2) tanh(v / v0)

    at a joint with one degree of freedom. breakaway in N m or N: by how much friction near zero
    velocity exceeds that at high speed. v_s = stribeck_velocity in rad/s or m/s, over which it
    fades; both are scalars. v0 is the joint's own `friction_velocity`, over which its Coulomb
    friction rises, so that both are one curve. It always dissipates. Where v0 is not well below v_s
    the peak is less than breakaway. Armstrong-Hélouvry, Dupont and Canudas de Wit 1994, section 2.
    """

    joint: str = eqx.field(static=True)
    breakaway: jax.Array = eqx.field(converter=number(unit="N m or N", nonnegative=True))
    stribeck_velocity: jax.Array = eqx.field(converter=number(unit="rad/s or m/s", positive=True))

    def efforts(
        self, t: Topology, joints: Joints, x: Float[Array, " n_dofs"], rate: Float[Array, " n_dofs"]
    ) -> Float[Array, " n_dofs"]:
        k = self.dof(t)
        v = rate[k]
        fading = jnp.exp(-((v / self.stribeck_velocity) ** 2))
        effort = -self.breakaway * fading * jnp.tanh(v / joints.friction_velocity[k])
        return jnp.zeros_like(rate).at[k].set(effort)
