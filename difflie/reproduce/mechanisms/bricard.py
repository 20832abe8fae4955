"""Bricard's mechanism A04: five rods that no count of equations lets move.

Library of computational benchmark problems of the IFToMM, problem A04. Six revolute joints at the
corners of a cube close a loop in space: of the five equations that close the chain of rods one
follows from the others, and one degree of freedom is left.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ...constraints import Frame, RevoluteConstraint, constrain
from ...dynamics import body_poses
from ...system import Body, chain
from ...system import Revolute as RevoluteJoint
from .problem import Problem, quantities

CORNERS = ((0, 0, 0), (1, 0, 0), (1, -1, 0), (1, -1, 1), (0, -1, 1), (0, 0, 1))
AXES = "yzxyzx"


def bricard() -> Problem:
    """Rods of 1 m and 1 kg with a square section of 0.1 m, at rest; gravity against y."""
    axes = dict(zip("xyz", np.eye(3).tolist(), strict=True))
    rods = []
    for k in range(5):
        along = np.subtract(CORNERS[k + 1], CORNERS[k])
        before = CORNERS[max(k - 1, 0)]
        rods.append(
            Body(
                name=f"rod {k}",
                joint=RevoluteJoint(axis=axes[AXES[k]]),
                position=np.subtract(CORNERS[k], before),
                mass=1.0,
                com=along / 2,
                inertia=np.diag(np.where(along == 0, 1.01 / 12, 0.02 / 12)),
            )
        )
    closure = RevoluteConstraint(
        Frame(None, position=CORNERS[5], axis=axes[AXES[5]]),
        Frame("rod 4", position=np.subtract(CORNERS[5], CORNERS[4]), axis=axes[AXES[5]]),
    )
    system = constrain(chain(rods, name="Bricard", gravity=(0, -9.81, 0)), closure)

    def measured(q: jax.Array, v: jax.Array) -> jax.Array:
        corner = body_poses(system, q)[3, :3, 3]
        return jnp.concatenate((corner, q[:1], v[:1]))

    return Problem(
        name="Bricard",
        source="IFToMM A04",
        system=system,
        q=jnp.zeros(5),
        v=jnp.zeros(5),
        time=1.0,
        quantities=quantities(
            "x [m], y [m], z [m], angle [rad], rate [rad/s]",
            (
                *(0.510501461187, -1.649167599395, 0.140123114553),
                *(1.035028459518, 2.036415380970),
            ),
        ),
        measured=measured,
        target=1e-8,
        steps=64,
        energy_time=10.0,
        energy_target=1e-8,
    )
