"""`difflie identify` for arms: files without [[parameter]], of which all numbers are found."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape

from ..io.results import machine
from ..io.study import Study
from ..view.printed import print_table
from ..view.report import sentences
from .output import configuration, console, say
from .study import arm_fitted, check_original, recordings_of, system_of, tell


def run_arm(
    config: Study,
    *,
    validate: Sequence[Path] = (),
    out: Path | None = None,
    original: Path | None = None,
) -> dict[str, Any]:
    """Identifies an arm as a file describes it, and returns the results, those of `Fit.results`.

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
    for note in results["notes"]:
        say(note)
    if out is not None:
        fit.save(out, about=about, original=original, results=results)
    return results


def show_arm(results: dict[str, Any]) -> None:
    """Prints the verdict, how well each joint is predicted, and its friction."""
    for sentence in sentences(results["verdict"]):
        console.print(sentence, soft_wrap=True)
    heads = "R2", "RMSE", "unit", "relative", "R2 of the floor", "R2 of the file"
    rows = [
        [
            *(escape(row[key]) for key in ("joint", "run", "use")),
            *(f"{row[s]:.4g}" for s in ("r2", "rmse")),
            row["unit"],
            *(f"{row[s]:.4g}" for s in ("relative", "floor_r2", "file_r2")),
        ]
        for row in results["joints"]
    ]
    print_table(console, ("joint", "run", "use", *heads), rows, words=3)
    rows = []
    for name, p in results["parameters"].items():
        bound = " (bound)" if p["at_bound"] else ""
        numbers = (f"{p[key]:.4g}" for key in ("start", "value", "std_error", "prior_share"))
        start, value, *others = numbers
        rows.append([escape(name), start, f"{value} {p['unit']}{bound}", *others])
    heads = "number", "start", "value", "standard error", "file's share"
    print_table(console, heads, rows)
