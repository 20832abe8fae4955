"""Work for which nobody waits: done by a thread, once no program has been made for a moment.

The thread ends with the last job, and with the main thread: what has not begun by then is left.
llvmlite lets one thread at a time into LLVM, so that a job would hold up programs that are made.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable

from ..collector import idle_for

# In seconds: the moment, and after how long to look again.
_MOMENT, _NAP = 0.3, 0.02

_lock, _at_work = threading.Lock(), threading.Lock()
_jobs: deque[Callable[[], None]] = deque()
_thread: threading.Thread | None = None

if hasattr(os, "register_at_fork"):
    # A child that is forked amid a job would wait for the locks of a thread that it has not.
    os.register_at_fork(
        before=_at_work.acquire, after_in_parent=_at_work.release, after_in_child=_at_work.release
    )


def later(job: Callable[[], None]) -> None:
    """Does this in the background."""
    global _thread
    with _lock:
        _jobs.append(job)
        if _thread is None or not _thread.is_alive():
            _thread = threading.Thread(target=_work, name="difflie compiler")
            _thread.start()


def _work() -> None:
    global _thread
    main = threading.main_thread()
    while main.is_alive():
        if idle_for() < _MOMENT:
            time.sleep(_NAP)
            continue
        with _lock:
            if not _jobs:
                _thread = None
                return
            job = _jobs.popleft()
        with _at_work:
            job()
