"""How many rows of a sweep are computed at once, from measured memory and time."""

from __future__ import annotations

import time

import jax
import numpy as np
from numpy.typing import NDArray

from .design import Design
from .variants import Variants

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
