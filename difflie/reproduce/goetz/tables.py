"""The numbers of all methods in all cases, and tables of them beside those of the thesis."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Console

from ...view.errors import slope
from ..runs import Progress, each
from ..tables import beside, note, number, printed, show_table
from .figures import CASES, figures
from .schemes import SCHEMES
from .study import (
    DURATION,
    ORDER_STEPS,
    STATE_STEPS,
    STEP,
    TIMED_RUNS,
    Study,
    energy_order,
    seconds,
    study,
)

_COLUMNS = {
    "max_energy_error": ("energy\n[J]", ".1e"),
    "max_constraint_error": ("con-\nstraint", ".1e"),
    "energy_order": ("energy\norder", ".2f"),
    "state_order": ("state\norder", ".2f"),
    "realtime_percent": ("time\n[%]", ".2f"),
}


def compute(progress: Progress) -> tuple[dict[str, Any], Any]:
    """All rows, and a function that draws the figures.

    A row holds the largest energy error in J and constraint error in m^2 (energy-stable) or of unit
    attitudes (the others) of the standard run, the orders of the mean energy error and of the
    angles, and the computing time in percent of the simulated one, without compilation.
    """
    pairs = [(case, method) for case in CASES for method in SCHEMES]
    studied = each(progress, "methods", lambda pair: study(*pair), pairs)
    times = each(progress, "timing", lambda pair: seconds(*pair), pairs, workers=1)
    studies = dict(zip(pairs, studied, strict=True))
    rows = [
        {"case": case, "method": method, **_numbers(s, time)}
        for ((case, method), s), time in zip(studies.items(), times, strict=True)
    ]
    unsolved = [
        {"case": case, "method": method, "smallest_step": float(ORDER_STEPS[np.argmax(failed)])}
        for (case, method), s in studies.items()
        if (failed := np.isnan(s.averages)).any()
    ]
    results = {"rows": rows, "printed": printed(__file__)["rows"], "unsolved": unsolved}
    return results, lambda: figures(studies)


def _numbers(s: Study, seconds: float) -> dict[str, float | None]:
    """Of a row; seconds: of the standard run."""
    return {
        "max_energy_error": float(np.max(np.abs(s.long.energy_error))),
        "max_constraint_error": float(np.max(np.abs(s.long.constraint))),
        "energy_order": energy_order(ORDER_STEPS, s.averages),
        "state_order": slope(STATE_STEPS, s.state_errors),
        "realtime_percent": 100 * seconds / DURATION,
    }


def show(results: dict[str, Any], console: Console) -> None:
    """Prints the results of `compute`, the thesis' numbers below."""
    published = {(row["case"], row["method"]): row for row in results["printed"]}
    heads = ["Method", *(head for head, _ in _COLUMNS.values())]
    for case, name in CASES.items():
        title = f"Three links, {name}: {DURATION:g} s in steps of {STEP:g} s"
        rows = [_cells(row, published) for row in results["rows"] if row["case"] == case]
        show_table(console, title, heads, rows)
    note(
        console,
        "Below the numbers stand those of the thesis, of errors the powers of ten.",
        "Errors are the largest of the run; a dash: rounding, which has no order. Times (Tables "
        "5.2 and 5.3) are processor time in percent of simulated time, without compilation: the "
        f"shortest of {TIMED_RUNS} runs.",
        *(
            f"{r['method']}, {CASES[r['case']]}: from dt = {r['smallest_step']:g} s on there are "
            "steps that cannot be solved"
            for r in results["unsolved"]
        ),
    )


def _cells(row: dict[str, Any], published: dict[tuple[str, str], dict[str, Any]]) -> list[str]:
    """The method, and each computed number above the published one, as far as there is one."""
    old, cells = published.get((row["case"], row["method"]), {}), [row["method"]]
    for key, (_, form) in _COLUMNS.items():
        below = number(old[key], ".0e" if "error" in key else "g") if key in old else ""
        cells.append(beside(number(row[key], form), below))
    return cells
