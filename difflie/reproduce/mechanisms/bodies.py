"""Single bodies: free of torque, rolling, and about a fixed point.

Bodies without torque, whose motion has a closed form. With I1 < I2 < I3 and L^2 > 2 T I2 the rates
are elliptic functions of the time, w1 = A1 cn, w2 = A2 sn, w3 = A3 dn and the attitude turns about
the fixed angular momentum L by psi, with dpsi/dt = L (I1 w1^2 + I2 w2^2) / (L^2 - I3^2 w3^2).
Landau and Lifshitz, Mechanics, section 37. Where two moments are equal the body precesses evenly.
Kane, Likins and Levinson 1983.

A disk that rolls in a circle on a plane, leaning inwards: the motion has a closed form. J. I.
Neimark and N. A. Fufaev, "Dynamics of Nonholonomic Systems", 1972. With the tilt b of the axis n
from the plane, the rate W of the precession about the vertical, w_n the rate about n, and the
moments I3 about n and I1 across,

    (I3 + m a^2) w_n W cos b - I1 W^2 sin b cos b + m g a sin b = 0

The heavy top: a fast body about a fixed point, as a free body and a ball joint. O. Bruels and A.
Cardona, "On the use of Lie group time integrators in multibody dynamics", Journal of Computational
and Nonlinear Dynamics 5(3), 2010.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...constraints import Frame, RollingDisk, SphericalConstraint, constrain, constrained_dynamics
from ...groups import quaternion, so3
from ...system import Body, Free, chain
from .elliptic import functions
from .problem import KNOWN, Problem, named

MOMENT, AXIAL = 0.04, 0.02
SPIN = (2.0, -1.0, 3.0)

MOMENTS = (0.01, 0.02, 0.03)
TUMBLE = (5.0, 0.0, 3.0)

TIME = 10.0


def symmetric_body() -> Problem:
    """Moments of inertia 0.04, 0.04 and 0.02 kg m^2."""
    return _free("symmetric body", (MOMENT, MOMENT, AXIAL), precession, "Kane et al. 1983")


def asymmetric_body() -> Problem:
    """Near the separatrix: a body that turns over again and again."""
    return _free("asymmetric body", MOMENTS, tumbling, "Landau and Lifshitz 1976")


def precession(t: float) -> tuple[np.ndarray, np.ndarray]:
    """Attitude (3, 3) and rates (3,) in rad/s of the symmetric body at t in s.

    It turns about its angular momentum with L / I, and in this motion about its own axis.
    """
    momentum = np.array([MOMENT, MOMENT, AXIAL]) * SPIN
    own = np.array([0, 0, (1 - AXIAL / MOMENT) * SPIN[2]])
    turned = rotation(own * t)
    return rotation(momentum / MOMENT * t) @ turned, turned.T @ SPIN


def tumbling(t: float) -> tuple[np.ndarray, np.ndarray]:
    """Attitude (3, 3) and rates (3,) in rad/s of the asymmetric body at t in s.

    The angular momentum is along z. The angle psi is that of Gauss-Legendre quadrature.
    """
    i1, i2, i3 = moments = np.array(MOMENTS)
    momentum = float(np.linalg.norm(moments * TUMBLE))
    energy = float(np.dot(moments * TUMBLE, TUMBLE))
    low, high = momentum**2 - energy * i1, energy * i3 - momentum**2
    m = (i2 - i1) * high / ((i3 - i2) * low)
    pace = np.sqrt((i3 - i2) * low / (i1 * i2 * i3))

    def rates(t: np.ndarray | float) -> np.ndarray:
        sn, cn, dn = functions(pace * t, m)
        return np.stack(
            (TUMBLE[0] * cn, np.sqrt(high / (i2 * (i3 - i2))) * sn, TUMBLE[2] * dn), axis=-1
        )

    nodes, weights = np.polynomial.legendre.leggauss(20)
    edges = np.linspace(0, t, 201)
    half = np.diff(edges)[:, None] / 2
    w = rates(edges[:-1, None] + half * (1 + nodes))
    turning = momentum * (i1 * w[..., 0] ** 2 + i2 * w[..., 1] ** 2)
    psi = np.sum(half * weights * turning / (momentum**2 - (i3 * w[..., 2]) ** 2))
    w = rates(t)
    x, y, z = moments * w / momentum
    tilt, own = np.arccos(z), np.arctan2(x, y)
    euler = rotation([0, 0, psi]) @ rotation([tilt, 0, 0]) @ rotation([0, 0, own])
    return euler, w


def _free(
    name: str,
    moments: tuple[float, ...],
    exact: Callable[[float], tuple[np.ndarray, np.ndarray]],
    source: str,
) -> Problem:
    body = Body(name="body", joint=Free(), mass=1.0, inertia=np.diag(moments))
    system = chain([body], name=name, gravity=(0, 0, 0))

    (start, rate), (attitude, end) = exact(0.0), exact(TIME)
    return Problem(
        name=name,
        source=source,
        system=system,
        q=jnp.concatenate((quaternion.from_matrix(jnp.asarray(start)), jnp.zeros(3))),
        v=jnp.concatenate((jnp.asarray(rate), jnp.zeros(3))),
        time=TIME,
        quantities=named(
            (
                "x of axis 1, y of axis 1, z of axis 1, x of axis 3, y of axis 3, z of axis 3, "
                "rate 1 [rad/s], rate 2 [rad/s], rate 3 [rad/s]"
            ),
            (*attitude[:, 0], *attitude[:, 2], *end),
        ),
        measured=lambda q, v: jnp.concatenate((two_axes(q), v[:3])),
        target=1e-8,
        steps=512,
    )


def rotation(vector: Any) -> np.ndarray:
    """The attitude (3, 3) of a rotation vector (3,) in rad."""
    return np.asarray(so3.exp(jnp.asarray(vector, float)))


def two_axes(q: jax.Array) -> jax.Array:
    """The first and the third axis (6,) of a free body, in the world; q (7,)."""
    attitude = quaternion.to_matrix(q[:4])
    return jnp.concatenate((attitude[:, 0], attitude[:, 2]))


DISK_MASS, DISK_RADIUS, DISK_TILT, DISK_SPIN, GRAVITY = 1.4, 0.35, 0.2, 8.0, 9.81
DISK_ACROSS, DISK_AXIAL = DISK_MASS * DISK_RADIUS**2 / 4, DISK_MASS * DISK_RADIUS**2 / 2


def rolling_disk() -> Problem:
    """1.4 kg, 0.35 m, the axis 0.2 rad above the plane, 8 rad/s about it while it precesses."""
    disk = Body(
        name="disk",
        joint=Free(),
        mass=DISK_MASS,
        inertia=np.diag([DISK_ACROSS, DISK_ACROSS, DISK_AXIAL]),
    )
    rolling = RollingDisk(plane=Frame(None), disk=Frame("disk"), radius=DISK_RADIUS)
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


def disk_precession() -> float:
    """W in rad/s, the slower of the two."""
    s, c = np.sin(DISK_TILT), np.cos(DISK_TILT)
    rolling = DISK_AXIAL + DISK_MASS * DISK_RADIUS**2
    # w_n = spin + W sin b.
    square, linear = (rolling - DISK_ACROSS) * s * c, rolling * DISK_SPIN * c
    constant = DISK_MASS * GRAVITY * DISK_RADIUS * s
    return float((-linear + np.sqrt(linear**2 - 4 * square * constant)) / (2 * square))


def circling(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Attitude (3, 3), centre (3,) in m and body-fixed twist (6,) of the disk at t in s."""
    up, own, turn = np.array([0, 0, 1]), np.array([0, 0, DISK_SPIN]), disk_precession()
    start = rotation([0, np.pi / 2 - DISK_TILT, 0])
    axis = start[:, 2]
    contact = -DISK_RADIUS * (up - axis[2] * axis) / np.cos(DISK_TILT)
    rate = turn * up + DISK_SPIN * axis
    velocity = -np.cross(rate, contact)
    from_middle = np.cross(velocity, up) / turn
    turned = rotation(turn * t * up)
    attitude = turned @ start @ rotation(own * t)
    centre = turned @ from_middle + [0, 0, DISK_RADIUS * np.cos(DISK_TILT)]
    twist = [attitude.T @ turned @ rate, attitude.T @ turned @ velocity]
    return attitude, centre, np.concatenate(twist)


