"""Two rotations in series."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from .joint import Axis, Dof
from .series import Series


@dataclass(frozen=True, kw_only=True)
class Universal(Series):
    """Two rotations in series: about `axis`, then about `second_axis`; two angles (rad).

    axis (3,): a direction in the joint frame, by default x; second_axis (3,), by default y, turns
    with the first rotation. Other arguments as of `Joint`.
    """

    axis: Axis = (1.0, 0.0, 0.0)
    second_axis: Axis = (0.0, 1.0, 0.0)

    def dofs(self) -> tuple[Dof, ...]:
        return (Dof("revolute", self.axis), Dof("revolute", self.second_axis))

    def about(self, axes: np.ndarray, pitch: np.ndarray) -> Self:
        return replace(self, axis=axes[0], second_axis=axes[1])
