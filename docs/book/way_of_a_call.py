"""The way of one call from `simulate` to machine code, seen by Python's profiler.

Run as a program, it prints by which function each file is entered first, indented by the files that
have called it. The build of the book does so and shows the result.
"""

from __future__ import annotations

import functools
import importlib
import os
import pkgutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import difflie as dl

PACKAGE = Path(dl.__file__).parent
MARK = "<!-- call -->"
SHOWN = "simulate formulations integrators dynamics native".split()


def text() -> str:
    """The way, as a block of text; from a process of its own, which finds nothing in caches."""
    environment = os.environ | {"DIFFLIE_CACHE": "0", "DIFFLIE_STORED": "0"}
    run = [sys.executable, __file__]
    done = subprocess.run(run, env=environment, capture_output=True, text=True, check=True)
    return f"```text\n{done.stdout.rstrip()}\n```"


def entered(call: Callable[[], Any]) -> Iterator[tuple[int, str, str]]:
    """Of each file, when it is first entered: the number of files around it, it, the function."""
    seen: dict[str, tuple[int, str, str]] = {}

    def enter(frame: FrameType, event: str, _: Any) -> None:
        if event != "call":
            return
        file = _file(frame.f_code.co_filename)
        if file and file not in seen:
            name = frame.f_code.co_name
            if name.startswith("<"):
                return
            around, outer = set(), frame.f_back
            while outer is not None:
                around.add(_file(outer.f_code.co_filename))
                outer = outer.f_back
            seen[file] = len(around - {None, file}), file, name

    sys.setprofile(enter)
    try:
        call()
    finally:
        sys.setprofile(None)
    yield from seen.values()


@functools.cache
def _file(source: str) -> str | None:
    """A file of the package by its path in there, if it is one of those that are shown."""
    path = Path(source)
    if not path.is_relative_to(PACKAGE):
        return None
    inside = path.relative_to(PACKAGE)
    return inside.as_posix() if inside.parts[0] in SHOWN else None


def main() -> None:
    # What is imported when it is needed first is no part of the way.
    for package in SHOWN:
        for module in pkgutil.walk_packages([str(PACKAGE / package)], f"difflie.{package}."):
            importlib.import_module(module.name)
    hinge = dl.Revolute(axis=(0.0, 1.0, 0.0))
    rod = dl.Body(name="rod", joint=hinge, mass=1.0, com=(0.0, 0.0, -0.5))
    system = dl.chain([rod])
    q = system.neutral()
    call = functools.partial(dl.simulate, system, q, [0.0], dt=0.01, steps=10, method="RKMK4")
    for depth, file, name in entered(call):
        print(f"{'  ' * depth}{file}  {name}")


if __name__ == "__main__":
    main()
