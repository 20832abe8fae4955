"""Where native code can be used, and how a loop becomes a call of it."""

from __future__ import annotations

import functools
import hashlib
import os
import warnings
import weakref
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from . import ffi, object_code
from .code import Loop
from .fingerprint import fingerprint
from .llvm import joined
from .loops import text_of
from .private import Context, Value, untested
from .program import TooLong, Unsupported


def available() -> bool:
    """Whether programs are compiled natively: on the CPU, unless switched off or untested."""
    without_jit = jax.config.jax_disable_jit  # pyright: ignore
    wanted = os.environ.get("DIFFLIE_NATIVE", "1") != "0" and not without_jit
    return wanted and _tested()


@functools.cache
def _tested() -> bool:
    """Whether native code has been tested with this jax; warns once where it has not."""
    problem = untested() or ffi.tested()
    if problem:
        _warn(problem)
    return problem is None


def _warn(problem: str) -> None:
    warnings.warn(
        f"{problem}; without native code a motion may take about 190 times as long", stacklevel=2
    )


def compiled(
    context: Context,
    args: Sequence[Value],
    loop: Loop,
    batch: int | None,
    along: tuple[bool, ...],
) -> list[Any] | None:
    """The results of a native call in a program that is being lowered; None if there is none."""
    if loop.length == 0 or batch == 0:
        return None
    lanes = 1 if batch is None else _lanes(loop)
    name = _target(loop, along if batch is not None else (), lanes, batch is not None)
    if name is None:
        return None
    blocks = 1 if batch is None else -(-batch // lanes)
    numbers = np.array([loop.length, batch or 1, blocks], np.int64)
    return ffi.called(context, name, numbers, args, list(context.avals_out))


def _lanes(loop: Loop) -> int:
    """Environments in one vector: as many numbers as the longest vector has."""
    kinds = {a.dtype for a in (*loop.turn.in_avals, *loop.turn.out_avals)}
    return 8 if np.dtype(np.float64) in kinds else 16


# The code of a loop that is lowered again.
_targets: weakref.WeakKeyDictionary[Loop, dict] = weakref.WeakKeyDictionary()


def _target(loop: Loop, along: tuple[bool, ...], lanes: int, shared: bool) -> str | None:
    known = _targets.setdefault(loop, {})
    key = along, lanes, shared
    if key not in known:
        known[key] = _registered(loop, along, lanes, shared)
    return known[key]


def _registered(loop: Loop, along: tuple[bool, ...], lanes: int, shared: bool) -> str | None:
    try:
        digest = fingerprint(loop, along, lanes, shared)
        write = functools.partial(_text, loop, along, lanes, shared)
        if digest is None:
            text = write()
            digest, write = hashlib.sha256(text.encode()).hexdigest(), lambda: text
        address = object_code.address_of(digest, "handler", write)
        return ffi.target(f"difflie_{digest[:24]}", address)
    except TooLong as problem:
        _tell_once(f"a program has {problem} and is run in parts, which is slower")
        return None
    except Unsupported as problem:
        if os.environ.get("DIFFLIE_NATIVE") == "explain":
            print(f"native: {problem}")
        return None
    except object_code.Unavailable as problem:
        _warn_once(str(problem))
        return None
    except Exception as problem:
        # Whatever the compiler does not foresee costs time, but stops nobody.
        _warn_once(f"a program could not be compiled ({type(problem).__name__}: {problem})")
        return None


def _text(loop: Loop, along: tuple[bool, ...], lanes: int, shared: bool) -> str:
    n_in = 1 + sum(a.size > 0 for a in loop.turn.in_avals)
    n_out = sum(a.size > 0 for a in loop.turn.out_avals)
    return joined(text_of(loop, along, lanes), ffi.handler("handler", n_in, n_out, shared))


@functools.cache
def _warn_once(problem: str) -> None:
    _warn(problem)


@functools.cache
def _tell_once(message: str) -> None:
    warnings.warn(message, stacklevel=2)
