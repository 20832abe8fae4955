"""Bricard's mechanism A04: five rods that no count of equations lets move.

Library of computational benchmark problems of the IFToMM, problem A04. Six revolute joints at the
corners of a cube close a loop in space: of the five equations that close the chain of rods one
follows from the others, and one degree of freedom is left.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from ...constraints import Frame, RevoluteConstraint, constrain
from ...dynamics import body_poses
from ...system import Body, Revolute, chain
from .problem import KNOWN, Problem

CORNERS = ((0, 0, 0), (1, 0, 0), (1, -1, 0), (1, -1, 1), (0, -1, 1), (0, 0, 1))
AXES = "yzxyzx"


def bricard() -> Problem:
    """Rods of 1 m and 1 kg with a square section of 0.1 m, at rest; gravity against y."""
    axes = dict(zip("xyz", np.eye(3).tolist(), strict=True))
    along = np.diff(CORNERS, axis=0)
    rods = [
        Body(
            name=f"rod {k}",
            joint=Revolute(axis=axes[AXES[k]]),
            position=along[k - 1] if k else (0, 0, 0),
            mass=1.0,
            com=along[k] / 2,
            inertia=np.diag(np.where(along[k] == 0, 1.01 / 12, 0.02 / 12)),
        )
        for k in range(5)
    ]
    closure = RevoluteConstraint(
        Frame(None, position=CORNERS[5], axis=axes[AXES[5]]),
        Frame("rod 4", position=along[4], axis=axes[AXES[5]]),
    )
    system = constrain(chain(rods, name="Bricard", gravity=(0, -9.81, 0)), closure)

    return Problem(
        name="Bricard",
        source="IFToMM A04",
        system=system,
        q=jnp.zeros(5),
        v=jnp.zeros(5),
        time=1.0,
        quantities=KNOWN["Bricard"],
        measured=lambda q, v: jnp.concatenate((body_poses(system, q)[3, :3, 3], q[:1], v[:1])),
        target=1e-8,
        steps=64,
        energy_time=10.0,
        energy_target=1e-8,
    )
