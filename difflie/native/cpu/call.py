"""How a loop becomes a call of machine code for CPUs."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..attempts import tried, warn_once, warn_slower
from ..fingerprint import fingerprint
from ..loop import Loop
from ..private import Context, Value
from ..program import TooLong
from ..rules import work
from ..turns import Traced
from . import ffi, object_code
from .block import text_of
from .module import joined


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
    name = _handler(loop, along if batch is not None else (), lanes, batch is not None)
    if name is None:
        return None
    blocks = 1 if batch is None else -(-batch // lanes)
    numbers = np.array([loop.length, batch or 1, blocks], np.int64)
    return ffi.called(context, name, numbers, args, list(context.avals_out))


def _lanes(loop: Loop) -> int:
    """Environments in one vector: as many numbers as the longest vector has.

    Where products of matrices prevail, which use vectors themselves, each goes by itself: lanes
    would have to be gathered entry by entry.
    """
    if isinstance(loop.turn, Traced):
        products, others = work(loop.turn.closed().jaxpr)
        if products > others:
            return 1
    kinds = {a.dtype for a in (*loop.turn.in_avals, *loop.turn.out_avals)}
    return 8 if np.dtype(np.float64) in kinds else 16


def _registered(loop: Loop, along: tuple[bool, ...], lanes: int, shared: bool) -> str:
    """The name of a new handler."""
    try:
        digest = fingerprint(loop, along, lanes, shared)
        write = functools.partial(_text, loop, along, lanes, shared)
        if digest is None:
            text = write()
            digest, write = hashlib.sha256(text.encode()).hexdigest(), lambda: text
        address = object_code.address_of(digest, "handler", write)
    except TooLong as problem:
        warn_once(f"a program has {problem} and is run in parts, which is slower")
        raise
    return ffi.target(f"difflie_{digest[:24]}", address)


_handler = tried(_registered, warn_slower)


def _text(loop: Loop, along: tuple[bool, ...], lanes: int, shared: bool) -> str:
    n_in = 1 + sum(a.size > 0 for a in loop.turn.in_avals)
    n_out = sum(a.size > 0 for a in loop.turn.out_avals)
    return joined(text_of(loop, along, lanes), ffi.handler("handler", n_in, n_out, shared))
