"""What papers share: the parts of long computations, printed numbers, and agreements with them."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ..io.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Progress = Callable[[str, int, int], None]
"""Called with a stage, how many of its parts are done, and how many there are."""

Computed = tuple[Results, Callable[[], dict[str, "Figure"]]]
"""The results of a paper, and what draws its matplotlib figures by name."""

Part = TypeVar("Part")
Result = TypeVar("Result")


def each(
    progress: Progress,
    stage: str,
    compute: Callable[[Part], Result],
    parts: Iterable[Part],
    workers: int = 2,
) -> list[Result]:
    """compute(part) of all parts, in their order, each reported under the name of the stage.

    Two at a time, as most of the work is compilation, which leaves Python free for another part;
    workers=1 for what is timed.
    """
    parts = list(parts)
    results: list[Result] = []
    progress(stage, 0, len(parts))
    with ThreadPoolExecutor(workers) as pool:
        for result in pool.map(compute, parts):
            results.append(result)
            progress(stage, len(results), len(parts))
    return results


class Agreement(NamedTuple):
    """How many numbers were compared with published ones, and how many of them agree.

    what: the numbers, such as "Tables VI to VIII". rule: when two agree, such as "in all digits".
    """

    what: str
    agree: int
    compared: int
    rule: str


def printed(file: str) -> dict[str, Any]:
    """The numbers that a paper prints: `printed.toml` beside its code, as printed(__file__)."""
    return tomllib.loads(Path(file).with_name("printed.toml").read_text(encoding="utf-8"))


def number(value: float | None, form: str = ".1e") -> str:
    """A number in a format of Python's; a dash for None."""
    return "-" if value is None else format(value, form)


def cells(row: Results, formats: Mapping[str, str]) -> list[str]:
    """The fields of a row by name, in these formats: words as they are, a dash for None."""
    values = [getattr(row, name) for name in formats]
    forms = formats.values()
    return [v if isinstance(v, str) else number(v, f) for v, f in zip(values, forms, strict=True)]
