"""The numbers of all methods in all cases, tables of them beside those of the thesis, figures.

Figures 5.1 to 5.8, and one of all order plots.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from ...io.results import Results
from ...view.figures import draw_lines, figure, label
from ...view.plots import draw_errors, draw_slope, slope
from ...view.report import Cell, Checked, Section, Table, notes
from ..papers import Computed, Progress, each, number, printed
from .schemes import SCHEMES
from .study import (
    DURATION,
    ORDER_DURATION,
    ORDER_STEPS,
    STATE_STEPS,
    STEP,
    TIMED_RUNS,
    Study,
    energy_order,
    seconds,
    showing_order,
    study,
)

CASES = {
    "gravity": "gravity alone",
    "mono": "mono-articular springs",
    "multi": "a multi-articular spring",
}

# By case and method.
Studies = dict[tuple[str, str], Study]

_STABLE, _GAUSS = "energy-stable midpoint", "energy-stable 3-point Gauss"
_SINE, _MIDPOINT = "variational sine", "implicit midpoint"


def figures(studies: Studies) -> dict[str, Figure]:
    """The figures by file name."""
    what = {
        "figure_5_1": (_over_time, "constraint", "gravity", (_STABLE, _SINE)),
        "figure_5_2": (_over_time, "constraint", "mono", (_STABLE, _SINE)),
        "figure_5_3": (_over_time, "energy", "gravity", (_STABLE, _SINE, _MIDPOINT)),
        "figure_5_4": (_orders, "gravity", (_SINE, _MIDPOINT)),
        "figure_5_5": (_over_time, "energy", "mono", (_STABLE, _SINE)),
        "figure_5_6": (_over_time, "energy", "mono", (_GAUSS,)),
        "figure_5_7": (_orders, "mono", (_STABLE, _SINE)),
        "figure_5_8": (_orders, "mono", (_GAUSS,)),
        "all_methods": (_all_orders,),
    }
    return {name: draw(studies, *rest) for name, (draw, *rest) in what.items()}


def _over_time(studies: Studies, quantity: str, case: str, methods: tuple[str, ...]) -> Figure:
    """The constraint or energy errors of methods in a case, one below the other."""
    canvas, axes = figure(len(methods), 1, (8.0, 1.0 + 2.6 * len(methods)))
    canvas.suptitle(f"{_capitalised(quantity)} error, {CASES[case]}")
    for a, method in zip(axes[:, 0], methods, strict=True):
        motion, error = studies[case, method].long, "energy error [J]"
        values, names = motion.energy_error[:, None], [""]
        if quantity == "constraint":
            values, names = motion.constraint, ["link 1", "link 2", "link 3"]
            error = f"error of {'length [m²]' if method.startswith('energy') else 'norm [-]'}"
        draw_lines(a, motion.t, values, names)
        a.set_xlim(0, DURATION)
        label(a, "t [s]", error, _capitalised(method))
    canvas.align_ylabels()
    return canvas


def _orders(studies: Studies, case: str, methods: tuple[str, ...]) -> Figure:
    """The mean energy errors of methods over the step size, and lines of their orders."""
    canvas, axes = figure(1, len(methods), (1.0 + 5.0 * len(methods), 4.5))
    canvas.suptitle(f"Mean energy error in {ORDER_DURATION:g} s, {CASES[case]}")
    for a, method in zip(axes[0], methods, strict=True):
        averages = studies[case, method].averages
        draw_errors(a, ORDER_STEPS, averages, linewidth=1.5)
        order = energy_order(ORDER_STEPS, averages)
        if order is not None:
            part = showing_order(averages)
            h = ORDER_STEPS[part]
            last = np.exp(np.mean(np.log(averages[part]) - order * np.log(h / h[-1])))
            style = {"linestyle": "--", "linewidth": 1.5}
            draw_slope(a, h[[0, -1]], last, order, label=f"slope {order:.2f}", **style)
        label(a, "dt [s]", "mean energy error [J]", _capitalised(method))
    return canvas


def _all_orders(studies: Studies) -> Figure:
    canvas, axes = figure(1, len(CASES), (13.0, 5.0))
    canvas.suptitle(f"Mean energy error in {ORDER_DURATION:g} s")
    for a, (case, title) in zip(axes[0], CASES.items(), strict=True):
        for method in SCHEMES:
            draw_errors(a, ORDER_STEPS, studies[case, method].averages, method)
        a.set_ylim(1e-16, 10)
        legend = a is axes[0, -1]
        label(a, "dt [s]", "mean energy error [J]", _capitalised(title), legend=legend)
    return canvas


def _capitalised(text: str) -> str:
    return text[0].upper() + text[1:]


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
