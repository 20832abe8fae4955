"""Results to be recomputed, published ones beside the printed numbers: one module each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from . import goetz, long_run, mechanisms, mueller, park_chung


class Reproduction(NamedTuple):
    """A published result.

    compute(out, progress) gives the numbers as a dictionary that JSON can hold and, where the
    folder `out` is not None, writes the figures there; progress(stage, done, total) is called as
    the work goes on. show(numbers, console) prints them.
    """

    compute: Callable[..., dict[str, Any]]
    show: Callable[..., None]


REPRODUCTIONS = {
    "goetz": Reproduction(goetz.reproduce, goetz.show),
    "long-run": Reproduction(long_run.reproduce, long_run.show),
    "mueller": Reproduction(mueller.reproduce, mueller.show),
    "mechanisms": Reproduction(mechanisms.reproduce, mechanisms.show),
    "park-chung": Reproduction(park_chung.reproduce, park_chung.show),
}
