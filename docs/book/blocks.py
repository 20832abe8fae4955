"""The code of pages: every block of Python is run once, by itself, and what it shows is kept.

The build of the book and the tests of pages use it.
"""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import re
import sys
import traceback
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

BLOCK = re.compile(r"^```python\n(.*?)^```\n", re.DOTALL | re.MULTILINE)


class Outcome(NamedTuple):
    """What a block printed, the files that it wrote, and the error that ended it, if one did."""

    printed: str
    files: list[Path]
    error: str


def blocks(text: str) -> list[str]:
    """The blocks of Python of a page."""
    return BLOCK.findall(text)


def run(found: Sequence[str], folder: Path) -> list[Outcome]:
    """Runs blocks in two processes, since importing jax for each takes longer than most of them.

    Each has a folder of its own inside of `folder`, by its number.
    """
    # One core for each process; jaxlib up to 0.10 needs it, see difflie.cli.
    os.environ.setdefault("PJRT_NPROC", "1")
    # Each program runs once or twice: code that is compiled well would come too late.
    os.environ.setdefault("DIFFLIE_TIERED", "first")
    outcomes: dict[int, Outcome] = {}
    # What jax has traced in one precision may not do in the other: processes keep to one.
    for double in (True, False):
        chosen = [k for k, block in enumerate(found) if ("jax_enable_x64" in block) == double]
        with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
            done = pool.map(_run, [found[k] for k in chosen], [folder / str(k) for k in chosen])
            outcomes |= dict(zip(chosen, done, strict=True))
    return [outcomes[k] for k in range(len(found))]


def _run(block: str, folder: Path) -> Outcome:
    import warnings

    folder.mkdir(parents=True)
    os.chdir(folder)
    said, error = io.StringIO(), ""
    with contextlib.redirect_stdout(said), warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*without native code")
        try:
            exec(compile(block, "block", "exec"), {"__name__": "__main__"})
        except BaseException:
            error = traceback.format_exc()
    sys.stdout.flush()
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return Outcome(said.getvalue(), files, error)
