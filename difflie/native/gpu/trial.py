"""Whether a kernel agrees with the ordinary way, for a few turns."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from ..loop import Loop
from .cuda import THREADS

# Environments and turns that are compared, and the pace of rows that are rare. The environments are
# two blocks of threads, the second one not full.
_BATCH, _TURNS, _PACE = THREADS + 2, 4, 2


def trial(loop: Loop, along: Sequence[bool]) -> tuple[Loop, int | None, list[np.ndarray]]:
    """A loop of a few turns of the same kernel, a batch if there is one, and arguments to try.

    The arguments of every other environment, and of all, are positive, so that most functions have
    a value there; those of the rest have both signs.
    """
    rows, saved = (tuple(min(e, _PACE) for e in x) for x in (loop.rows, loop.saved))
    length = min(loop.length, _TURNS) if max((*rows, *saved), default=1) == 1 else _TURNS
    small = dataclasses.replace(loop, rows=rows, saved=saved, length=length)
    batch = _BATCH if along else None
    random = np.random.default_rng(0)
    given = []
    pairs = zip(small.in_shapes, loop.turn.in_avals, strict=True)
    for (shape, aval), wide in zip(pairs, along or [False] * len(loop.turn.in_avals), strict=True):
        shape = (_BATCH, *shape) if wide else shape
        if np.issubdtype(aval.dtype, np.floating):
            x = random.uniform(0.2, 0.9, shape)
            if wide:
                x[1::2] *= random.choice((-1, 1), x[1::2].shape)
        else:
            x = random.integers(0, 2, shape)
        given.append(np.asarray(x).astype(aval.dtype))
    return small, batch, given


def disagreement(
    native: Callable[..., Any],
    loop: Loop,
    batch: int | None,
    along: Sequence[bool],
    given: Sequence[np.ndarray],
) -> str | None:
    """How the results differ from those of the ordinary way by more than rounding; None if not.

    How much rounding matters is seen from arguments that differ by it. Where these have no result,
    nothing is asked of the other.
    """
    run = jax.jit(loop.applied(batch, along))
    floats = [x.dtype for x in given if np.issubdtype(x.dtype, np.floating)]
    step = max((float(np.finfo(t).eps) for t in floats), default=0.0)
    signs = np.random.default_rng(1)
    near = [
        (x * (1 + 4 * step * signs.choice((-1, 1), x.shape))).astype(x.dtype)
        if np.issubdtype(x.dtype, np.floating)
        else x
        for x in given
    ]
    calls = (run, given), (run, near), (native, given)
    wanted, other, found = (list(map(np.asarray, f(*xs))) for f, xs in calls)
    compared = total = 0
    with np.errstate(all="ignore"):
        for y, x, z in zip(found, wanted, other, strict=True):
            y, is_float = y.reshape(x.shape), np.issubdtype(x.dtype, np.floating)
            kept = np.isfinite(x) & np.isfinite(z)
            compared, total = compared + int(kept.sum()), total + x.size
            if not kept.any():
                continue
            y, x, z = (a[kept].astype(np.float64) for a in (y, x, z))
            allowed = 1e4 * step * float(np.max(np.abs(x))) if is_float else 0.0
            allowed += 1e3 * float(np.max(np.abs(x - z)))
            worst = float(np.max(np.abs(y - x)))
            if not worst <= allowed:
                return f"results differ by {worst:.1e}, by rounding no more than {allowed:.1e}"
    return None if 3 * compared >= total else "there is too little to compare"
