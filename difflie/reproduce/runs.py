"""The parts of a long computation, and how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

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
