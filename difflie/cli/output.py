"""The output of commands: printed lines and files."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from ..io.files import check_writable
from ..io.results import Results, save_json

console = Console()
# Seconds between two lines of progress if the output is no terminal.
_SECONDS = 3.0


def say(message: str) -> None:
    """Prints a sentence unchanged: without coloured numbers or line breaks."""
    console.print(message, highlight=False, soft_wrap=True)


def check_outputs(out: Path | None, json: Path | None, *names: str) -> None:
    """Raises `OutputError` for files that could not be written, before anything is computed.

    names: of the files in the folder `out`.
    """
    for path in [json, *(out / name for name in names if out is not None)]:
        if path is not None:
            check_writable(path)


def configuration(path: Path) -> dict[str, object]:
    """What a report says of a configuration: its path and its text."""
    return {"configuration": path, "its_text": path.read_text(encoding="utf-8")}


def write_results(path: Path | None, results: Results | dict[str, Any]) -> None:
    """Writes the results of a command where `--json` asks for them."""
    if path is not None:
        save_json(path, results)
        say(f"results: {path}")


@contextmanager
def progress_bars() -> Iterator[Callable[[str, int, int], None]]:
    """A bar for each stage, updated by calls with (stage, done, total)."""
    columns = (TextColumn("{task.description:<14}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bar:
        tasks: dict[str, Any] = {}

        def update(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bar.add_task(stage, total=total)
            bar.update(tasks[stage], completed=done, total=total)

        yield update


def step_counter(
    name: str, update: Callable[[str], None], unit: str = "step"
) -> Callable[[int, int], None]:
    """A function that reports the steps done; every few seconds if the output is no terminal."""
    last = time.monotonic()

    def report(done: int, steps: int) -> None:
        nonlocal last
        text = f"{name}: {unit} {done} of {steps}"
        if console.is_terminal:
            update(text)
        elif time.monotonic() - last > _SECONDS:
            last = time.monotonic()
            say(text)

    return report
