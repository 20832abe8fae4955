"""Bodies without torque, whose motion has a closed form.

With I1 < I2 < I3 and L^2 > 2 T I2 the rates are elliptic functions of the time,

    w1 = A1 cn,    w2 = A2 sn,    w3 = A3 dn

and the attitude turns about the fixed angular momentum L by psi, with
dpsi/dt = L (I1 w1^2 + I2 w2^2) / (L^2 - I3^2 w3^2). Landau and Lifshitz, Mechanics, section 37.
Where two moments are equal the body precesses evenly. Kane, Likins and Levinson 1983.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...groups import quaternion, so3
from ...system import Body, Free, chain
from .elliptic import functions
from .problem import Problem, named

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
