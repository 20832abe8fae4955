"""A disk that rolls in a circle on a plane, leaning inwards: the motion has a closed form.

J. I. Neimark and N. A. Fufaev, "Dynamics of Nonholonomic Systems", 1972. With the tilt b of the
axis n from the plane, the rate W of the precession about the vertical, w_n the rate about n, and
the moments I3 about n and I1 across,

    (I3 + m a^2) w_n W cos b - I1 W^2 sin b cos b + m g a sin b = 0
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from ...constraints import Frame, RollingDisk, constrain
from ...groups import quaternion
from ...system import Body, Free, chain
from .free_bodies import rotation, two_axes
from .problem import Problem, named

MASS, RADIUS, TILT, SPIN, GRAVITY = 1.4, 0.35, 0.2, 8.0, 9.81
ACROSS, AXIAL = MASS * RADIUS**2 / 4, MASS * RADIUS**2 / 2


def rolling_disk() -> Problem:
    """1.4 kg, 0.35 m, the axis 0.2 rad above the plane, 8 rad/s about it while it precesses."""
    disk = Body(name="disk", joint=Free(), mass=MASS, inertia=np.diag([ACROSS, ACROSS, AXIAL]))
    rolling = RollingDisk(plane=Frame(None), disk=Frame("disk"), radius=RADIUS)
    system = constrain(chain([disk], name="rolling disk"), rolling)

    attitude, centre, twist = circling(0.0)
    end = circling(2.0)
    return Problem(
        name="rolling disk",
        source="Neimark and Fufaev 1972",
        system=system,
        q=jnp.concatenate((quaternion.from_matrix(jnp.asarray(attitude)), jnp.asarray(centre))),
        v=jnp.asarray(twist),
        time=2.0,
        quantities=named(
            (
                "x [m], y [m], z [m], x of a radius, y of a radius, z of a radius, "
                "x of the axis, y of the axis, z of the axis, "
                "rate 1 [rad/s], rate 2 [rad/s], rate 3 [rad/s], v 1 [m/s], v 2 [m/s], v 3 [m/s]"
            ),
            (*end[1], *end[0][:, 0], *end[0][:, 2], *end[2]),
        ),
        measured=lambda q, v: jnp.concatenate((q[4:], two_axes(q), v)),
        target=1e-8,
        steps=128,
    )


def precession() -> float:
    """W in rad/s, the slower of the two."""
    s, c = np.sin(TILT), np.cos(TILT)
    rolling = AXIAL + MASS * RADIUS**2
    # w_n = spin + W sin b.
    square, linear = (rolling - ACROSS) * s * c, rolling * SPIN * c
    constant = MASS * GRAVITY * RADIUS * s
    return float((-linear + np.sqrt(linear**2 - 4 * square * constant)) / (2 * square))


def circling(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Attitude (3, 3), centre (3,) in m and body-fixed twist (6,) of the disk at t in s."""
    up, own, turn = np.array([0, 0, 1]), np.array([0, 0, SPIN]), precession()
    start = rotation([0, np.pi / 2 - TILT, 0])
    axis = start[:, 2]
    contact = -RADIUS * (up - axis[2] * axis) / np.cos(TILT)
    rate = turn * up + SPIN * axis
    velocity = -np.cross(rate, contact)
    from_middle = np.cross(velocity, up) / turn
    turned = rotation(turn * t * up)
    attitude = turned @ start @ rotation(own * t)
    centre = turned @ from_middle + [0, 0, RADIUS * np.cos(TILT)]
    twist = [attitude.T @ turned @ rate, attitude.T @ turned @ velocity]
    return attitude, centre, np.concatenate(twist)
