"""The numbers of all methods in all cases, and tables of them beside those of the thesis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...io.results import Results
from ...view.errors import slope
from ...view.report import Cell, Checked, Section, Table, notes
from ..runs import Computed, Progress, each
from ..tables import number, printed
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


@dataclass(frozen=True, kw_only=True)
class MethodRow(Results):
    """What a method reaches in a case.

    The largest energy error in J and constraint error in m^2 (energy-stable) or of unit attitudes
    (the others) of the standard run, the orders of the mean energy error and of the angles, None
    for rounding, and the computing time in percent of the simulated one, without compilation.
    """

    case: str
    method: str
    max_energy_error: float
    max_constraint_error: float
    energy_order: float | None
    state_order: float | None
    realtime_percent: float


@dataclass(frozen=True, kw_only=True)
class PrintedRow(Results):
    """What the thesis says of a method in a case, None where it says nothing."""

    case: str
    method: str
    max_energy_error: float | None = None
    max_constraint_error: float | None = None
    energy_order: float | None = None
    state_order: float | None = None
    realtime_percent: float | None = None


@dataclass(frozen=True, kw_only=True)
class Unsolved(Results):
    """From which step in s on a method has steps that cannot be solved."""

    case: str
    method: str
    smallest_step: float


@dataclass(frozen=True, kw_only=True)
class GoetzResults(Results):
    """All methods in all cases, as computed and as printed."""

    name: str = "goetz"
    rows: list[MethodRow]
    printed: list[PrintedRow]
    unsolved: list[Unsolved]


def compute(progress: Progress) -> Computed:
    """All rows, and a function that draws the figures."""
    pairs = [(case, method) for case in CASES for method in SCHEMES]
    studied = each(progress, "methods", lambda pair: study(*pair), pairs)
    times = each(progress, "timing", lambda pair: seconds(*pair), pairs, workers=1)
    studies = dict(zip(pairs, studied, strict=True))
    unsolved = [
        Unsolved(case=case, method=method, smallest_step=float(ORDER_STEPS[np.argmax(failed)]))
        for (case, method), s in studies.items()
        if (failed := np.isnan(s.averages)).any()
    ]
    results = GoetzResults(
        rows=[_row(*pair, studies[pair], time) for pair, time in zip(pairs, times, strict=True)],
        printed=[PrintedRow(**row) for row in printed(__file__)["rows"]],
        unsolved=unsolved,
    )
    return results, lambda: figures(studies)


def _row(case: str, method: str, s: Study, seconds: float) -> MethodRow:
    """seconds: of the standard run."""
    return MethodRow(
        case=case,
        method=method,
        max_energy_error=float(np.max(np.abs(s.long.energy_error))),
        max_constraint_error=float(np.max(np.abs(s.long.constraint))),
        energy_order=energy_order(ORDER_STEPS, s.averages),
        state_order=slope(STATE_STEPS, s.state_errors),
        realtime_percent=100 * seconds / DURATION,
    )


def sections(results: GoetzResults) -> list[Section]:
    """A section for each case, the thesis' numbers below the computed ones."""
    published = {(row.case, row.method): row for row in results.printed}
    head = ["Method", *(head for head, _ in _COLUMNS.values())]
    tables = []
    for case, name in CASES.items():
        title = f"Three links, {name}: {DURATION:g} s in steps of {STEP:g} s"
        rows = [_cells(row, published) for row in results.rows if row.case == case]
        tables.append(Section(title, [Table(head, rows)]))
    said = notes(
        "Below the numbers stand those of the thesis, of errors the powers of ten.",
        "Errors are the largest of the run; a dash: rounding, which has no order. Times (Tables "
        "5.2 and 5.3) are processor time in percent of simulated time, without compilation: the "
        f"shortest of {TIMED_RUNS} runs.",
        *(
            f"{r.method}, {CASES[r.case]}: from dt = {r.smallest_step:g} s on there are steps that "
            "cannot be solved"
            for r in results.unsolved
        ),
    )
    return [*tables, Section("What the numbers are", said)]


def _cells(row: MethodRow, published: dict[tuple[str, str], PrintedRow]) -> list[Cell]:
    """The method, and each computed number above the published one, as far as there is one."""
    cells: list[Cell] = [row.method]
    for key, (_, form) in _COLUMNS.items():
        old = getattr(published.get((row.case, row.method)), key, None)
        below = "" if old is None else number(old, ".0e" if "error" in key else "g")
        cells.append(Checked(number(getattr(row, key), form), below))
    return cells
