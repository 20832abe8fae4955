"""Work that Ctrl-C does not break: files that are being written, and fits that end with a result.

In a command the handler of Ctrl-C is `interrupt`; in other programs Python's own one stays, and
nothing here changes anything.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

# How many blocks each thread is in. No lock: a thread changes its own entry only, and the handler
# of a signal may run between any two lines of the main thread.
_depths: dict[int, int] = {}
_unhurried: list[bool] = []
_waiting: list[bool] = []


@contextlib.contextmanager
def unbroken() -> Iterator[None]:
    """A block, such as one that writes a file, that ends before an interruption takes effect."""
    own = threading.get_ident()
    _depths[own] = _depths.get(own, 0) + 1
    try:
        yield
    finally:
        _depths[own] -= 1
        if not _depths[own]:
            del _depths[own]
            if _waiting and own == threading.main_thread().ident:
                _waiting.clear()
                raise KeyboardInterrupt


@contextlib.contextmanager
def unhurried() -> Iterator[None]:
    """A block that catches KeyboardInterrupt and goes on with what it has, in its own time."""
    _unhurried.append(True)
    try:
        yield
    finally:
        _unhurried.pop()


def interrupt() -> None:
    """Raises KeyboardInterrupt in the main thread, at the end of the block where it is in one."""
    if threading.get_ident() in _depths:
        _waiting.append(True)
    else:
        raise KeyboardInterrupt


def is_writing() -> bool:
    """Whether any thread is in a block that is not to be broken."""
    return bool(_depths)


def is_unhurried() -> bool:
    """Whether an interruption will be answered by a result."""
    return bool(_unhurried)
