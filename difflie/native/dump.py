"""What loops are compiled from, written to files: DIFFLIE_NATIVE=dump in the environment.

For each loop a folder gets the program, its text in LLVM and its kernel in CUDA; it is named in
DIFFLIE_DUMP, or is `difflie-dump` in the working folder. `docs/compiler.md` tells how to read them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .attempts import warn_once
from .cpu import vectorized_loop
from .gpu import cuda
from .loop import Loop
from .program import Unsupported, fused
from .program.listing import listing


def wanted() -> bool:
    """Whether files are to be written."""
    return os.environ.get("DIFFLIE_NATIVE") == "dump"


def folder() -> Path:
    """Where the files are."""
    return Path(os.environ.get("DIFFLIE_DUMP") or "difflie-dump")


def write(loop: Loop, batch: int | None, batched_args: Sequence[bool]) -> None:
    """Writes the files of a loop; the same loop has the same names in every process.

    A loop without a program has no files. It is said once where the folder cannot be written to.
    """
    batched_args = batched_args if batch is not None else ()
    try:
        text = program_text(loop, batched_args)
    except Unsupported:
        return
    lanes = 1 if batch is None else vectorized_loop.lanes_of(loop)
    texts = {
        "program.txt": text,
        "ll": _said(";", lambda: vectorized_loop.text_of(loop, batched_args, lanes)),
        "cu": _said("//", lambda: cuda.source(loop, batched_args)),
    }
    kind = "one" if batch is None else "batch"
    digest = hashlib.sha256("".join(texts.values()).encode()).hexdigest()[:12]
    try:
        folder().mkdir(parents=True, exist_ok=True)
        for ending, content in texts.items():
            (folder() / f"{kind}-{digest}.{ending}").write_text(content)
    except OSError as problem:
        warn_once(f"DIFFLIE_NATIVE=dump cannot write to {folder()}: {problem.strerror}")


def _said(comment: str, text: Callable[[], str]) -> str:
    """A text, or a comment that says why there is none."""
    try:
        return text()
    except Unsupported as problem:
        return f"{comment} {problem}\n"


def program_text(loop: Loop, batched_args: Sequence[bool]) -> str:
    """The program of the body of a loop, without products of matrices, and what it works on."""
    program = fused(loop.program(), loop.fixed)
    avals, outs = loop.body.in_avals, loop.body.out_avals
    ways = ["constant", "carried", "row"]
    ins = [(way, a) for way, some in zip(ways, loop.parts(avals), strict=True) for a in some]
    ends = [("carried" if i < loop.carry else "saved", a) for i, a in enumerate(outs)]
    head = [f"# {loop.length} iterations{', backwards' if loop.reverse else ''}"]
    names: list[str] = []
    for i, (way, a) in enumerate(ins):
        which = _counted(ins[:i], way)
        names += _entries(which, a)
        varies = " of each environment" if batched_args and batched_args[i] else ""
        head.append(f"# {which}: {a.dtype.name} {a.shape}{varies}")
    results = []
    for i, (way, a) in enumerate(ends):
        which = _counted(ends[:i], way)
        results += _entries(which, a)
        head += [f"# {which}: {a.dtype.name} {a.shape}"] if way == "saved" else []
    return "\n".join([*head, "", *listing(program, names, results), ""])


def _counted(before: Sequence[tuple[str, Any]], way: str) -> str:
    return f"{way}{sum(other == way for other, _ in before)}"


def _entries(name: str, a: Any) -> list[str]:
    """The names of the entries of an array."""
    return [f"{name}[{','.join(map(str, i))}]" if i else name for i in np.ndindex(a.shape)]
