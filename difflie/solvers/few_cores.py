"""Threads of linear algebra where there are few cores."""

from __future__ import annotations

import importlib.metadata
import os

# With so few cores batched linear algebra may deadlock.
_FEW = 4


def avoid_a_deadlock() -> None:
    """Limits jaxlib up to 0.10 to one core where there are few; before its first operation.

    Its batched linear algebra waits, inside a thread of a pool with one thread per core, for other
    threads of this pool: as many simultaneous operations as threads wait for ever.
    """
    version = importlib.metadata.version("jaxlib")
    if _few() and version.startswith(("0.8.", "0.9.", "0.10.")):
        os.environ.setdefault("PJRT_NPROC", "1")  # read with the first operation


def avoid_waiting_threads() -> None:
    """Limits OpenBLAS to one thread where there are few cores; before NumPy is imported.

    Matrices of the identification are small, and threads keep their cores busy while they wait for
    each other: on two cores an arm took twice the processor time.
    """
    if _few():
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _few() -> bool:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (cores or 1) <= _FEW
