"""Problems with known optima."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np

import difflie as dl
from difflie import control as dc


def turned(x, y, z):
    """Rz(z) Ry(y) Rx(x) (3, 3)."""
    axes = np.eye(3)
    return np.asarray(
        dl.so3.exp(jnp.asarray(z * axes[2]))
        @ dl.so3.exp(jnp.asarray(y * axes[1]))
        @ dl.so3.exp(jnp.asarray(x * axes[0]))
    )


def arm_reach(box):
    """The hand of arm7 reaches a pose; torques within a share of the motors' limits, None for all.

    Damping, which Crocoddyl does not know, is left out.
    """
    system = dl.load("difflie/data/arm7.urdf")
    joints = replace(system.joints, damping=0 * system.joints.damping)
    system = replace(system, joints=replace(joints, friction=0 * joints.friction))
    q0 = jnp.array([0.0, -0.6, 0.0, -2.2, 0.0, 1.7, 0.8])
    goal = np.eye(4)
    goal[:3, :3], goal[:3, 3] = turned(np.pi, 0.0, 0.6), [0.35, 0.45, 0.25]
    most = np.array([87.0, 87.0, 87.0, 87.0, 12.0, 12.0, 12.0]) * (np.inf if box is None else box)
    return dc.Problem(
        system,
        q0,
        jnp.zeros(7),
        dt=1e-2,
        steps=100,
        running=[dc.Pose("payload", goal, 1.0), dc.State(q0, 0.1), dc.Effort(1e-3)],
        final=[dc.Pose("payload", goal, 1e3), dc.Velocity(10.0)],
        limits=dc.Limits(u_lower=-most, u_upper=most),
    )
