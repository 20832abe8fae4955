"""Translation along an axis."""

from __future__ import annotations

from dataclasses import dataclass

from .joint import Dof
from .series import OneAxis


@dataclass(frozen=True, kw_only=True)
class Prismatic(OneAxis):
    """Translation along an axis: one length (m).

    axis (3,): its direction in the joint frame, by default z. Other arguments as of `Joint`.

    >>> lift = dl.chain([dl.Body(name="lift", joint=dl.Prismatic(axis=(0, 0, 1)), mass=2.0)])
    >>> print(dl.gravity_force(lift, [0.0]).round(3))  # in N
    [19.62]
    """

    def dofs(self) -> tuple[Dof, ...]:
        return (Dof("prismatic", self.axis),)
