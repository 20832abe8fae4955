"""How well an arm's torques are explained: joint by joint, and in words."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..grades import grades, poor
from ..statistics import r_squared

# Where the floor is so much better, it is the bodies' consistency or nearness that costs.
_COSTLY = 0.02


@dataclasses.dataclass(frozen=True)
class JointScore:
    """Of one joint in one use of rows: "fitted", "held out" or "validation".

    unit: of its torque or force and of rmse, "N m" or "N". r2, rmse and relative error
    |residual| / |torque| of the identified numbers; floor_r2 of least squares without bounds and
    file_r2 of the file's own numbers.
    """

    run: str
    use: str
    joint: str
    unit: str
    r2: float
    rmse: float
    relative: float
    floor_r2: float
    file_r2: float

    @property
    def row(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def scores(
    run: str,
    use: str,
    joints: Sequence[str],
    units: Sequence[str],
    torque: NDArray,
    residuals: Sequence[NDArray],
) -> list[JointScore]:
    """The scores of joints (nv,) for torques (r, nv), in the units given.

    residuals (r, nv): what the numbers found, those of the floor and those of the file leave of
    them, NaN where a joint does not count.
    """
    found = []
    for j, (joint, unit) in enumerate(zip(joints, units, strict=True)):
        off, floor, file = (r[:, j] for r in residuals)
        there = ~np.isnan(off)
        tau = torque[there, j]
        if not there.any():
            continue
        size = max(float(np.sqrt(np.mean(tau**2))), np.finfo(float).tiny)
        rmse = float(np.sqrt(np.mean(off[there] ** 2)))
        each = (r_squared(tau, r[there]) for r in (off, floor, file))
        r2, floor_r2, file_r2 = each
        found.append(JointScore(run, use, joint, unit, r2, rmse, rmse / size, floor_r2, file_r2))
    return found


def verdict(rows: Sequence[JointScore]) -> list[str]:
    """Sentences on the scores of rows that were not fitted."""
    graded = [(s.joint, s.r2) for s in rows]
    said = [*grades("all joints are predicted well: R2 of rows not fitted", graded)]
    for s in (rows[k] for k in poor(graded)):
        floor = s.floor_r2 - s.r2 > _COSTLY
        why = (
            f"free numbers reach {s.floor_r2:.3f}: the file's geometry or masses may be wrong"
            if floor
            else "no better without the file's numbers: its motion tells too little, or its "
            "friction or sensor is of another kind"
        )
        said.append(f"predicted poorly: {s.joint} (R2 {s.r2:.3f}); {why}")
    better = [s for s in rows if s.r2 > s.file_r2]
    if len(better) < len(rows):
        worse = ", ".join(s.joint for s in rows if not s.r2 > s.file_r2)
        said.append(f"the file's own numbers are no worse for {worse}")
    return said
