"""Rotation about an axis."""

from __future__ import annotations

from dataclasses import dataclass

from .joint import Dof
from .series import OneAxis


@dataclass(frozen=True, kw_only=True)
class Revolute(OneAxis):
    """Rotation about an axis: one angle (rad)."""

    def dofs(self) -> tuple[Dof, ...]:
        return (Dof("revolute", self.axis),)


@dataclass(frozen=True, kw_only=True)
class Continuous(Revolute):
    """Unbounded rotation about an axis: one angle (rad), not wrapped."""
