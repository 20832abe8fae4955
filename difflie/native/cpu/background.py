"""A thread that compiles while Python goes on.

Code that calls wait for comes first. Better code, for which nobody waits, comes once no program has
been made for a moment, and what has not begun when the main thread ends is left. The thread ends
with the last job. llvmlite lets one thread at a time into LLVM, so no other thread needs it then.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable

from ..collector import idle_for

# In seconds: the moment, and after how long to look again.
_MOMENT, _NAP = 0.3, 0.02

_Job = Callable[[], None]
_lock, _at_work, _new = threading.Lock(), threading.Lock(), threading.Event()
_first: deque[_Job] = deque()
_rest: deque[_Job] = deque()
_thread: threading.Thread | None = None


def soon(job: _Job) -> None:
    """Does this at once."""
    with _lock:
        _first.append(job)
        _start()


def later(job: _Job) -> None:
    """Does this when there is nothing else to do."""
    with _lock:
        _rest.append(job)
        _start()


def _start() -> None:
    global _thread
    _new.set()
    if _thread is None or not _thread.is_alive():
        _thread = threading.Thread(target=_work, name="difflie compiler")
        _thread.start()


def _work() -> None:
    while _waiting():
        with _at_work:
            job = _ready()
            if job is not None:
                job()
                continue
        _new.wait(_NAP)


def _waiting() -> bool:
    """Whether there is a job, now or later."""
    global _thread
    with _lock:
        _new.clear()
        if _first or (_rest and threading.main_thread().is_alive()):
            return True
        _thread = None
        return False


def _ready() -> _Job | None:
    with _lock:
        if _first:
            return _first.popleft()
        return _rest.popleft() if _rest and idle_for() >= _MOMENT else None


def _after_fork() -> None:
    """A child has the jobs, but not the thread, whose locks may be held for ever."""
    global _lock, _new
    _lock, _new = threading.Lock(), threading.Event()
    _at_work.release()
    if _first:
        _start()


if hasattr(os, "register_at_fork"):
    # A child that is forked amid a job would wait for the locks of a thread that it has not.
    os.register_at_fork(
        before=_at_work.acquire, after_in_parent=_at_work.release, after_in_child=_after_fork
    )
