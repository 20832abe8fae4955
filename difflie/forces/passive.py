"""Forces a system exerts by itself: those of its joints and of its couplings."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..system.linkage import Linkage, linkage
from ..system.system import System
from ..system.validation import checked
from .at_joint import JointCoupling
from .points import coupling_force


def passive_force(system: System, q: Any, v: Any) -> Float[Array, " nv"]:
    """The generalised force (nv,) of springs, dampers, friction and couplings, in N m or N.

    Row by row -stiffness (q - rest) - damping v - friction tanh(v / friction_velocity): Coulomb
    friction, smoothed over the velocity `friction_velocity`, so that it has a derivative at rest.
    To it come the forces of the system's couplings (see `attach`), as the sum of J^T F over their
    points, and of the stops, friction and forces at its joints.
    q (nq,), v (nv,); raises as `checked` does.
    """
    q, v = checked(system, q=(q, (system.nq,)), v=(v, (system.nv,)))
    return _passive(linkage(system), q, v)


def passive(
    linkage: Linkage, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> Float[Array, " nv"]:
    """`passive_force` (nv,) without checks."""
    return joint_force(linkage, q, v) + coupling_force(linkage, linkage.system.couplings, q, v)


_passive = jax.jit(passive)


def joint_stretch(linkage: Linkage, q: Float[Array, " nq"]) -> Float[Array, " n_rows"]:
    """How far the spring of every row is from rest (n_rows,), mimic joints included."""
    stretch = linkage.coordinates(q) - linkage.system.joints.rest
    # Spherical and free joints, whose rows have no coordinate, have no spring.
    return jnp.where(linkage.topology.row_coordinate >= 0, stretch, jnp.zeros_like(stretch))


def joint_force(
    linkage: Linkage, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> Float[Array, " nv"]:
    """What springs, damping, friction, stops and forces at the joints exert (nv,).

    Mimic joints act on the joint they follow.
    """
    t, joints = linkage.topology, linkage.system.joints
    stretch, rate = joint_stretch(linkage, q), linkage.rates(v)
    smooth = jnp.tanh(rate / joints.friction_velocity)
    force = -(joints.stiffness * stretch + joints.damping * rate + joints.friction * smooth)
    acting = [c for c in linkage.system.couplings if isinstance(c, JointCoupling)]
    if acting:
        x = linkage.coordinates(q)
        force = force + sum(c.efforts(t, joints, x, rate) for c in acting)
    return linkage.generalised(force)
