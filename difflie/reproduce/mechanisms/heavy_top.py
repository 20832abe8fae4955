"""The heavy top: a fast body about a fixed point, as a free body and a ball joint.

O. Bruels and A. Cardona, "On the use of Lie group time integrators in multibody dynamics", Journal
of Computational and Nonlinear Dynamics 5(3), 2010.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ...constraints import Frame, SphericalConstraint, constrain, constrained_dynamics
from ...system import Body, Free, chain
from .problem import Problem, quantities

ARM = (0.0, 1.0, 0.0)
RATE = (0.0, 150.0, -4.61538)


def heavy_top() -> Problem:
    """Body frame in the centre of mass, 1 m from the fixed point at the world's origin.

    The reference is that of the spherical joint without constraints, converged with two methods.
    """
    top = Body(name="top", joint=Free(), mass=15.0, inertia=np.diag([0.234375, 0.46875, 0.234375]))
    pivot = SphericalConstraint(Frame(None), Frame("top", position=[-x for x in ARM]))
    system = constrain(chain([top], name="heavy top"), pivot)

    def measured(q: jax.Array, v: jax.Array) -> jax.Array:
        _, force = constrained_dynamics(system, q, v, jnp.zeros_like(v))
        return jnp.concatenate((q[4:], v[:3], force))

    force = np.array([-640.23640799, -148.62771135, 136.92931304])
    return Problem(
        name="heavy top",
        source="Bruels and Cardona 2010",
        system=system,
        q=jnp.asarray([1.0, 0, 0, 0, *ARM]),
        v=jnp.asarray([*RATE, *np.cross(RATE, ARM)]),
        time=0.2,
        quantities=quantities(
            "x [m], y [m], z [m], rate x [rad/s], rate y [rad/s], rate z [rad/s], "
            "force x [N], force y [N], force z [N]",
            (0.6055505614, 0.5989576818, -0.5239830274, -2.6915909121, 150.0, 4.9172609899, *force),
            (1, 1, 1, *[150.0] * 3, *[np.linalg.norm(force)] * 3),
        ),
        measured=measured,
        target=1e-7,
        steps=128,
    )
