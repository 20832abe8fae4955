"""The command line: `difflie demo`, `difflie run`, `difflie identify`, `difflie reproduce`."""

from __future__ import annotations

import importlib.metadata
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import jax
import tyro
from rich.console import Console
from rich.markdown import Markdown
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from .io.config import ConfigError, read_config
from .io.files import check_writable
from .io.results import save_json
from .io.study import read_study
from .system import ModelError
from .system.validation import nearest

_console = Console()
# So few cores may all wait at once in linear algebra of batches, see `_avoid_a_deadlock`.
_FEW_CORES = 4
# Between two lines of progress where the output is no terminal.
_SECONDS = 3.0


def demo(out: Path = Path("difflie-demo"), json: Path | None = None) -> None:
    """Simulate, differentiate and identify a seven-joint arm, with pictures and a summary.

    Args:
        out: the folder for pictures and the summary.
        json: a file for the results.
    """
    from .demo import demo as run_demo

    _check_outputs(out, json, "drift.png", "payload.png", "summary.md")
    with _progress() as progress:
        report = run_demo(out, progress)
    _console.print(Markdown(report.summary))
    _console.print(f"Pictures and summary: {out}/")
    _write(json, {"name": "demo", **report.results})


def run(
    file: Annotated[Path, tyro.conf.Positional],
    out: Path | None = None,
    json: Path | None = None,
) -> None:
    """Run the simulation a TOML file describes.

    Args:
        file: the configuration; see difflie/io/config.py and the examples in configs/.
        out: a folder for the trajectory (.npz, .csv) and a picture.
        json: a file for the results.
    """
    from .run import run as run_config

    config = read_config(file)
    _check_outputs(out, json, "trajectory.npz", "trajectory.csv", "motion.png")
    with _console.status(
        f"{file.name}: compiling and running {config.simulation.steps} steps"
    ) as s:
        results = run_config(config, out, _steps_told(file.name, s.update))
    energy = results["energy"]
    if "assembly" in results:
        moved = results["assembly"]
        _console.print(
            f"assembled: the initial coordinates moved by up to {moved['configuration']:.3g}, the "
            f"velocities by up to {moved['velocity']:.3g}; the constraints were kept to "
            f"{results['constraint_residual']:.2g}",
            highlight=False,
            soft_wrap=True,
        )
    for message in results["messages"]:
        _console.print(message, highlight=False, soft_wrap=True)
    _console.print(
        f"energy {energy['start']:.6g} J at the start, {energy['end']:.6g} J at the end; "
        f"largest change {energy['largest_change']:.3g} J",
        highlight=False,
    )
    if out is not None:
        _console.print(
            f"written: {out}/trajectory.npz, {out}/trajectory.csv, {out}/motion.png",
            highlight=False,
            soft_wrap=True,
        )
    _write(json, results)
    if not results["ok"]:
        raise SystemExit(1)


def identify(
    file: Annotated[Path, tyro.conf.Positional],
    data: Path | None = None,
    validate: tuple[Path, ...] = (),
    parameters: Path | None = None,
    resume: Path | None = None,
    out: Path | None = None,
    json: Path | None = None,
) -> None:
    """Find the parameters of a machine that explain measurements, as a TOML file describes it.

    Args:
        file: the configuration; `python -m pydoc difflie.io.study` shows its keys.
        data: the folder of the measured runs; by default that of the configuration.
        validate: more files to judge by, which are not used for the fit.
        parameters: a JSON file with numbers by name, which are judged; nothing is fitted.
        resume: a JSON file of an earlier run, such as one that was interrupted, to begin with.
        out: a folder for results, pictures, a report (HTML) and the machine (URDF, no actuators).
        json: a file for the results; the standard errors of what fit.undetermined names are null.
    """
    from .study import study

    config = read_study(file)
    _check_outputs(out, json, "identification.json", "report.html")
    with _console.status(f"{file.name}: compiling") as status:

        def progress(step: int, cost: float) -> None:
            status.update(f"{file.name}: step {step}, cost {cost:.6g}")

        results = study(config, data, validate, parameters, out, progress, resume, json)
    if results["fit"] is not None:
        _console.print(f"{results['fit']['message']}, cost {results['fit']['cost']:.6g}")
        for row in results["fit"]["unidentifiable"]:
            _console.print(f"not identifiable from this data: {', '.join(row)}", soft_wrap=True)
    table = Table("parameter", "start", "value", "standard error", "block-robust")
    keys = "start", "value", "std_error", "std_error_blockwise"
    for name, p in results["parameters"].items():
        table.add_row(name, *(_short(p[key]) for key in keys))
    _console.print(table)
    table = Table("run", "use", "joint", "torque RMSE", "position RMSE")
    for use in ("training", "left_out", "validation"):
        for row in results.get(use, ()):
            errors = _short(row["torque_rmse"]), _short(row["position_rmse"])
            table.add_row(row["run"], use.replace("_", " "), row["joint"], *errors)
    _console.print(table)
    if out is not None:
        _console.print(f"written: {out}/report.html", highlight=False, soft_wrap=True)
    _write(json, results)
    if results["converged"] is False:
        raise SystemExit(1)


