"""Forces a joint exerts by itself: springs, viscous damping and Coulomb friction."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ..system.rows import row_coordinates, row_rates
from ..system.system import System
from ..system.validation import checked


def passive_force(system: System, q: Any, v: Any) -> jax.Array:
    """The generalised force (nv,) of springs, damping and friction, in N m or N.

    Row by row -stiffness (q - rest) - damping v - friction tanh(v / friction_velocity): Coulomb
    friction, smoothed over the velocity `friction_velocity`, so that it has a derivative at rest.
    q (nq,), v (nv,); raises as `checked` does.
    """
    q, v = checked(system, q=(q, (system.nq,)), v=(v, (system.nv,)))
    return joint_force(system, q, v)


def joint_force(system: System, q: jax.Array, v: jax.Array) -> jax.Array:
    """`passive_force` without checks; mimic joints act on the joint they follow."""
    t, joints = system.topology, system.joints
    stretch = row_coordinates(t, joints, q) - joints.rest
    # Spherical and free joints, whose rows have no coordinate, have no spring.
    stretch = jnp.where(t.row_coordinate >= 0, stretch, jnp.zeros_like(stretch))
    rate = row_rates(t, joints, v)
    smooth = jnp.tanh(rate / joints.friction_velocity)
    force = -(joints.stiffness * stretch + joints.damping * rate + joints.friction * smooth)
    if not t.mimic_rows.size:
        return force
    ratio = jnp.ones(t.n_rows, v.dtype).at[t.mimic_rows].set(joints.multiplier)
    return jax.ops.segment_sum(ratio * force, t.row_velocity, num_segments=t.nv)
