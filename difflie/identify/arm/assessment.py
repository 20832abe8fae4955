"""How an arm was identified, and how well its torques are predicted."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ...system.validation import format_value
from ...view.torques import TorqueRun, torque_figure
from ..grades import poor
from ..torque_rows import Friction, TorqueModel
from .equations import Equations
from .held_out import HeldOut
from .verdict import JointScore, verdict
from .weighted_least_squares import Solution


@dataclasses.dataclass(frozen=True)
class ArmAssessment:
    """How an arm was identified, and how well its torques are predicted.

    scores: of each joint and use. predictions: name, equations and residuals (r, nv) of each
    recording. base: the base parameters. held_out: predictions of blocks, by which the weight of
    the distance from the file was chosen; distances: of the bodies, by name. friction: its
    velocities. notes: sentences on what was done and what is not known.
    """

    model: TorqueModel
    friction: Friction
    base: Solution
    held_out: HeldOut
    distances: dict[str, float]
    scores: tuple[JointScore, ...]
    predictions: tuple[tuple[str, Equations, NDArray], ...]
    notes: tuple[str, ...]

    @property
    def verdict(self) -> tuple[str, ...]:
        """Sentences on how well rows are predicted that were not fitted."""
        return tuple(verdict(self._judged))

    @property
    def _judged(self) -> list[JointScore]:
        """The scores of rows that were not fitted."""
        validation = [s for s in self.scores if s.use == "validation"]
        return validation or [s for s in self.scores if s.use == "held out"]

    @property
    def results(self) -> dict[str, Any]:
        """The results by name, as `difflie identify` writes them beside those of the fit."""
        joints = self.model.joints
        return {
            "system": self.model.system.name,
            "verdict": list(self.verdict),
            "well_predicted": not poor([(s.joint, s.r2) for s in self._judged]),
            "notes": list(self.notes),
            "joints": [s.row for s in self.scores],
            "base_parameters": self.base.table,
            "condition": self.base.condition,
            "nearness": {
                "weight": self.held_out.best,
                "weights": self.held_out.weights.tolist(),
                "errors": self.held_out.errors.tolist(),
                "distances": self.distances,
            },
            "friction_velocity": dict(zip(joints, self.friction.rise.tolist(), strict=True)),
            "stribeck_velocity": dict(zip(joints, self.friction.fading.tolist(), strict=True)),
        }

    @property
    def runs(self) -> list[TorqueRun]:
        """The data of its figures."""
        return [
            TorqueRun(
                name=name,
                joints=self.model.joints,
                units=self.model.forces,
                t=equations.t,
                measured=np.where(equations.counts, equations.torque, np.nan),
                residual=residual,
            )
            for name, equations, residual in self.predictions
        ]

    def plot(self, recording: int = 0) -> Figure:
        """Measured and predicted torques of each joint over time, as a matplotlib figure.

        recording: its number in `predictions`. Raises ValueError for one that is not there.
        """
        runs = self.runs
        if recording not in range(len(runs)):
            raise ValueError(
                f"there is no recording {format_value(recording)}; give a number from 0 to "
                f"{len(runs) - 1}"
            )
        return torque_figure(runs[recording], self.model.system.name)
