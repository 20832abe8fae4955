"""Whether native code is to be used, what is tried once for each loop, and what users are told."""

from __future__ import annotations

import functools
import os
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import jax

from .cpu import ffi
from .private import untested
from .program import Unsupported

# The size of a frame, in words. CPython takes memory for frames in pieces of 16 KiB, and anew with
# every call across the end of one: a program took twice as long to write at some depths. The piece
# for a frame this large has as much room again for those that it calls.
_ROOM = 16_000


class Unavailable(Exception):
    """Why there is no machine code, in one sentence."""


def available() -> bool:
    """Whether programs are compiled natively, unless switched off or untested."""
    without_jit = jax.config.jax_disable_jit  # pyright: ignore
    wanted = os.environ.get("DIFFLIE_NATIVE", "1") != "0" and not without_jit
    return wanted and _tested()


@functools.cache
def _tested() -> bool:
    """Whether native code has been tested with this jax; warns once where it has not."""
    problem = untested() or ffi.tested()
    if problem:
        warn_slower(problem)
    return problem is None


@functools.cache
def warn_once(message: str) -> None:
    """Warns, the first time that there is this to say."""
    warnings.warn(message, stacklevel=2)


def warn_slower(problem: str, cost: str = "may take many times as long") -> None:
    """Warns of a problem, and of what the ordinary way costs."""
    warn_once(f"{problem}; without native code a motion {cost}")


def reason(problem: Exception) -> str:
    """What to say of a failure."""
    if isinstance(problem, Unavailable):
        return str(problem)
    return f"a program could not be compiled ({type(problem).__name__}: {problem})"[:300]


def with_fallback(
    make: Callable[..., str], warn: Callable[[str], None]
) -> Callable[..., str | None]:
    """make(loop, *options), the name of a handler, once for each; None where there is none.

    Without a program the loop runs the ordinary way, which DIFFLIE_NATIVE=explain gives reasons
    for. Whatever else fails costs time, but stops nobody.
    """
    handlers: weakref.WeakKeyDictionary[Any, dict] = weakref.WeakKeyDictionary()

    def handler(loop: Any, *options: Any) -> str | None:
        known = handlers.setdefault(loop, {})
        if options not in known:
            name = None
            try:
                name = make(loop, *options)
            except Unsupported as problem:
                if os.environ.get("DIFFLIE_NATIVE") == "explain":
                    print(f"native: {problem}")
            except Exception as problem:
                warn(reason(problem))
            known[options] = name
        return known[options]

    handler.__code__ = handler.__code__.replace(co_stacksize=_ROOM)
    return handler
