"""Slices, gathers and scatters at static or dynamic indices.

Dynamic indices are known at run time only.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..private import ClosedJaxpr
from ..program import NUMPY, Program, Unsupported
from .arithmetic import at_most
from .parameters import SCATTERED
from .writing import PLAIN, RULES, Array, array_of, elementwise, kind_of_result, write_closed

# Indices that may have more values take too many comparisons.
MOST_INDICES = 256


def _check_dynamic(values: int) -> None:
    """Raises `Unsupported` for a dynamic index that may have too many values."""
    if values > MOST_INDICES:
        raise Unsupported(f"a dynamic index of {values} values")


def _chosen(program: Program, kind: str, which: int, no: Array, yes: Array) -> Array:
    """All of yes where a truth holds, all of no elsewhere."""
    return elementwise(lambda n, y: program.select(which, n, y, kind), no, yes)


def is_at(program: Program, start: int, k: int, last: int) -> int:
    """Whether a start, clamped to 0..last, is k."""
    here = program.constant(k, program.types[start])
    if last == 0:
        return program.constant(True, "b1")
    return program.compare("le" if k == 0 else "ge" if k == last else "eq", start, here)


def _known_or_none(program: Program, x: Array) -> Array | None:
    known = [program.known[k] for k in x.ravel().tolist()]
    return None if None in known else array_of(known, x.shape)


def _clamped(start: Any, last: int) -> int:
    return min(max(int(start), 0), last)


def _dynamic_slice(program: Program, equation: Any, x: Array, *starts: Array) -> list[Array]:
    kind, sizes = kind_of_result(equation), equation.params["slice_sizes"]
    for axis, (size, start) in enumerate(zip(sizes, starts, strict=True)):
        x = _window(program, kind, x, axis, size, start.item())
    return [x]


def _window(program: Program, kind: str, x: Array, axis: int, size: int, start: int) -> Array:
    last = x.shape[axis] - size
    rows = np.moveaxis(x, axis, 0)
    known = program.known[start]
    if known is not None:
        first = _clamped(known, last)
        return np.moveaxis(rows[first : first + size], 0, axis)
    _check_dynamic(last + 1)
    window = rows[last : last + size]
    for k in range(last - 1, -1, -1):
        up_to = at_most(program, start, k)
        window = _chosen(program, kind, up_to, window, rows[k : k + size])
    return np.moveaxis(window, 0, axis)


def _update(program: Program, equation: Any, x: Array, new: Array, *starts: Array) -> list[Array]:
    kind = kind_of_result(equation)
    updated = x.copy()
    last = [n - m for n, m in zip(x.shape, new.shape, strict=True)]
    known = [program.known[s.item()] for s in starts]
    ranges = [
        range(n + 1) if f is None else [_clamped(f, n)] for f, n in zip(known, last, strict=True)
    ]
    _check_dynamic(math.prod(map(len, ranges)))
    for corner in itertools.product(*ranges):
        window = tuple(slice(a, a + m) for a, m in zip(corner, new.shape, strict=True))
        axes = zip(starts, corner, last, known, strict=True)
        tests = [is_at(program, s.item(), a, n) for s, a, n, f in axes if f is None]
        here = program.all_of(*tests)
        updated[window] = _chosen(program, kind, here, updated[window], new)
    return [updated]


def _gather(program: Program, equation: Any, x: Array, indices: Array) -> list[Array]:
    params, kind = equation.params, kind_of_result(equation)
    known = _known_or_none(program, indices)
    if known is None:
        return [_dynamic_gather(program, kind, x, indices, params)]
    places = gathered(params, x.shape, known)
    flat = np.append(x.ravel(), _filler(program, params["fill_value"], kind))
    return [flat[places]]


def _filler(program: Program, value: Any, kind: str) -> int:
    """What a gather takes from outside."""
    if value is not None:
        return program.constant(np.asarray(value).astype(NUMPY[kind]).item(), kind)
    if kind[0] == "f":
        return program.constant(math.nan, kind)
    if kind == "b1":
        return program.constant(True, kind)
    info = np.iinfo(NUMPY[kind])
    return program.constant(int(info.min if kind[0] == "i" else info.max), kind)


def _dynamic_gather(program: Program, kind: str, x: Array, indices: Array, params: dict) -> Array:
    """A gather at dynamic indices."""
    numbers, batch = params["dimension_numbers"], indices.shape[:-1]
    if math.prod(batch) > 64:
        raise Unsupported("a gather at dynamic indices")
    fills = "FILL" in str(params["mode"]) and "CLIP" not in str(params["mode"])
    filler = np.array(_filler(program, params["fill_value"], kind)) if fills else None
    dropped = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    pieces = []
    for row in np.ndindex(*batch):
        along = zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True)
        starts = {axis: program.constant(row[k], "i32") for axis, k in along}
        starts |= zip(numbers.start_index_map, indices[row].tolist(), strict=True)
        piece, inside = x, []
        for axis, size in enumerate(params["slice_sizes"]):
            if axis in starts:
                piece = _window(program, kind, piece, axis, size, starts[axis])
                inside += _within(program, starts[axis], x.shape[axis] - size) if fills else []
            else:
                piece = np.take(piece, range(size), axis)
        if filler is not None:
            piece = _chosen(program, kind, program.all_of(*inside), filler, piece)
        pieces.append(np.squeeze(piece, dropped))
    stacked = np.stack(pieces).reshape((*batch, *pieces[0].shape))
    # The axes of the batch stand where no axis of a slice does.
    return np.moveaxis(stacked, range(len(batch), stacked.ndim), numbers.offset_dims)


def _within(program: Program, start: int, last: int) -> list[int]:
    """The tests whether a start is in 0..last."""
    below, above = (program.constant(k, program.types[start]) for k in (0, last))
    return [program.compare("ge", start, below), program.compare("le", start, above)]


def _scatter(name: str) -> Callable:
    def apply(program: Program, equation: Any, x: Array, at: Array, new: Array) -> list[Array]:
        params, kind = equation.params, kind_of_result(equation)
        put = _putting(name, params)
        known = _known_or_none(program, at)
        if known is None:
            return [_dynamic_scatter(program, kind, put, x, at, new, params)]
        places = scattered(params, x.shape, known, new.shape).ravel().tolist()
        entries = x.ravel().tolist()
        for place, y in zip(places, new.ravel().tolist(), strict=True):
            if place >= 0:
                entries[place] = put(program, entries[place], y, kind)
        return [array_of(entries, x.shape)]

    return apply


def _dynamic_scatter(
    program: Program, kind: str, put: Callable, x: Array, at: Array, new: Array, params: dict
) -> Array:
    """A scatter at dynamic indices, slice by slice; outside, nothing is changed."""
    numbers, clips = params["dimension_numbers"], "CLIP" in str(params["mode"])
    rows = at.shape[:-1]
    windows = np.moveaxis(new, numbers.update_window_dims, range(len(rows), new.ndim))
    dropped = tuple(sorted((*numbers.inserted_window_dims, *numbers.operand_batching_dims)))
    changed = x.copy()

    def starts_at(start: int, k: int, last: int) -> int:
        if clips:
            return is_at(program, start, k, last)
        return program.compare("eq", start, program.constant(k, program.types[start]))

    tried = 0
    for row in np.ndindex(*rows):
        window = np.expand_dims(array_of(windows[row], windows.shape[len(rows) :]), dropped)
        along = zip(
            numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True
        )
        fixed = {axis: row[k] for axis, k in along}
        starts = dict(zip(numbers.scatter_dims_to_operand_dims, at[row].tolist(), strict=True))
        last = [n - m for n, m in zip(x.shape, window.shape, strict=True)]
        ranges = [range(n + 1) if k in starts else [fixed.get(k, 0)] for k, n in enumerate(last)]
        tried += math.prod(map(len, ranges))
        _check_dynamic(tried)
        for corner in itertools.product(*ranges):
            here = program.all_of(*(starts_at(s, corner[i], last[i]) for i, s in starts.items()))
            part = tuple(slice(a, a + m) for a, m in zip(corner, window.shape, strict=True))
            both = elementwise(lambda a, b: put(program, a, b, kind), changed[part], window)
            changed[part] = _chosen(program, kind, here, changed[part], both)
    return changed


def _putting(name: str, params: Mapping[str, Any]) -> Callable[[Program, int, int, str], int]:
    """What an update makes of an entry: (program, old, new, kind) -> the entry after it."""
    if name:
        return lambda program, old, new, kind: program.binary(name, old, new, kind)
    if params["update_jaxpr"] is None:
        return lambda program, old, new, kind: new
    # A function of the old entry: x.at[i].apply(f).
    closed = ClosedJaxpr(params["update_jaxpr"], params["update_consts"])

    def put(program: Program, old: int, new: int, kind: str) -> int:
        (result,) = write_closed(program, closed, [array_of(k, ()) for k in (old, new)])
        return result.item()

    return put


RULES |= {
    **{f"scatter{mark}{name}": _scatter(name) for name in SCATTERED for mark in "-_"},
    "scatter": _scatter(""),
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _update,
    "gather": _gather,
}


def gathered(params: Mapping[str, Any], shape: tuple[int, ...], indices: Array) -> Array:
    """The numbers of the entries that `jax.lax.gather` takes; -1 where it fills."""
    numbers = params["dimension_numbers"]
    batches = dict(
        zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True)
    )
    sizes, mode = params["slice_sizes"], str(params["mode"])
    entries = _entries(shape, indices, sizes, numbers.start_index_map, batches, mode)
    dropped = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    return _window_axes_to(entries, indices.ndim - 1, dropped, numbers.offset_dims)


def scattered(
    params: Mapping[str, Any], shape: tuple[int, ...], indices: Array, updates: tuple[int, ...]
) -> Array:
    """The numbers of the entries that each update of a scatter goes to; -1: nowhere."""
    numbers = params["dimension_numbers"]
    batches = dict(
        zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True)
    )
    dropped = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    window = iter(updates[axis] for axis in numbers.update_window_dims)
    sizes = [1 if axis in dropped else next(window) for axis in range(len(shape))]
    mapped, mode = numbers.scatter_dims_to_operand_dims, str(params["mode"])
    entries = _entries(shape, indices, sizes, mapped, batches, mode)
    return _window_axes_to(entries, indices.ndim - 1, dropped, numbers.update_window_dims)


def _entries(
    shape: tuple[int, ...],
    indices: Array,
    sizes: Any,
    mapped: tuple[int, ...],
    batches: Mapping[int, int],
    mode: str,
) -> Array:
    """Of the window of each row of indices, the numbers of its entries: (*rows, *sizes)."""
    rows, rank = indices.shape[:-1], len(shape)
    entries = np.zeros((*rows, *sizes), np.int64)
    outside = np.zeros((*rows, *(1,) * rank), bool)
    for axis, (length, size) in enumerate(zip(shape, sizes, strict=True)):
        start = np.zeros(rows, np.int64)
        if axis in mapped:
            start = indices[..., mapped.index(axis)].astype(np.int64)
        elif axis in batches:
            along = batches[axis]
            start = start + np.arange(rows[along]).reshape(
                [-1 if k == along else 1 for k in range(len(rows))]
            )
        start = start.reshape((*rows, *(1,) * rank))
        if "FILL" in mode:
            outside |= (start < 0) | (start > length - size)
        start = np.clip(start, 0, length - size)
        window = np.arange(size).reshape([-1 if k == axis else 1 for k in range(rank)])
        entries = entries * length + start + window
    return np.where(outside, -1, entries)


def _window_axes_to(entries: Array, n_rows: int, dropped: set[int], to: tuple[int, ...]) -> Array:
    """The axes of the rows and of the windows, those of length 1 dropped, in the given order."""
    entries = np.squeeze(entries, tuple(n_rows + axis for axis in dropped))
    return np.moveaxis(entries, range(n_rows, entries.ndim), to)


PLAIN |= {"dynamic_slice", "dynamic_update_slice", "gather", "scatter"}
PLAIN |= {f"scatter{mark}add" for mark in "-_"}
