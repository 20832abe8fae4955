"""The table of a sweep as pictures and as a page, also while it is computed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..io.results import provenance
from ..view.figures import save
from ..view.report import Cell, Figure, Report, Section, Table, Worked, notes
from ..view.report_page import write_html
from ..view.sweep import (
    histogram_figure,
    map_figure,
    parallel_figure,
    scatter_figure,
    status_figure,
)
from .design import Design, Listed, Product
from .samples import Drawn
from .sensitivity import Sensitivity
from .statistics import INFINITE, PERCENTILES, Statistics, rows_text
from .store import Store
from .summary import Summary, influence, influence_sentence

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure as Picture

# How much is shown; what is left out is said.
_NUMBERS, _OUTPUTS, _LINES, _HISTOGRAMS, _ANALYSED = 12, 6, 4, 12, 40
_FAILURES = 5
_LEVELS = [{50.0: "median"}.get(p, f"{p:g} %") for p in PERCENTILES]

Known = Mapping[str, tuple[Sensitivity, NDArray]]


def report(out: str | Path, folder: str | Path, design: Design | None = None) -> Path:
    """Writes `report.html` of a stored sweep with its pictures; returns its path.

    out: the store, as of `sweep`, finished or not. folder: for the page, and for its pictures as
    PNG files. design: of the sweep, needed only where its class is your own. It says what was
    varied, how many rows ended how, on which numbers the outputs depend, and between which ends
    they are. Raises StoreError where there is no store, or one with damaged chunks; ImportError
    without the extra `sweep`.
    """
    return write_html(stored_report(out, design), Path(folder))


def stored_report(out: str | Path, design: Design | None = None) -> Report:
    """The report of a stored sweep; arguments and errors as of `report`."""
    store = Store.opened(out)
    store.check_rows()
    return table_report(store.dataset(), design, store.failures(), _origin(store))


def table_report(
    table: xarray.Dataset,
    design: Design | None = None,
    failures: Mapping[int, str] = MappingProxyType({}),
    origin: Mapping[str, object] = MappingProxyType({}),
) -> Report:
    """The report of a table of `sweep`.

    failures: why rows failed, by their index. origin: as of `Report`.
    """
    summary = Summary(table, design)
    known = _known(summary)
    return Report(
        f"Sweep of {_count(len(summary.names), 'number')}, {_count(len(summary.status), 'row')}",
        _what(summary),
        _worked(summary),
        [_outcome(summary), *_dependences(summary, known)],
        [
            *_failed(summary, failures),
            _numbers(summary),
            *_pictures(summary, known),
            *_tables(summary, known),
        ],
        origin,
    )


def plot(table: xarray.Dataset, folder: str | Path, design: Design | None = None) -> list[Path]:
    """Writes the pictures of a table that `sweep` returns as PNG files; returns their paths.

    Parallel coordinates, maps, scatter and histograms, and what became of the rows.
    """
    summary = Summary(table, design)
    return [
        save(part.draw(), Path(folder) / part.file)
        for section in _pictures(summary, _known(summary))
        for part in section.parts
        if isinstance(part, Figure)
    ]


def _known(summary: Summary) -> Known:
    """The indices and the rank correlations of outputs, by name."""
    outputs = summary.outputs[:_ANALYSED]
    return {name: (summary.sensitivity(name), summary.correlations(name)) for name in outputs}


def _count(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _what(summary: Summary) -> str:
    """What was varied, and what was computed of it."""
    outputs = _count(len(summary.outputs), "output")
    numbers = _count(len(summary.names), "number")
    slopes = _count(len(summary.slopes), "derivative")
    also = f" and {slopes}" if summary.slopes else ""
    rows = _count(len(summary.status), "row")
    return f"{numbers.capitalize()}, {_drawn(summary.design)}: {rows}, with {outputs}{also} each."


def _worked(summary: Summary) -> Worked:
    done = summary.counts.get("done", 0)
    return Worked.judged(done > 0, done < len(summary.status))


def _outcome(summary: Summary) -> str:
    """How the rows ended."""
    size, counts = len(summary.status), summary.counts
    pending = counts.pop("pending", 0)
    if not pending and counts == {"done": size}:
        return "All rows are done."
    said = ", ".join(f"{count} {word}" for word, count in counts.items())
    if pending:
        return (
            f"Not finished: {pending} of {size} rows are pending, and this page is of the others"
            f"{': ' if said else ''}{said}. The same sweep goes on where it ended."
        )
    return f"Rows: {said}. Only rows that are done count below."


def _drawn(design: Design | None) -> str:
    """How the values of the numbers were chosen."""
    if isinstance(design, Drawn):
        return f"{_count(design.count, 'draw')} by {type(design).__name__} with seed {design.seed}"
    if isinstance(design, Listed):
        return f"{_count(design.size, 'row')} of a list"
    if isinstance(design, Product):
        return ", each with ".join(map(_drawn, design.parts))
    return "by a design of another class"


def _dependences(summary: Summary, known: Known) -> Iterator[str]:
    """On which numbers the outputs depend."""
    told = [name for name in known if summary.column(name).finite.size]
    for name in told[:_OUTPUTS]:
        yield influence_sentence(*known[name])
    if most := max((known[name][0].left_out for name in told if known[name][0].first), default=0):
        yield f"Up to {most} rows are left out of these shares, as a value is not finite."
    if len(told) > _OUTPUTS:
        yield f"The other {len(told) - _OUTPUTS} outputs are in the tables below."


def _failed(summary: Summary, reasons: Mapping[int, str]) -> Iterator[Section]:
    """The first rows that are not done, and why."""
    bad = np.flatnonzero((summary.status != "done") & (summary.status != "pending"))
    if not bad.size:
        return
    rows = [
        (str(k), str(summary.status[k]), reasons.get(int(k)) or summary.numbers(int(k)))
        for k in bad[:_FAILURES]
    ]
    more = len(bad) - len(rows)
    text = [f"{more} more; the column `status` names them all."] if more else []
    table = Table(("row", "status", "reason, or its numbers"), rows, names=3)
    yield Section("What failed first", [table, *notes(*text)], "rows without a result, and why")


def _numbers(summary: Summary) -> Section:
    """What was varied, and how."""
    spread = _spread(summary.design)
    rows: list[tuple[Cell, ...]] = []
    for name in summary.names:
        x = summary.column(name)
        low, high = x.ends if x.finite.size else (np.nan, np.nan)
        rows.append((name, summary.unit(name), spread.get(name, ""), low, high))
    head = "number", "unit", "values", "least", "greatest"
    return Section("Numbers", [Table(head, rows, names=3)], brief=False)


def _spread(design: Design | None) -> dict[str, str]:
    """The values or the distribution of each number, in words."""
    if isinstance(design, Product):
        return {name: said for part in design.parts for name, said in _spread(part).items()}
    if isinstance(design, Listed):
        return {name: _count(len(values), "value") for name, values in design.table.items()}
    if isinstance(design, Drawn):
        return {name: str(distribution) for name, distribution in design.of.items()}
    return {}


def _pictures(summary: Summary, known: Known) -> Iterator[Section]:
    """All pictures, each with its title and file."""
    counts = summary.counts
    if set(counts) != {"done"}:
        yield Section("Rows", [Figure(partial(status_figure, counts), "status.png")])
    columns = {name: summary.column(name) for name in known}
    vary = [name for name in known if columns[name].finite.size and not columns[name].is_constant]
    lost = [name for name in known if name not in vary]
    if vary:
        yield from _relations(summary, {name: known[name] for name in vary}, lost)
    if summary.computed.size and known:
        shown = [columns[name] for name in list(known)[:_HISTOGRAMS]]
        picture = _figure(summary, partial(histogram_figure, shown), "histograms.png")
        yield Section("Distributions", [picture], "which values the outputs have")


def _figure(summary: Summary, draw: Callable[[], Picture], file: str) -> Figure:
    """A picture that says, also where it is seen alone, if it is of some rows only."""
    shown, of = len(summary.rows), len(summary.computed)

    def labelled() -> Picture:
        picture = draw()
        if shown < of:
            said = f"{shown} of all {of} rows were drawn at random first"
            picture.supxlabel(said, x=0.99, ha="right", fontsize="small")
        return picture

    return Figure(labelled, file)


def _relations(summary: Summary, known: Known, lost: list[str]) -> Iterator[Section]:
    """Pictures of outputs that vary over the numbers; lost: the names of the others."""
    numbers = _influential(summary, known)
    given = [summary.column(name) for name in numbers]
    drawn = [summary.column(name) for name in list(known)[:_OUTPUTS]]
    said = notes(*_left_out(summary, numbers, list(known), lost))
    picture = _figure(summary, partial(parallel_figure, given, drawn[:_LINES]), "parallel.png")
    yield Section("Parallel coordinates", [*said, picture], brief=False)
    if len(numbers) > 1:
        maps = []
        for output in drawn:
            x, y = _order(summary, known[output.name], numbers)[:2]
            maps.append((summary.column(x), summary.column(y), output))
        picture = _figure(summary, partial(map_figure, maps), "maps.png")
        yield Section(
            "Maps", [picture], "each output over the two numbers on which it depends most"
        )
    for k, output in enumerate(drawn):
        picture = _figure(summary, partial(scatter_figure, output, given), f"scatter_{k}.png")
        yield Section(f"{output.name} and the numbers", [picture])


def _influential(summary: Summary, known: Known) -> list[str]:
    """The numbers that pictures show, in the order of the table."""
    most = np.zeros(len(summary.names))
    for found in known.values():
        most = np.maximum(most, influence(*found))
    kept = np.argsort(-most, kind="stable")[:_NUMBERS]
    return [summary.names[k] for k in np.sort(kept)]


def _order(summary: Summary, found: tuple[Sensitivity, NDArray], among: list[str]) -> list[str]:
    """Numbers, that on which an output depends most first."""
    order = np.argsort(-influence(*found), kind="stable")
    return [summary.names[k] for k in order if summary.names[k] in among]


def _left_out(
    summary: Summary, numbers: list[str], vary: list[str], lost: list[str]
) -> Iterator[str]:
    """What the pictures do not show."""
    if len(summary.rows) < len(summary.computed):
        yield (
            f"All pictures are of {len(summary.rows)} of {len(summary.computed)} rows, drawn at "
            "random; the tables are of all."
        )
    if fewer := len(summary.names) - len(numbers):
        yield f"Pictures leave out the {_count(fewer, 'number')} with the least influence."
    if more := vary[_OUTPUTS:]:
        said = f"{', '.join(more[:12])}{' ...' * (len(more) > 12)}"
        yield f"Maps and scatter leave out {said}."
    if lost:
        yield f"The same in all rows, or never finite: {', '.join(lost)}."


def _tables(summary: Summary, known: Known) -> Iterator[Section]:
    """The outputs with their statistics, the rows where their ends are, and the indices."""
    of = {name: summary.statistics(name) for name in summary.real}
    said = ["Of rows that are done with finite values; each counts the same."]
    said += _infinite(summary, of)
    if summary.never:
        meant = ", ".join(f"{why} ({name})" for name, why in summary.never.items())
        said.append(f"In the rows that are done {meant}.")
    if other := summary.other:
        said.append(f"Only in the table, as they are no single real numbers: {', '.join(other)}.")
    if (more := len(summary.outputs) - len(known)) > 0:
        said.append(f"The influence of numbers on the last {more} outputs was not analysed.")
    head = "output", "unit", "rows", "left out", "mean", "deviation", "least", *_LEVELS, "greatest"
    rows: list[tuple[Cell, ...]] = []
    for name, x in of.items():
        left_out = ", ".join(f"{len(k)} {word}" for word, k in x.left_out.items()) or "0"
        counts, moments = (str(x.rows), left_out), (x.mean, x.deviation)
        rows.append((name, x.unit, *counts, *moments, x.least, *x.percentiles.values(), x.greatest))
    yield Section("Outputs", [Table(head, rows, names=2), *notes(*said)])
    where: list[tuple[Cell, ...]] = []
    for name in summary.outputs:
        x = of[name]
        if x.rows and x.least < x.greatest:
            for end, row in (("least", x.least_row), ("greatest", x.greatest_row)):
                where.append((name, end, str(row), summary.numbers(row)))
    if where:
        table = Table(("output", "end", "row", "numbers"), where, names=4)
        look = "the rows with the least and the greatest values"
        yield Section("Where they are", [table], look, brief=False)
    yield from _indices(known)


def _infinite(summary: Summary, of: Mapping[str, Statistics]) -> Iterator[str]:
    """Which rows do not count, by status; of outputs that are partly infinite also which."""
    bad = {w: k for x in of.values() for w, k in x.left_out.items() if w != INFINITE}
    if bad:
        yield f"Left out of all outputs: {rows_text(bad)}."
    lost = {name: x for name, x in of.items() if x.rows and INFINITE in x.left_out}
    for name, x in list(lost.items())[:_OUTPUTS]:
        yield f"Left out of {name}: {rows_text({INFINITE: x.left_out[INFINITE]})}."
    if len(lost) > _OUTPUTS:
        yield f"Infinite values are left out of {len(lost) - _OUTPUTS} more outputs."


def _indices(known: Known) -> Iterator[Section]:
    """Sobol's indices, and why some are missing."""
    rows: list[tuple[Cell, ...]] = []
    said = []
    for name, (found, correlations) in known.items():
        if found.first is None:
            said.append(f"{found.why}.")
            continue
        said += [f"{found.remark}."] if found.remark else []
        shares = (*found.first, *(found.total or ()))
        for k, number in enumerate(found.names):
            cells = [f"{x[k]:.3f}" for x in shares]
            blank = [""] * (4 - len(cells))
            rows.append((name, number, *cells, *blank, f"{correlations[k]:+.2f}"))
    methods = sorted({f"{s.method}, {s.rows} rows" for s, _ in known.values() if s.method})
    if rows:
        head = "output", "number", "first order", "±", "total", "±", "rank correlation"
        method = f"{'; '.join(methods)}; ± are 95 % intervals."
        parts = [Table(head, rows, names=2), *notes(method, *said)]
        look = "which numbers matter, and how sure that is"
        yield Section("Shares of the variance", parts, look, brief=False)


def _origin(store: Store) -> dict[str, object]:
    """What the table was made from and with."""
    described = {k: v for k, v in store.configuration.items() if k != "columns"}
    about = {key: _as_text(_short(value)) for key, value in described.items()}
    made = {**store.machine, "difflie": store.version}
    return provenance(made, table=store.where, **about)


def _as_text(value: Any) -> str:
    """A description as JSON: in one line, or in many if it is long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 100 else json.dumps(value, indent=2, ensure_ascii=False)


def _short(value: Any) -> Any:
    """A description in plain types without the middle of long lists."""
    if isinstance(value, Mapping):
        return {key: _short(x) for key, x in value.items()}
    if isinstance(value, list):
        ends = [*value[:3], f"... {len(value)} in all ...", value[-1]] if len(value) > 8 else value
        return [_short(x) for x in ends]
    return value
