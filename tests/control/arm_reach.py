"""The reach of the arm with seven joints, of which crocoddyl's optima are known."""

import dataclasses
from pathlib import Path

import jax.numpy as jnp
import numpy as np

import difflie as dl
from difflie import control as dc

FILE = Path(dl.__file__).parent / "data" / "arm7.urdf"


def arm_reach(share):
    """The problem with a share of the torques of the joints, without their friction."""
    system = dl.load(FILE)
    none = jnp.zeros_like(system.joints.damping)
    joints = dataclasses.replace(system.joints, damping=none, friction=none)
    system = dataclasses.replace(system, joints=joints)
    c, s = np.cos(0.6), np.sin(0.6)
    goal = np.eye(4)
    goal[:3, :3] = [[c, s, 0], [s, -c, 0], [0, 0, -1]]
    goal[:3, 3] = [0.35, 0.45, 0.25]
    q0 = jnp.array([0.0, -0.6, 0.0, -2.2, 0.0, 1.7, 0.8])
    most = share * jnp.array([87.0, 87.0, 87.0, 87.0, 12.0, 12.0, 12.0])
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
