"""How many rows of a sweep are computed at once, and what it will take, from measured rows."""

from __future__ import annotations

import time
from dataclasses import dataclass

import jax
import numpy as np
from numpy.typing import NDArray

from ..io.results import Results
from .design import Design
from .variants import Function, Variants

# A chunk takes about so many seconds, and at most so many bytes.
SECONDS = 1.0
BYTES = 2**28
# A chunk has a multiple of these rows, as vector lanes and threads do.
_LEAST = 64


def chunk_size(variants: Variants, design: Design) -> int:
    """The number of rows of a chunk: a power of two times 64, at most what the design has.

    More and more rows are computed, until their time is measured well enough.
    """
    devices, rows = len(jax.local_devices()), _LEAST
    most = max(_LEAST, -(-design.size // (_LEAST * devices)) * _LEAST * devices)
    rows *= devices
    planned = variants.memory(rows) / rows
    while True:
        given = first_rows(design, rows)
        variants.arrays(given)
        begin = time.perf_counter()
        arrays, _ = variants.arrays(given)
        passed = time.perf_counter() - begin
        # Twice the columns: one chunk is written while the next is computed.
        each = planned + 2 * sum(x.nbytes for x in arrays.values()) / rows
        room = BYTES / max(each, 1)
        if passed > SECONDS / 32 or rows >= min(most, room):
            break
        rows *= 8
    wanted = min(most, room, rows * SECONDS / max(passed, 1e-9))
    size = _LEAST * devices
    while 2 * size <= wanted:
        size *= 2
    return size


def first_rows(design: Design, count: int) -> NDArray:
    """The first rows (count, n), repeated where there are fewer."""
    there = design.rows(0, min(count, design.size))
    return np.resize(there, (count, there.shape[1]))


@dataclass(frozen=True, kw_only=True)
class Estimate(Results):
    """rows in all and of a chunk, bytes of the table before compression, and seconds.

    first: until the first rows are there, with what is compiled.
    """

    rows: int
    chunk: int
    table: int
    memory: int
    first: float
    seconds: float

    def __str__(self) -> str:
        rate = self.rows / self.seconds if self.seconds > 0 else np.inf
        return (
            f"{self.rows} rows in chunks of {self.chunk}; a table of {self.table / 1e6:.4g} MB, "
            f"{self.memory / 1e6:.4g} MB of it in memory at once; about {self.seconds:.3g} s "
            f"({rate:.4g} rows a second), and {self.first:.3g} s before the first"
        )


def estimate(function: Function, design: Design, *, gradient: bool = False) -> Estimate:
    """An estimate for `sweep` with these arguments, on this machine."""
    variants, begin = Variants(function, design.names, gradient), time.perf_counter()
    chunk = chunk_size(variants, design)
    first = time.perf_counter() - begin
    rows = first_rows(design, chunk)
    variants.arrays(rows)
    begin = time.perf_counter()
    arrays, _ = variants.arrays(rows)
    each = (time.perf_counter() - begin) / chunk
    width = sum(x.nbytes for x in arrays.values()) / chunk + 8 * len(design.names) + 1
    size = design.size
    return Estimate(
        rows=size,
        chunk=chunk,
        table=int(size * width),
        memory=int(2 * chunk * width),
        first=first,
        seconds=size * each,
    )
