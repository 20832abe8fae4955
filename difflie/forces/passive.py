"""Forces a joint exerts by itself: viscous damping and Coulomb friction."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ..system.system import System
from ..system.validation import checked


def passive_force(system: System, q: Any, v: Any) -> jax.Array:
    """The generalised force (nv,) of damping and friction, in N m or N.

    Row by row -damping v - friction tanh(v / friction_velocity): Coulomb friction, smoothed over
    the velocity `friction_velocity`, so that it has a derivative at rest. q (nq,), v (nv,); raises
    as `checked` does.
    """
    q, v = checked(system, q=(q, (system.nq,)), v=(v, (system.nv,)))
    return joint_friction(system, v)


def joint_friction(system: System, v: jax.Array) -> jax.Array:
    """`passive_force` without checks; mimic joints act on the joint they follow."""
    t, joints = system.topology, system.joints
    if not t.mimic_rows.size:
        return _efforts(joints, v)
    ratio = jnp.ones(t.n_rows, v.dtype).at[t.mimic_rows].set(joints.multiplier)
    efforts = ratio * _efforts(joints, ratio * v[t.row_velocity])
    return jax.ops.segment_sum(efforts, t.row_velocity, num_segments=t.nv)


def _efforts(joints, rates: jax.Array) -> jax.Array:
    smooth = jnp.tanh(rates / joints.friction_velocity)
    return -(joints.damping * rates + joints.friction * smooth)
