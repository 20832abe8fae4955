"""What is known of an arm after its identification."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ...io.results import machine as computer
from ...system.system import System
from ...system.validation import shown
from ...view.arm import Run, torque_figure, write_arm_report
from ..consistency import Consistent
from ..grades import poor
from ..shown import fit_text
from ..statistics import intervals
from ..torque_rows import Friction, TorqueModel
from .equations import Equations
from .held_out import HeldOut
from .machine import machine
from .verdict import JointScore, verdict
from .weighted_least_squares import Solution


@dataclasses.dataclass(frozen=True)
class ArmFit:
    """What is known of an arm after its identification.

    model: which numbers are free, by their names (p,); start (p,): those of the file, x (p,): those
    found, in SI units. standard_errors (p,), infinite for numbers on which no torque depends, with
    Student's `freedom`, and NaN where the search has not `converged`; prior_share (p,): the part of
    the file's numbers in their squares. base: the base parameters. held_out: predictions of blocks,
    by which the weight of the distance from the file was chosen. consistency: how x was found.
    scores: of each joint and use. predictions: name, equations and residuals (r, nv) of each
    recording. notes: sentences on what was done and what is not known.
    """

    model: TorqueModel
    friction: Friction
    start: NDArray
    x: NDArray
    standard_errors: NDArray
    prior_share: NDArray
    freedom: int
    base: Solution
    held_out: HeldOut
    consistency: Consistent
    scores: tuple[JointScore, ...]
    predictions: tuple[tuple[str, Equations, NDArray], ...]
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        return fit_text(f"Fit of {self.model.system.name}", self.verdict, self._table())

    @property
    def converged(self) -> bool:
        return self.consistency.converged

    @property
    def active(self) -> NDArray:
        """The indices of numbers at their bound, 0."""
        return self.consistency.active

    @property
    def weight(self) -> float:
        """Of the distance from the file's numbers."""
        return self.held_out.best

    @property
    def names(self) -> tuple[str, ...]:
        return self.model.names

    @property
    def intervals(self) -> NDArray:
        """95 % intervals (p, 2) by Student's t; one-sided for numbers at their bound."""
        lower = np.full(len(self.x), -np.inf)
        lower[self.model.nonnegative] = 0
        sides = np.zeros(len(self.x), int)
        sides[self.active] = -1
        freedom = np.full(len(self.x), float(self.freedom))
        limits = lower, np.full(len(self.x), np.inf)
        return intervals(self.x, self.standard_errors, freedom, limits, sides)

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
    def system(self) -> System:
        """The arm with the numbers found: offsets and load friction as drives.

        What it cannot have, the inertia of motors that turn with sums of rates, is in x alone.
        """
        return machine(self.model, self.friction, self.x)

    @property
    def results(self) -> dict[str, Any]:
        """The results by name, as `difflie identify` writes them."""
        sizes = self.consistency.distances.tolist()
        bodies = (self.model.system.body_names[b] for b in self.model.bodies)
        rise, fading = self.friction.rise.tolist(), self.friction.fading.tolist()
        return {
            "system": self.model.system.name,
            "verdict": list(self.verdict),
            "well_predicted": not poor([(s.joint, s.r2) for s in self._judged]),
            "notes": list(self.notes),
            "joints": [s.row for s in self.scores],
            "parameters": self._table(),
            "base_parameters": self._base_table(),
            "condition": self.base.condition,
            "nearness": {
                "weight": self.weight,
                "weights": self.held_out.weights.tolist(),
                "errors": self.held_out.errors.tolist(),
                "distances": dict(zip(bodies, sizes, strict=True)),
            },
            "friction_velocity": dict(zip(self.model.joints, rise, strict=True)),
            "stribeck_velocity": dict(zip(self.model.joints, fading, strict=True)),
            "converged": self.converged,
        }

    def _base_table(self) -> list[dict[str, Any]]:
        base, keys = self.base, ("name", "value", "std_error", "relative_error", "essential")
        columns = (
            *(base.names, base.values.tolist(), base.standard_errors.tolist()),
            *(base.relative_errors.tolist(), base.essential.tolist()),
        )
        return [dict(zip(keys, row, strict=True)) for row in zip(*columns, strict=True)]

    def _table(self) -> dict[str, dict[str, Any]]:
        keys = "unit", "start", "value", "std_error", "interval", "at_bound", "prior_share"
        bound = np.isin(np.arange(len(self.x)), self.active)
        columns = (
            *(self.model.units, self.start.tolist(), self.x.tolist()),
            *(self.standard_errors.tolist(), self.intervals.tolist()),
            *(bound.tolist(), self.prior_share.tolist()),
        )
        rows = zip(*columns, strict=True)
        table: dict[str, dict[str, Any]] = {
            name: dict(zip(keys, row, strict=True))
            for name, row in zip(self.names, rows, strict=True)
        }
        # Joints without Stribeck friction or a measured torque have no such numbers.
        return {name: p for name, p in table.items() if not np.isinf(p["std_error"])}

    @property
    def _runs(self) -> list[Run]:
        """The data of its figures."""
        return [
            Run(
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
        runs = self._runs
        if recording not in range(len(runs)):
            raise ValueError(
                f"there is no recording {shown(recording)}; give a number from 0 to {len(runs) - 1}"
            )
        return torque_figure(runs[recording], self.model.system.name)

    def report(
        self,
        folder: str | os.PathLike[str],
        about: Mapping[str, object] = MappingProxyType({}),
    ) -> Path:
        """Writes `report.html` with its pictures into a folder, which is made; returns its path.

        about: more, by name, that the page is to say of its origin, such as the configuration.
        """
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        return write_arm_report(path, self.results | {"machine": computer()}, self._runs, about)
