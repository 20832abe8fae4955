"""The chaotic babyboot: two pendulums about axes at right angles, whose motion forgets its start.

T. R. Kane and D. A. Levinson, "Dynamics: Theory and Applications", 1985.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from ...system import Body, Revolute, chain
from .problem import KNOWN, Problem


def babyboot() -> Problem:
    """A body about x, and a plate about the body's z, from the horizontal and at rest.

    The reference is that of Kane's two equations, extrapolated with 25 digits and by a method of
    order 8; both agree to 1e-12.
    """
    bodies = [
        # The plane of its motion leaves the other two inertias without meaning.
        Body(
            name="arm",
            joint=Revolute(axis=(1, 0, 0)),
            mass=0.01,
            com=(0, 0, -0.075),
            inertia=np.diag([5e-6, 5e-6, 1e-6]),
        ),
        Body(
            name="plate",
            joint=Revolute(axis=(0, 0, 1)),
            position=(0, 0, -0.2),
            mass=0.1,
            inertia=np.diag([2.5e-4, 5e-5, 2e-4]),
        ),
    ]
    system = chain(bodies, name="babyboot")

    return Problem(
        name="babyboot",
        source="Kane and Levinson 1985",
        system=system,
        q=jnp.deg2rad(jnp.asarray([90.0, 1.0])),
        v=jnp.zeros(2),
        time=5.0,
        quantities=KNOWN["babyboot"],
        measured=lambda q, v: jnp.concatenate((q, v)),
        target=1e-6,
        steps=4096,
    )
