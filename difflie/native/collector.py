"""Python's garbage collector, off while programs are traced, written and compiled.

Tracing makes very many objects that live on, among which a collection of all generations finds
nothing and takes a tenth of a second. It is on while programs run. For how long none has been made
is known here, too.
"""

from __future__ import annotations

import contextlib
import gc
import threading
import time
from collections.abc import Iterator

_lock = threading.Lock()
# How many places want it off now, in all threads, and whether it was switched off for them.
_wanted, _switched_off = 0, False
# When the last place did not want it any more.
_end = 0.0


def idle_for() -> float:
    """For how many seconds no program has been made."""
    return 0.0 if _wanted else time.monotonic() - _end


@contextlib.contextmanager
def collector_off() -> Iterator[None]:
    """Within it the collector is off. Then it is on again, if it was on at the outermost one."""
    global _wanted, _switched_off, _end
    with _lock:
        if not _wanted and gc.isenabled():
            gc.disable()
            _switched_off = True
        _wanted += 1
    try:
        yield
    finally:
        with _lock:
            _wanted -= 1
            _end = time.monotonic()
            if not _wanted and _switched_off:
                _switched_off = False
                gc.enable()
