"""Translation along an axis."""

from __future__ import annotations

from dataclasses import dataclass

from .joint import Dof
from .series import OneAxis


@dataclass(frozen=True, kw_only=True)
class Prismatic(OneAxis):
    """Translation along an axis: one length (m)."""

    def dofs(self) -> tuple[Dof, ...]:
        return (Dof("prismatic", self.axis),)
