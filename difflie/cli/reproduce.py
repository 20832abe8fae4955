"""`difflie reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from ..io.tables import ConfigError
from ..reproduce import REPRODUCTIONS
from ..system.validation import nearest
from .output import check_outputs, console, progress_bars, say, write_results


def reproduce(
    name: Annotated[str, tyro.conf.Positional],
    out: Path | None = None,
    json: Path | None = None,
) -> None:
    """Recompute a published result and print it beside the printed numbers.

    Args:
        name: which result: goetz, long-run, mechanisms, mueller, park-chung, pleiades or
            reuss.
        out: a folder for a report (HTML) and its figures.
        json: a file for the numbers.
    """
    if name not in REPRODUCTIONS:
        known = ", ".join(REPRODUCTIONS)
        raise ConfigError(
            f"there is no published result {name!r}{nearest(name, REPRODUCTIONS)}; known: {known}"
        )
    reproduction = REPRODUCTIONS[name]
    check_outputs(out, json, "report.html")
    with progress_bars() as progress:
        results = reproduction.compute(out, progress)
    reproduction.show(results, console)
    if out is not None:
        say(f"written: {out}/report.html")
    write_results(json, results)
