"""What a sweep will take, from a few rows that are measured."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from ..io.results import Results
from .chunks import chunk_size, first_rows
from .design import Design
from .variants import Function, Variants


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
