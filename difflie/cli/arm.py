"""`difflie identify` for arms: files without [[parameter]], of which all numbers are found."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..io.results import machine
from ..io.study import Study
from ..view.report import Report
from .output import configuration
from .study import arm_fitted, check_original, recordings_of, system_of, tell


def run_arm(
    config: Study,
    *,
    validate: Sequence[Path] = (),
    out: Path | None = None,
    original: Path | None = None,
) -> tuple[dict[str, Any], Report]:
    """Identifies an arm as a file describes it; returns the results, and what terminals show.

    validate: more files to judge by. Writes into `out` the results, `report.html` with its
    pictures, and the arm as URDF, with the shapes of the URDF file `original`. Raises `ConfigError`
    and `DataError` for inputs that do not fit together.
    """
    about = configuration(config.path)
    system = system_of(config)
    check_original(system, original)
    runs = recordings_of(config, system, validate)
    tell(system, runs)
    begin = time.perf_counter()
    fit = arm_fitted(config, system, runs)
    seconds = time.perf_counter() - begin
    results = {"name": config.path.stem, **fit.results, "seconds": seconds, "machine": machine()}
    if out is not None:
        fit.save(out, about=about, original=original, results=results)
    return results, fit.as_report(about=about, whole=False)
