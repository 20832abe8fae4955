"""The flyball governor A05 with springs and dampers for two of its rods, which makes it stiff.

Library of computational benchmark problems of the IFToMM, problem A05.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from ...forces import Damper, Spring, attach
from ...system import Body, Prismatic, Revolute, System, tree
from .problem import KNOWN, Problem


def machine() -> System:
    """Shaft about z, slider on the shaft, two rods hinged 0.05 m beside it with 5 kg at the ends.

    Coordinates: angle of the shaft, height of the slider, angles of the rods below the horizontal.
    """
    rod = 0.3 * np.array([2e-4, 1.0001, 1.0001]) / 12
    bodies = [
        Body(
            name="shaft",
            joint=Revolute(axis=(0, 0, 1)),
            mass=0.3,
            com=(0, 0, 0.5),
            inertia=np.diag(rod[::-1]),
        ),
        Body(
            name="slider",
            parent="shaft",
            joint=Prismatic(axis=(0, 0, 1)),
            mass=3.0,
            inertia=3.0 * 0.02 / 12 * np.eye(3),
        ),
    ]
    couplings = []
    for side, name in ((1.0, "right"), (-1.0, "left")):
        bodies += [
            Body(
                name=f"{name} rod",
                parent="shaft",
                joint=Revolute(axis=(0, side, 0)),
                position=(0.05 * side, 0, 1),
                mass=0.3,
                com=(0.5 * side, 0, 0),
                inertia=np.diag(rod),
            ),
            Body(name=f"{name} ball", parent=f"{name} rod", position=(side, 0, 0), mass=5.0),
        ]
        path = [(f"{name} rod", (0.5 * side, 0, 0)), ("slider", (0.05 * side, 0, 0))]
        couplings += [Spring(path, 8e5, 0.5), Damper(path, 4e4)]
    return attach(tree(bodies, name="governor"), *couplings)


def governor() -> Problem:
    """The shaft turns once a second, all else rests on it."""
    system = machine()

    return Problem(
        name="governor",
        source="IFToMM A05",
        system=system,
        q=jnp.asarray([0, 0.5, np.pi / 6, np.pi / 6]),
        v=jnp.asarray([2 * np.pi, 0, 0, 0]),
        time=1.0,
        quantities=KNOWN["governor"],
        measured=lambda q, v: jnp.stack((q[0], q[2], q[1], v[0])),
        target=1e-7,
        steps=256,
        conserved=False,
    )
