"""A body, as a user writes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .joints import Fixed, Joint


@dataclass(frozen=True, kw_only=True)
class Body:
    """A rigid body and the joint that connects it to its parent.

    name: its own. joint: by default `Fixed`. position (3,) in m and rotation (a rotation vector
    (3,) in rad or a matrix (3, 3)): the joint frame in the parent body's frame. The body frame is
    the joint frame moved by the joint. mass in kg; com (3,) in m and inertia (3, 3) ABOUT THE
    CENTRE OF MASS in kg m^2, both in the body frame. parent: a body's name, or None for the world.
    source: where the body was read, for error messages.

    >>> hinge = dl.Revolute(axis=(0, 1, 0))
    >>> rod = dl.Body(name="rod", joint=hinge, mass=1.0, com=(0, 0, -0.5), inertia=np.eye(3) / 12)
    >>> print(dl.mass_matrix(dl.chain([rod]), [0.0]).round(4))  # about the joint, in kg m^2
    [[0.3333]]
    """

    name: str
    joint: Joint = field(default_factory=Fixed)
    parent: str | None = None
    position: Any = (0.0, 0.0, 0.0)
    rotation: Any = (0.0, 0.0, 0.0)
    mass: float = 0.0
    com: Any = (0.0, 0.0, 0.0)
    inertia: Any = ((0.0,) * 3,) * 3
    source: str | None = None
