"""Native calls: a function on small arrays, or a loop of one, compiled into machine code.

On the CPU the whole loop, with what it saves, is one call. A batch runs in the lanes of vector
instructions and on all threads. Derivatives are native calls as well.

The outermost call is the one that is compiled. Those inside of it are marks, see `deferred_calls`:
they cost nothing there, and become calls of their own where the outermost one has no program.

A loop with products of large matrices stays one of XLA, and its body is split (`partition`).

What has no program, other devices, and versions of jaxlib on which this has not been tested run the
ordinary way, with the same results up to rounding. `DIFFLIE_NATIVE=0` in the environment switches
all native calls off.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .attempts import available
from .closures import Unknown
from .collector import collector_off
from .contents import described
from .deferred_calls import marked
from .jaxprs import contains, has_keys, with_traced_constants
from .loop import LONGEST_INSIDE, Loop
from .loop_body import Traced
from .partition import partition
from .primitive import bind, call_once
from .private import like_any, untracked, varying_axes, within

# A function is kept as so many marks.
_MARKS = 32


def kernel(f: Callable[..., Any], once: bool = False) -> Callable[..., Any]:
    """f, compiled as one block of machine code where possible.

    Arguments are pytrees; their leaves that are no arrays of jax are known at trace time.
    once: inside of other kernels f is traced once for arguments of the same kind. It then closes
    over nothing that is traced.
    """
    marks: dict[Any, Callable[..., Any]] = {}

    @functools.wraps(f)
    def run(*args: Any) -> Any:
        if not available():
            return f(*args)
        leaves, inputs = jax.tree.flatten(args)
        arrays = [x for x in leaves if isinstance(x, jax.Array)]
        known = [None if isinstance(x, jax.Array) else x for x in leaves]

        def on_arrays(*arrays: jax.Array) -> Any:
            given = iter(arrays)
            return f(*jax.tree.unflatten(inputs, [next(given) if x is None else x for x in known]))

        if within.value:
            mark = _kept(marks, inputs, known, on_arrays) if once else marked(on_arrays)
            return mark(*arrays)
        with collector_off(), untracked(), within(True):
            closed, shapes = jax.make_jaxpr(on_arrays, return_shape=True)(*map(_alone, arrays))
        if _only_ordinary(closed):
            return f(*args)
        split = partition(closed, False, call_once)
        results = call_once(closed, arrays) if split is None else split(*arrays)
        return jax.tree.unflatten(jax.tree.structure(shapes), results)

    return run


def _kept(marks: dict[Any, Callable], inputs: Any, known: Any, f: Callable) -> Callable:
    """f as a mark, the one that there is for such arguments; of many the oldest is forgotten."""
    try:
        key = inputs, described(known)
    except Unknown:
        return marked(f)
    mark = marks.pop(key, None) or marked(f)
    if len(marks) >= _MARKS:
        del marks[next(iter(marks))]
    marks[key] = mark
    return mark


def scan(
    f: Callable[..., Any],
    start: Any,
    rows: Any,
    length: int,
    reverse: bool = False,
    every: int = 1,
    forward_only: bool = False,
) -> tuple[Any, Any]:
    """`jax.lax.scan(f, start, rows, length, reverse)`, compiled as one native loop where possible.

    Of what f returns besides the state, every n-th is saved, the last one of each group of
    iterations. Arguments are pytrees of arrays; what f closes over may be traced. A derivative
    saves the states at the start of all iterations, or with `forward_only` none, and has no reverse
    mode then.
    """
    start, rows = jax.tree.map(jnp.asarray, (start, rows))
    begin, carried = jax.tree.flatten(start)
    row_leaves, row_tree = jax.tree.flatten(rows)
    row = [jax.ShapeDtypeStruct(x.shape[1:], x.dtype) for x in row_leaves]
    shapes = None

    def body(state: Any, row: Any) -> tuple[Any, Any]:
        nonlocal shapes
        state, out = f(jax.tree.unflatten(carried, state), jax.tree.unflatten(row_tree, row))
        state = [_as(x, b.dtype) for x, b in zip(jax.tree.leaves(state), begin, strict=True)]
        out, shapes = jax.tree.flatten(out)
        return state, out

    if within.value and length <= LONGEST_INSIDE:
        end, outs = _ordinary_scan(body, begin, row_leaves, length, reverse, every)
        return jax.tree.unflatten(carried, end), jax.tree.unflatten(shapes, outs)
    with collector_off(), untracked(), within(True):
        closed = jax.make_jaxpr(body)([*map(_alone, begin)], row)
    if _only_ordinary(closed) or not available():
        f, start = _varying_state(f, start, [*begin, *row_leaves, *closed.consts])
        return _ordinary_scan(f, start, rows, length, reverse, every)
    split = partition(closed, True, call_once)
    if split is None:
        closed, constants = with_traced_constants(closed)
        saved = (every,) * (len(closed.out_avals) - len(begin))
        sizes = len(constants), len(begin)
        ones = (1,) * len(row_leaves)
        loop = Loop(
            *(Traced(closed), *sizes, ones, saved, length, reverse, forward_only), call=call_once
        )
        results = bind(loop, [*constants, *begin, *row_leaves])
        end, outs = results[: len(begin)], results[len(begin) :]
    else:

        def partitioned(state: Any, row: Any) -> tuple[Any, Any]:
            results = split(*state, *row)
            return results[: len(begin)], results[len(begin) :]

        # As of a native loop, the states are saved, and what an iteration needs is computed again.
        f = partitioned if forward_only else jax.checkpoint(partitioned, prevent_cse=False)
        end, outs = _ordinary_scan(f, begin, row_leaves, length, reverse, every)
    return jax.tree.unflatten(carried, end), jax.tree.unflatten(shapes, outs)


def _alone(x: Any) -> Any:
    """An array as one device has it; what it varies along is no part of a traced function."""
    return jax.ShapeDtypeStruct(x.shape, x.dtype) if varying_axes(x) else x


def _as(x: Any, dtype: Any) -> Any:
    """What an iteration carries on, in the type that it was given in.

    Raises TypeError where this would leave only the whole or the real parts of numbers.
    """
    x = jnp.asarray(x)
    if x.dtype == dtype:
        return x
    if not np.can_cast(x.dtype, dtype, "same_kind"):
        raise TypeError(f"a loop carries {dtype} and its body returns {x.dtype}; begin with that")
    return x.astype(dtype)


def _varying_state(f: Callable, start: Any, read: Sequence[Any]) -> tuple[Callable, Any]:
    """A body and its first state, which varies from device to device if anything does."""
    read = [x for x in read if isinstance(x, jax.Array) and varying_axes(x)]
    if not read:
        return f, start

    def alike(state: Any) -> Any:
        leaves, structure = jax.tree.flatten(state)
        return jax.tree.unflatten(structure, like_any(list(map(jnp.asarray, leaves)), read))

    def body(state: Any, row: Any) -> tuple[Any, Any]:
        state, out = f(state, row)
        return alike(state), out

    return body, alike(start)


def _only_ordinary(closed: Any) -> bool:
    """Whether a function is no native call.

    It prints or the like, has a derivative of its own that goes backwards only, or typed keys.
    """
    jaxpr = closed.jaxpr
    return bool(closed.effects) or contains(jaxpr, "custom_vjp_call") or has_keys(jaxpr)


def _ordinary_scan(f, start, rows, length, reverse, every) -> tuple[Any, Any]:
    if every == 1:
        return jax.lax.scan(f, start, rows, length, reverse)

    def group(state: Any, rows: Any) -> tuple[Any, Any]:
        state, out = jax.lax.scan(f, state, rows, every, reverse)
        return state, jax.tree.map(lambda y: y[-1], out)

    groups = length // every
    rows = jax.tree.map(lambda x: x.reshape((groups, every, *x.shape[1:])), rows)
    return jax.lax.scan(group, start, rows, groups, reverse)
