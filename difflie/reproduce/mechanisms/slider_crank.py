"""The spatial slider-crank: the crank turns about x, and the slider moves along x.

E. J. Haug, "Computer Aided Kinematics and Dynamics of Mechanical Systems", 1989.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from ...constraints import Frame, SphericalConstraint, constrain
from ...system import Body, Prismatic, Revolute, Universal, tree
from .problem import KNOWN, Problem

BEARING = np.array([0.0, 0.1, 0.12])
RADIUS, ROD, START, SPEED = 0.08, 0.3, 0.2, 6.0


def slider_crank() -> Problem:
    """The rod hangs on the slider by a universal joint; a ball joint closes the loop at the crank.

    The crank stands upright at the start, its centre of mass in the bearing.
    """
    # The rod's frame: x along it to the slider, y the axis of the cross that is fixed on it.
    along = (np.array([START, 0, 0]) - BEARING - [0, 0, RADIUS]) / ROD
    cross = np.array([0, 2, -1]) / np.sqrt(5)
    rod = np.stack((along, cross, np.cross(along, cross)), axis=1)
    bodies = [
        Body(
            name="crank",
            joint=Revolute(axis=(1, 0, 0)),
            position=BEARING,
            mass=0.12,
            inertia=np.diag([1e-4, 1e-5, 1e-4]),
        ),
        Body(
            name="slider",
            joint=Prismatic(axis=(1, 0, 0)),
            mass=2.0,
            inertia=1e-4 * np.eye(3),
        ),
        Body(
            name="rod",
            parent="slider",
            joint=Universal(axis=rod[0].tolist(), second_axis=(0, 1, 0)),
            rotation=rod,
            mass=0.5,
            com=(-ROD / 2, 0, 0),
            inertia=np.diag([4e-4, 4e-3, 4e-3]),
        ),
    ]
    ball = SphericalConstraint(
        Frame("crank", position=(0, 0, RADIUS)), Frame("rod", position=(-ROD, 0, 0))
    )
    system = constrain(tree(bodies, name="slider-crank"), ball)

    # Angular velocity of the rod (1.92, -0.96, 0.48) rad/s, on both axes of the cross.
    return Problem(
        name="slider-crank",
        source="Haug 1989",
        system=system,
        q=jnp.asarray([0, START, 0, 0]),
        v=jnp.asarray([SPEED, 0.24, 1.92, -0.48 * np.sqrt(5)]),
        time=1.0,
        quantities=KNOWN["slider-crank"],
        measured=lambda q, v: jnp.stack((q[0], v[0], q[1], v[1])),
        target=1e-7,
        steps=128,
    )
