"""Batches whose problems go through memory some at a time."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
import numpy as np

Result = TypeVar("Result")


def chunked_vmap(f: Callable[..., Result], *args: Any) -> Result:
    """f(*args), under jax.vmap for as many problems at once as there are processors.

    What is computed and used up within f stays in their caches; for a large batch it would not.
    Only on CPUs: other devices have all of a batch computed at once.
    """
    arrays, static = eqx.partition(args, eqx.is_array)

    def applied(arrays: Any) -> Result:
        return f(*eqx.combine(arrays, static))

    run = jax.custom_batching.custom_vmap(applied)

    @run.def_vmap
    def rule(size: int, batched: Any, arrays: Any) -> tuple[Any, Any]:
        (batched,) = batched
        each, shared = eqx.partition(arrays, batched)

        def one(each: Any) -> Result:
            return applied(eqx.combine(each, shared))

        def in_turn(each: Any) -> Any:
            count = min(size, _processors())
            turns = -(-size // count)
            # The last turn may have some problems for a second time.
            rows = np.minimum(np.arange(turns * count), size - 1).reshape(turns, count)
            some = jax.vmap(one)
            found = jax.lax.map(lambda row: some(jax.tree.map(lambda x: x[row], each)), rows)
            return jax.tree.map(lambda y: y.reshape(turns * count, *y.shape[2:])[:size], found)

        results = jax.lax.platform_dependent(each, cpu=in_turn, default=jax.vmap(one))
        return results, jax.tree.map(lambda _: True, results)

    return run(arrays)


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
