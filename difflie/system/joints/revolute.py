"""Rotation about an axis."""

from __future__ import annotations

from dataclasses import dataclass

from .joint import Dof
from .series import OneAxis


@dataclass(frozen=True, kw_only=True)
class Revolute(OneAxis):
    """Rotation about an axis: one angle (rad).

    axis (3,): its direction in the joint frame, by default z; angles are positive by the right-hand
    rule. Other arguments as of `Joint`.

    >>> elbow = dl.Revolute(axis=(0, 1, 0), damping=0.1, lower=-2.0, upper=2.0, max_effort=50.0)
    >>> arm = dl.chain([dl.Body(name="forearm", joint=elbow, mass=1.0, com=(0.2, 0, 0))])
    >>> arm.nq, arm.joints.upper.tolist()
    (1, [2.0])
    """

    def dofs(self) -> tuple[Dof, ...]:
        return (Dof("revolute", self.axis),)


@dataclass(frozen=True, kw_only=True)
class Continuous(Revolute):
    """Unbounded rotation about an axis: one angle (rad), not wrapped.

    Arguments as of `Revolute`.
    """
