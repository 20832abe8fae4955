"""Andrews' squeezer A03: seven bodies in a plane that a motor drives against a spring.

Library of computational benchmark problems of the IFToMM, problem A03; E. Hairer and G. Wanner,
"Solving Ordinary Differential Equations II", 1996, VII.7; F. Mazzia and C. Magherini, "Test Set for
Initial Value Problem Solvers", 2008. Joint coordinates are those of the benchmark: beta and Theta
of the crank and the rod it moves, gamma of the body with the spring, delta and Phi, epsilon and
Omega of two pairs of bodies. Three of them end in the point where the rod does.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ...constraints import Frame, SphericalConstraint, constrain, constrained_dynamics
from ...forces import Spring, attach, passive_force
from ...system import Body, Revolute, System, tree
from .problem import KNOWN, Problem

# In the order of the system.
COORDINATES = ("beta", "Theta", "gamma", "delta", "Phi", "epsilon", "Omega")

TORQUE = 0.033
A, B, C = (-0.06934, -0.00227, 0.0), (-0.03635, 0.03273, 0.0), (0.014, 0.072, 0.0)

START = (
    *(-0.0617138900142764496, 0.0, 0.455279819163070380),
    *(0.487364979543842550, 0.222668390165885885),
    *(1.23054744454982119, -0.222668390165885885),
)

# The test set prints these at the end.
PRINTED = ("beta", "Theta", "gamma", "Phi")


def machine() -> System:
    """Seven bodies on revolute joints, and three closures where they meet in a point.

    The joints keep the bodies in their plane, so that a common point is all there is to close.
    """

    def planar(name, coordinate, parent, position, mass, moment, com):
        return Body(
            name=name,
            joint=Revolute(name=coordinate),
            parent=parent,
            position=position,
            mass=mass,
            com=com,
            inertia=moment * np.diag([0.5, 0.5, 1.0]),
        )

    bodies = [
        planar("K1", "beta", None, (0, 0, 0), 0.04325, 2.194e-6, (0.00092, 0, 0)),
        planar("K2", "Theta", "K1", (0.007, 0, 0), 0.00365, 4.410e-7, (-0.0115, 0, 0)),
        planar("K3", "gamma", None, B, 0.02373, 5.255e-6, (0.01043, -0.01874, 0)),
        planar("K5", "delta", None, A, 0.07050, 1.169e-5, (0.02308, 0.00916, 0)),
        planar("K4", "Phi", "K5", (0.04, 0, 0), 0.00706, 5.667e-7, (0, 0.01421 - 0.02, 0)),
        planar("K7", "epsilon", None, A, 0.05498, 1.912e-5, (0.00449, -0.01228, 0)),
        planar("K6", "Omega", "K7", (0, -0.04, 0), 0.00706, 5.667e-7, (0.02 - 0.01421, 0, 0)),
    ]
    point = "K2", (-0.028, 0, 0)
    ends = {"K3": (0, -0.035, 0), "K4": (0, -0.02, 0), "K6": (0.02, 0, 0)}
    closures = [
        SphericalConstraint(Frame(body, position=end), Frame(*point)) for body, end in ends.items()
    ]
    spring = Spring([(None, C), ("K3", (0.02, -0.018, 0))], 4530.0, 0.07785)
    system = tree(bodies, name="squeezer", gravity=(0, 0, 0))
    return constrain(attach(system, spring), *closures)


def squeezer() -> Problem:
    """At rest, driven by 0.033 N m at the crank."""
    system = machine()
    printed = np.array([COORDINATES.index(name) for name in PRINTED])

    return Problem(
        name="squeezer",
        source="IFToMM A03",
        system=system,
        q=jnp.asarray(START),
        v=jnp.zeros(7),
        time=0.03,
        quantities=KNOWN["squeezer"],
        scales=np.abs(list(KNOWN["squeezer"].values())),
        measured=lambda q, v: jnp.concatenate((q, v, multipliers(system, q, v), q[printed])),
        target=1e-7,
        steps=512,
        drive=jnp.zeros(7).at[0].set(TORQUE),
    )


def multipliers(system: System, q: jax.Array, v: jax.Array) -> jax.Array:
    """The six multipliers (6,) of the benchmark, whose reaction is -G^T lambda."""
    effort = jnp.zeros_like(v).at[0].set(TORQUE) + passive_force(system, q, v)
    _, force = constrained_dynamics(system, q, v, effort)
    return -force[np.array([0, 1, 3, 4, 6, 7])]
