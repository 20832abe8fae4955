"""A screw."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from .joint import Dof
from .series import OneAxis


@dataclass(frozen=True, kw_only=True)
class Helical(OneAxis):
    """A screw: one angle (rad); the body advances `pitch` m/rad along the axis.

    axis (3,): its direction in the joint frame, by default z. Other arguments as of `Joint`.
    """

    pitch: float = 0.0

    def dofs(self) -> tuple[Dof, ...]:
        return (Dof("helical", self.axis, self.pitch),)

    def about(self, axes: np.ndarray, pitch: np.ndarray) -> Self:
        return replace(self, axis=axes[0], pitch=float(pitch[0]))
