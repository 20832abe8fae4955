"""Translation in three directions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from .joint import Dof
from .series import Series, check_directions


@dataclass(frozen=True, kw_only=True)
class Translation(Series):
    """Translation without rotation: x, y, z (m) along the axes of the joint frame.

    Arguments as of `Joint`.
    """

    def dofs(self) -> tuple[Dof, ...]:
        return tuple(Dof("prismatic", e) for e in np.eye(3).tolist())

    def about(self, axes: np.ndarray, pitch: np.ndarray) -> Self:
        check_directions(axes, np.eye(3), "x, y, z")
        return self
