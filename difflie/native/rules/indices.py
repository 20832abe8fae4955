"""Which entries a gather takes, and where a scatter puts its updates, at known places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

Array = np.ndarray


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
