"""The chain whose motion is computed: a foot, three links on hinges, and a rod that slides out."""

from __future__ import annotations

import numpy as np

from .chain import PRISMATIC, REVOLUTE, Chain, Posture, posture
from .rigid_body import exp

Array = np.ndarray

LENGTH = 0.4
"""Of every body, m."""
FOOT = np.zeros(3)
"""The lower end of body 0, m in its frame."""
TIP = np.array([0.0, 0, LENGTH])
"""The end of the last body, m in its frame."""


def machine(gravity: float = 9.81, damping: float = 0.0) -> Chain:
    """A chain of n + 1 = 5 bodies; damping in N m s/rad, of the hinges."""
    # The z axis of a hinge is horizontal where the chain stands upright, its x axis along the body.
    rise = np.array([[0.0, 0, 1], [0, 1, 0], [-1, 0, 0]]).T
    up = np.eye(4)
    up[:3, :3] = np.array([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]])
    up[2, 3] = LENGTH
    turned = exp(np.array([np.pi / 2, 0, 0, 0, 0, 0]))
    turned[0, 3] = LENGTH
    out = np.eye(4)
    out[:3, :3], out[0, 3] = rise.T, 0.7 * LENGTH
    mass = np.array([1.2, 0.8, 0.6, 0.4, 0.3])
    along = [np.diag([0.0, 0, 1])] + [np.diag([1.0, 0, 0])] * 3 + [np.diag([0.0, 0, 1])]
    com = np.array([LENGTH / 2 * np.diag(a) for a in along])
    # Rods with a radius of 0.05 m.
    across = [m * (LENGTH**2 / 12 + 0.05**2 / 4) for m in mass]
    inertia = [
        i * (np.eye(3) - a) + m * 0.05**2 / 2 * a
        for i, m, a in zip(across, mass, along, strict=True)
    ]
    return Chain(
        KK=np.array([up, turned, turned, out]),
        screws=np.array([REVOLUTE, REVOLUTE, REVOLUTE, PRISMATIC]),
        mass=mass,
        com=com,
        inertia=np.array(inertia),
        gravity=np.array([0.0, 0, -gravity]),
        stiffness=np.array([25.0, 15.0, 8.0, 200.0]),
        damping=damping * np.array([1.0, 1.0, 1.0, 10.0]),
    )


def leaning(chain: Chain, tilt: tuple[float, float] = (0.35, 0.1)) -> Posture:
    """Straight, on the foot at the origin, turned by a vector (tilt, 0) in rad."""
    f0 = exp(np.array([*tilt, 0, 0, 0, 0]))
    return posture(chain, f0, np.zeros(chain.n))
