"""The heavy top: a fast body about a fixed point, as a free body and a ball joint.

O. Bruels and A. Cardona, "On the use of Lie group time integrators in multibody dynamics", Journal
of Computational and Nonlinear Dynamics 5(3), 2010.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from ...constraints import Frame, SphericalConstraint, constrain, constrained_dynamics
from ...system import Body, Free, chain
from .problem import KNOWN, Problem

ARM = (0.0, 1.0, 0.0)
RATE = (0.0, 150.0, -4.61538)


def heavy_top() -> Problem:
    """Body frame in the centre of mass, 1 m from the fixed point at the world's origin."""
    top = Body(name="top", joint=Free(), mass=15.0, inertia=np.diag([0.234375, 0.46875, 0.234375]))
    pivot = SphericalConstraint(Frame(None), Frame("top", position=[-x for x in ARM]))
    system = constrain(chain([top], name="heavy top"), pivot)

    force = [value for name, value in KNOWN["heavy top"].items() if "force" in name]
    return Problem(
        name="heavy top",
        source="Bruels and Cardona 2010",
        system=system,
        q=jnp.asarray([1.0, 0, 0, 0, *ARM]),
        v=jnp.asarray([*RATE, *np.cross(RATE, ARM)]),
        time=0.2,
        quantities=KNOWN["heavy top"],
        scales=(1, 1, 1, *[150.0] * 3, *[np.linalg.norm(force)] * 3),
        measured=lambda q, v: jnp.concatenate(
            (q[4:], v[:3], constrained_dynamics(system, q, v, jnp.zeros_like(v))[1])
        ),
        target=1e-7,
        steps=128,
    )
