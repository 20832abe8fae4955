"""`difflie sweep`: computes the table that a TOML file describes, chunk by chunk."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from ..io.loading import located
from ..io.modules import code_allowed
from ..io.results import machine
from ..sweep import Dask, Engine, failures
from ..sweep import report as write_report
from ..sweep import sweep as run
from ..sweep.estimate import Estimate, estimate
from ..sweep.files import SweepFile, design_of, function_of, read_sweep
from ..sweep.places import is_address
from ..sweep.run import Pace
from .output import check_outputs, console, say, write_results

_ENDS = "least", "median", "greatest"


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
        write_results(json, found.results)
        return
    if out is None:
        say(f"{file.name}: the table will not be kept, only summed up; --out DIR keeps it")
    pace = Pace()
    with console.status(f"{file.name}: compiling") as status:

        def progress(done: int, size: int) -> None:
            text = f"{file.name}: {pace.after(done, size)}"
            status.update(text)
            if not console.is_terminal:
                say(text)

        engine = None if scheduler is None else Dask(scheduler)
        results = run_file(config, out, plot, progress, engine)
    for name, count in results["rows"].items():
        say(f"{name}: {count} rows")
    if out is not None:
        say(
            f"written: {out}/table"
            + (f", {out}/report.html" if plot and not is_address(out) else "")
        )
    write_results(json, results)
    if not results["rows"].get("done"):
        table = None if out is None else f"{out.rstrip('/')}/table"
        reason = "" if table is None else next(iter(failures(table).values()), "")
        first = f"; the first: {reason}" if reason else ""
        say(f"{file.name}: none of {sum(results['rows'].values())} rows is done{first}")
        raise SystemExit(1)


def run_file(
    config: SweepFile,
    out: str | Path | None = None,
    plot: bool = False,
    progress: Any = None,
    engine: Engine | None = None,
) -> dict[str, Any]:
    """Computes the table of a file, or what is missing of it, and returns a summary.

    rows: how many there are of each status; columns: of each the unit, how many rows are finite,
    and the least, median and greatest of these.
    """
    begin = time.perf_counter()
    with located(f"{config.path}: "):
        design = design_of(config)
        data = run(
            function_of(config),
            design,
            None if out is None else f"{str(out).rstrip('/')}/table",
            gradient=config.sweep.gradient,
            chunk=config.sweep.chunk,
            about={"file": config.text},
            engine=engine,
            progress=progress,
        )
    if out is not None and plot and not is_address(out):
        write_report(Path(out) / "table", out, design)
    words, counts = np.unique(data.status.values, return_counts=True)
    columns = {}
    for name, x in data.data_vars.items():
        if x.dtype.kind == "f":
            there = x.values[np.isfinite(x.values)]
            ends = np.quantile(there, (0, 0.5, 1)) if there.size else np.full(3, np.nan)
            said = {"unit": x.attrs.get("units", ""), "finite": int(there.size)}
            columns[str(name)] = said | dict(zip(_ENDS, map(float, ends), strict=True))
    return {
        "name": config.path.stem,
        "rows": {str(w): int(c) for w, c in zip(words, counts, strict=True)},
        "columns": columns,
        "seconds": time.perf_counter() - begin,
        "machine": machine(),
    }


def estimated(config: SweepFile) -> Estimate:
    """What the sweep of a file will take."""
    with located(f"{config.path}: "):
        return estimate(function_of(config), design_of(config), gradient=config.sweep.gradient)