TOP_ARM = (0.0, 1.0, 0.0)
TOP_RATE = (0.0, 150.0, -4.61538)


def heavy_top() -> Problem:
    """Body frame in the centre of mass, 1 m from the fixed point at the world's origin."""
    top = Body(name="top", joint=Free(), mass=15.0, inertia=np.diag([0.234375, 0.46875, 0.234375]))
    pivot = SphericalConstraint(Frame(None), Frame("top", position=[-x for x in TOP_ARM]))
    system = constrain(chain([top], name="heavy top"), pivot)

    force = [value for name, value in KNOWN["heavy top"].items() if "force" in name]
    return Problem(
        name="heavy top",
        source="Bruels and Cardona 2010",
        system=system,
        q=jnp.asarray([1.0, 0, 0, 0, *TOP_ARM]),
        v=jnp.asarray([*TOP_RATE, *np.cross(TOP_RATE, TOP_ARM)]),
        time=0.2,
        quantities=KNOWN["heavy top"],
        scales=(1, 1, 1, *[150.0] * 3, *[np.linalg.norm(force)] * 3),
        measured=lambda q, v: jnp.concatenate(
            (q[4:], v[:3], constrained_dynamics(system, q, v, jnp.zeros_like(v))[1])
        ),
        target=1e-7,
        steps=128,
    )
