"""How far the readings of sensors are from those that a machine predicts."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclasses.dataclass(frozen=True)
class ReadingErrors:
    """Errors of K readings of a recording of n rows, in the units of their sensors.

    columns (K,): the sensor, the name and the unit of each. measured (n, K): along the measured
    motion; simulated (m, K): along the simulated one. Both NaN in gaps, and without rows where they
    were not judged.
    """

    columns: tuple[tuple[str, str, str], ...]
    measured: NDArray
    simulated: NDArray

    def rows(self, run: str) -> list[dict[str, Any]]:
        """The root mean square errors of each sensor, of each of its units; None where not judged.

        run: the name of the recording.
        """
        kinds = dict.fromkeys((sensor, unit) for sensor, _, unit in self.columns)
        rows = []
        for sensor, unit in kinds:
            own = [(s, u) == (sensor, unit) for s, _, u in self.columns]
            errors = {"rmse": self.measured, "simulated_rmse": self.simulated}
            found = {key: _rms(values[:, own]) for key, values in errors.items()}
            rows.append({"run": run, "sensor": sensor, "unit": unit, **found})
        return rows


def _rms(errors: NDArray) -> float | None:
    there = ~np.isnan(errors)
    return float(np.sqrt(np.mean(errors[there] ** 2))) if there.any() else None
