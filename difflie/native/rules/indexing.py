"""Slices, gathers and scatters at static or dynamic indices.

Dynamic indices are known at run time only.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..private import ClosedJaxpr
from ..program import NUMPY, Program, Unsupported, check_dynamic
from .parameters import SCATTERED
from .writing import PLAIN, RULES, Array, array_of, elementwise, kind_of_result, write_closed

# So many rows are chosen at once, by choices one after the other or from tables.
_MOST_CHOSEN, _MOST_FROM_TABLES = 64, 2_000


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
    sizes = equation.params["slice_sizes"]
    numbers = {axis: start.item() for axis, start in enumerate(starts)}
    return [_window(program, kind_of_result(equation), x, sizes, numbers)]


def _window(
    program: Program, kind: str, x: Array, sizes: Sequence[int], starts: Mapping[int, int]
) -> Array:
    """The window of those sizes, from these starts along some axes and from 0 along the others."""
    free: dict[int, int] = {}
    for axis, size in enumerate(sizes):
        last, start = x.shape[axis] - size, starts.get(axis)
        known = 0 if start is None else program.known[start]
        if known is None and last:
            free[axis] = starts[axis]
        else:
            first = _clamped(known or 0, last)
            x = np.take(x, range(first, first + size), axis)
    if len(free) > 1 and program.tables and not any(map(program.is_linear, x.ravel().tolist())):
        return _window_of_one_number(program, kind, x, sizes, free)
    for axis, start in free.items():
        rows, count = np.moveaxis(x, axis, 0), x.shape[axis] - sizes[axis] + 1
        check_dynamic(count)
        x = np.moveaxis(_entries_of(program, kind, start, rows, range(sizes[axis]), count), 0, axis)
    return x


def _window_of_one_number(
    program: Program, kind: str, x: Array, sizes: Sequence[int], starts: Mapping[int, int]
) -> Array:
    """The same with the entries along some axes numbered one after another, as one table."""
    axes, n = list(starts), len(starts)
    shape, window = [x.shape[a] for a in axes], [sizes[a] for a in axes]
    steps = [math.prod(shape[i + 1 :]) for i in range(n)]
    number, most, kind_of_number = program.constant(0, "i32"), 0, "i32"
    for axis, step, length, size in zip(axes, steps, shape, window, strict=True):
        last, of = length - size, program.types[starts[axis]]
        check_dynamic(last + 1)
        start = program.binary("max", starts[axis], program.constant(0, of), of)
        start = program.binary("min", start, program.constant(last, of), of)
        start = program.convert(start, kind_of_number)
        along = program.mul(start, program.constant(step, kind_of_number), kind_of_number)
        number, most = program.add(number, along, kind_of_number), most + last * step
    rows = np.moveaxis(x, axes, range(n))
    rows = rows.reshape((math.prod(shape), *rows.shape[n:]))
    firsts = [
        sum(i * step for i, step in zip(offset, steps, strict=True))
        for offset in itertools.product(*map(range, window))
    ]
    chosen = _entries_of(program, kind, number, rows, firsts, most + 1)
    return np.moveaxis(chosen.reshape((*window, *rows.shape[1:])), range(n), axes)


def _entries_of(
    program: Program, kind: str, number: int, rows: Array, firsts: Iterable[int], count: int
) -> Array:
    """Of the tables of so many rows from each of the first ones, the row of this number."""

    def entry(*table: int) -> int:
        return program.entry(number, table, kind)

    return np.stack([elementwise(entry, *rows[k : k + count]) for k in firsts])


def _update(program: Program, equation: Any, x: Array, new: Array, *starts: Array) -> list[Array]:
    kind = kind_of_result(equation)
    updated = x.copy()
    last = [n - m for n, m in zip(x.shape, new.shape, strict=True)]
    known = [program.known[s.item()] for s in starts]
    ranges = [
        range(n + 1) if f is None else [_clamped(f, n)] for f, n in zip(known, last, strict=True)
    ]
    check_dynamic(math.prod(map(len, ranges)))
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
    if math.prod(batch) > (_MOST_FROM_TABLES if program.tables else _MOST_CHOSEN):
        raise Unsupported("a gather at dynamic indices")
    fills = "FILL" in str(params["mode"]) and "CLIP" not in str(params["mode"])
    filler = np.array(_filler(program, params["fill_value"], kind)) if fills else None
    dropped = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    pieces = []
    for row in np.ndindex(*batch):
        along = zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True)
        starts = {axis: program.constant(row[k], "i32") for axis, k in along}
        starts |= zip(numbers.start_index_map, indices[row].tolist(), strict=True)
        sizes = params["slice_sizes"]
        piece = _window(program, kind, x, sizes, starts)
        if filler is not None:
            inside = [
                test
                for axis, start in starts.items()
                for test in _within(program, start, x.shape[axis] - sizes[axis])
            ]
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
        check_dynamic(tried)
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