def reproduce(
    name: Annotated[str, tyro.conf.Positional],
    out: Path | None = None,
    json: Path | None = None,
) -> None:
    """Recompute a published result and print it beside the printed numbers.

    Args:
        name: which result: goetz, long-run, mechanisms, mueller or park-chung.
        out: a folder for the results.
        json: a file for the numbers.
    """
    from .reproduce import REPRODUCTIONS

    if name not in REPRODUCTIONS:
        known = ", ".join(REPRODUCTIONS)
        raise ConfigError(
            f"there is no published result {name!r}{nearest(name, REPRODUCTIONS)}; known: {known}"
        )
    reproduction = REPRODUCTIONS[name]
    _check_outputs(out, json, f"{name}.png")
    with _progress() as progress:
        results = reproduction.compute(out, progress)
    reproduction.show(results, _console)
    if out is not None:
        _console.print(f"results: {out}/", highlight=False, soft_wrap=True)
    _write(json, results)


def main(arguments: list[str] | None = None) -> None:
    """Runs the command line; a bad input ends it with one sentence and the exit status 2."""
    _avoid_a_deadlock()
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_logging_level", "CRITICAL")  # no alarms of the compiler
    warnings.showwarning = _show_warning
    try:
        tyro.extras.subcommand_cli_from_dict(
            {"demo": demo, "run": run, "identify": identify, "reproduce": reproduce},
            prog="difflie",
            args=arguments,
        )
    except (ConfigError, ModelError, ValueError, TypeError, OSError) as error:
        Console(stderr=True).print(
            f"[bold red]error:[/] {_escape(error)}", highlight=False, soft_wrap=True
        )
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        Console(stderr=True).print("stopped")
        raise SystemExit(130) from None


def _avoid_a_deadlock() -> None:
    """Lets jaxlib up to 0.10 use one core where there are few.

    Its linear algebra on batches waits, inside a thread of a pool as large as the number of cores,
    for other threads of this pool: as many operations as threads, at once, wait for ever.
    """
    few = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    version = importlib.metadata.version("jaxlib")
    if few <= _FEW_CORES and version.startswith(("0.8.", "0.9.", "0.10.")):
        os.environ.setdefault("PJRT_NPROC", "1")  # read with the first operation


def _check_outputs(out: Path | None, json: Path | None, *names: str) -> None:
    """Raises `OutputError` for what could not be written, before anything is computed.

    names: of the files in the folder `out`.
    """
    for path in [json, *(out / name for name in names if out is not None)]:
        if path is not None:
            check_writable(path)


def _write(path: Path | None, results: dict[str, Any]) -> None:
    if path is not None:
        save_json(path, results)
        _console.print(f"results: {path}", highlight=False, soft_wrap=True)


@contextmanager
def _progress() -> Iterator[Any]:
    columns = (TextColumn("{task.description:<14}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=_console) as bar:
        tasks: dict[str, Any] = {}

        def update(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bar.add_task(stage, total=total)
            bar.update(tasks[stage], completed=done, total=total)

        yield update


def _steps_told(name: str, update: Callable[[str], None]) -> Callable[[int, int], None]:
    """What tells of the steps done: a line every few seconds where the output is no terminal."""
    last = time.monotonic()

    def report(done: int, steps: int) -> None:
        nonlocal last
        text = f"{name}: step {done} of {steps}"
        if _console.is_terminal:
            update(text)
        elif time.monotonic() - last > _SECONDS:
            last = time.monotonic()
            _console.print(text, highlight=False, soft_wrap=True)

    return report


def _short(value: float | None) -> str:
    return "" if value is None else f"{value + 0.0:.5g}"  # 0, not -0


def _escape(error: BaseException) -> str:
    return str(error).replace("[", r"\[")


def _show_warning(message, category, filename, lineno, file=None, line=None) -> None:
    print(f"warning: {message}", file=sys.stderr)


if __name__ == "__main__":
    main()
