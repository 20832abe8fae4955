"""`difflie sweep`: computes the table that a TOML file describes, chunk by chunk."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from ..io.loading import located
from ..io.modules import code_allowed
from ..io.results import Results, machine
from ..sweep import Dask, Engine, Statistics, statistics
from ..sweep import sweep as run
from ..sweep.chunks import Estimate, estimate
from ..sweep.files import SweepFile, design_of, function_of, read_sweep
from ..sweep.report import stored_report, table_report
from ..sweep.run import Progress, Rate
from ..sweep.store_location import is_address
from ..view.report import Report
from ..view.report_page import write_html
from ..view.report_terminal import print_report
from .output import check_outputs, console, say, write_results


@dataclass(frozen=True, kw_only=True)
class ColumnEnds(Results):
    """Of a column its unit, how many rows count, and their ends and statistics.

    These are rows that are done with finite values; left_out: how many do not count, by the reason.
    Of a column with several entries in each row only the ends are there.
    """

    unit: str
    finite: int
    least: float
    median: float
    greatest: float
    mean: float
    deviation: float
    p5: float
    p95: float
    left_out: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class SweepResults(Results):
    """What a sweep came to, as `difflie sweep --json` writes it; see docs/results.md.

    rows: how many there are of each status. columns: by name. seconds: of the whole call.
    """

    name: str
    rows: dict[str, int]
    columns: dict[str, ColumnEnds]
    seconds: float
    machine: dict[str, str]


def sweep(
    file: Annotated[Path, tyro.conf.Positional],
    out: str | None = None,
    json: Path | None = None,
    plot: bool = True,
    scheduler: str | None = None,
    dry_run: bool = False,
    allow_code: bool = False,
) -> None:
    """Compute a table of what motions come to, for many values of their numbers.

    Ended by anything, the same command goes on. The exit status is 1 where no row is done.

    Args:
        file: the sweep; `python -c "from difflie.sweep import files; help(files)"` shows its
            keys.
        out: a folder for the table (OUT/table: zarr, which xarray opens), or an address of an
            object store, such as s3://bucket/sweep.
        plot: at the end write a report (HTML) and its pictures into the folder, too.
        json: a file for the results.
        scheduler: the address of a Dask cluster whose workers compute, such as tcp://host:8786.
        dry_run: only say how many rows there are, and what they will take.
        allow_code: import the Python modules that the file names, which runs them; only for files
            that you trust. DIFFLIE_ALLOW_CODE=1 in the environment does the same.
    """
    config = read_sweep(file, allow_code=code_allowed(allow_code))
    check_outputs(None if out is None or is_address(out) else Path(out), json, "report.html")
    if not config.sweep.function and config.simulation.left_out:
        say(f"{file.name}: {config.simulation.left_out}")
    if dry_run:
        with console.status(f"{file.name}: compiling and measuring"):
            found = estimated(config)
        say(str(found))
        write_results(json, found)
        return
    if out is None:
        say(f"{file.name}: the table will not be kept, only summed up; --out DIR keeps it")
    pace = Rate()
    with console.status(f"{file.name}: compiling") as status:

        def progress(done: int, size: int) -> None:
            text = f"{file.name}: {pace.after(done, size)}"
            status.update(text)
            if not console.is_terminal:
                say(text)

        engine = None if scheduler is None else Dask(scheduler)
        results, report = run_file(config, out, plot, progress, engine)
    print_report(console, report)
    if out is not None:
        page = f", {out}/report.html" if plot and not is_address(out) else ""
        say(f"written: {out}/table{page}")
    write_results(json, results)
    if not results.rows.get("done"):
        say(f"{file.name}: none of {sum(results.rows.values())} rows is done")
        raise SystemExit(1)


def run_file(
    config: SweepFile,
    out: str | Path | None = None,
    plot: bool = False,
    progress: Progress | None = None,
    engine: Engine | None = None,
) -> tuple[SweepResults, Report]:
    """Computes the table of a file, or what is missing of it; returns a summary and a report."""
    begin = time.perf_counter()
    table = None if out is None else f"{str(out).rstrip('/')}/table"
    with located(f"{config.path}: "):
        design = design_of(config)
        data = run(
            function_of(config),
            design,
            table,
            gradient=config.sweep.gradient,
            chunk=config.sweep.chunk,
            about={"file": config.text},
            engine=engine,
            progress=progress,
        )
    report = table_report(data, design) if table is None else stored_report(table, design)
    if out is not None and plot and not is_address(out):
        write_html(report, Path(out))
    words, counts = np.unique(data.status.values, return_counts=True)
    columns = {}
    for name, x in data.data_vars.items():
        if x.dtype.kind == "f":
            columns[str(name)] = column_ends(statistics(data, str(name)))
    results = SweepResults(
        name=config.path.stem,
        rows={str(w): int(c) for w, c in zip(words, counts, strict=True)},
        columns=columns,
        seconds=time.perf_counter() - begin,
        machine=machine(),
    )
    return results, report


def column_ends(x: Statistics) -> ColumnEnds:
    """The statistics of a column as JSON has them."""
    single = np.ndim(x.mean) == 0

    def of_one(value: Any) -> float:
        return value if single else np.nan

    return ColumnEnds(
        unit=x.unit,
        finite=x.rows,
        least=float(np.min(x.least)) if np.size(x.least) else np.nan,
        median=of_one(x.percentiles[50.0]),
        greatest=float(np.max(x.greatest)) if np.size(x.greatest) else np.nan,
        mean=of_one(x.mean),
        deviation=of_one(x.deviation),
        p5=of_one(x.percentiles[5.0]),
        p95=of_one(x.percentiles[95.0]),
        left_out={word: len(rows) for word, rows in x.left_out.items()},
    )


def estimated(config: SweepFile) -> Estimate:
    """What the sweep of a file will take."""
    with located(f"{config.path}: "):
        return estimate(function_of(config), design_of(config), gradient=config.sweep.gradient)
