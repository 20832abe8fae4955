"""Ctrl-C: a command says at once that it stops, and does, also while code is being compiled.

Python runs the handler of a signal between two of its own instructions, so that a long call into a
compiler delays it by as much. Here the system writes a byte as the signal comes, and a thread reads
it: it says that the command stops and, if that has not ended by itself soon after, ends the process
when the files that are being written are whole.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from types import FrameType, TracebackType
from typing import Any, Self

# Looked up where it is loaded already: the help of the commands imports nothing that is slow, and
# before there is nothing to finish.
_UNBROKEN = "difflie.io.interrupt_guard"
STATUS = 130
_PATIENCE = 3.0  # seconds for the command to end by itself
_TICK = 0.02


class Interrupts:
    """While it is open, Ctrl-C ends the command. Does nothing outside of the main thread."""

    def __enter__(self) -> Self:
        self._open = threading.current_thread() is threading.main_thread()
        self._came = threading.Event()
        self._ended = threading.Event()
        # The handler may interrupt itself.
        self._answering, self._answered, self._handled = threading.RLock(), 0, 0
        if self._open:
            self._inbox, self._outbox = socket.socketpair()
            self._outbox.setblocking(False)
            self._before: Any = signal.signal(signal.SIGINT, self._handle)
            self._descriptor = signal.set_wakeup_fd(
                self._outbox.fileno(), warn_on_full_buffer=False
            )
            threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Ctrl-C ends in KeyboardInterrupt, or in an error of a library that was called. Threads
        # that still compile are not waited for.
        if self._came.is_set() and isinstance(error, KeyboardInterrupt | RuntimeError):
            _stopped()
        self._ended.set()
        if self._open:
            signal.set_wakeup_fd(self._descriptor)
            signal.signal(signal.SIGINT, self._before)
            self._outbox.close()  # ends the thread

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._handled += 1
        self._stop(self._handled)
        work = sys.modules.get(_UNBROKEN)
        if work is None:
            raise KeyboardInterrupt
        work.interrupt()

    def _watch(self) -> None:
        seen = 0
        with self._inbox:
            while signals := self._inbox.recv(64):
                for _ in range(signals.count(signal.SIGINT)):
                    seen += 1
                    self._stop(seen)

    def _stop(self, count: int) -> None:
        """Answers the signal of this number, which both the thread and the handler see."""
        with self._answering:
            if count <= self._answered:
                return
            self._answered = count
            self._came.set()
        if count == 1 and _asked("is_unhurried"):
            _say("stopping with the best so far; once more stops at once")
            return
        _say("stopping")
        threading.Thread(target=self._end, args=(count > 1,), daemon=True).start()

    def _end(self, again: bool) -> None:
        if not self._ended.wait(_PATIENCE):
            _stopped(again)


def _asked(question: str) -> bool:
    work = sys.modules.get(_UNBROKEN)
    return work is not None and getattr(work, question)()


def _say(word: str) -> None:
    print(word, file=sys.stderr, flush=True)


def _stopped(at_once: bool = False) -> None:
    """Ends the process when no file is being written, or, asked for again, at once."""
    while not at_once and _asked("is_writing"):
        time.sleep(_TICK)
    _say("stopped")
    for stream in (sys.stdout, sys.stderr):
        if stream.isatty():
            stream.write("\x1b[?25h")  # the cursor, which progress hides
        stream.flush()
    os._exit(STATUS)
