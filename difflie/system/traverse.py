"""How a tree is walked; the only place that knows.

The rows of a system (its degrees of freedom) are visited by loops (`jax.lax.scan`), so that compile
time does not grow with their number and fusion stays within one row. A tree of few unbranched
stretches has one loop for each, in which a row hands its value to the next; a tree of many has one
loop over all rows, in which values are kept in a table and looked up by the row's parent.

Data are pytrees whose leaves have one leading axis over the rows in depth-first order. A leaf that
is a NumPy array is known at trace time; where it is the same all along a stretch the visited
function gets it as a Python number, so that its zeros and ones cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .topology import WORLD, Topology

Visit = Callable[[Any, Any], tuple[Any, Any]]


_FEW = 3


def outward(topology: Topology, visit: Visit, start: Any, data: Any) -> Any:
    """Visits every row after its parent: visit(value of the parent, data) -> (value, output).

    `start` is the value of the world. Returns the outputs, stacked over the rows (n_rows, ...).
    """
    if len(topology.segments) > _FEW:
        return _outward_by_table(topology, visit, start, data)
    values: list[Any] = []
    outputs = []
    for begin, end, parent in _segments(topology):
        value = start if parent == WORLD else values[parent]
        value, output = _along(visit, value, data, begin, end, reverse=False)
        values.append(value)
        outputs.append(output)
    return _stack(outputs)


def inward(topology: Topology, visit: Visit, zero: Any, data: Any) -> Any:
    """Visits every row after its children: visit(sum over them, data) -> (value, output).

    `zero` is the sum over no children. Returns the outputs, stacked over the rows (n_rows, ...).
    """
    if len(topology.segments) > _FEW:
        return _inward_by_table(topology, visit, zero, data)
    segments = _segments(topology)
    sums: list[Any] = [None] * len(segments)
    outputs: list[Any] = [None] * len(segments)
    for s, (begin, end, parent) in reversed(list(enumerate(segments))):
        value = zero if sums[s] is None else sums[s]
        value, outputs[s] = _along(visit, value, data, begin, end, reverse=True)
        if parent != WORLD:
            above = sums[parent]
            sums[parent] = value if above is None else jax.tree.map(jnp.add, above, value)
    return _stack(outputs)


def _segments(topology: Topology) -> tuple[tuple[int, int, int], ...]:
    """The stretches; an empty one where nothing moves, so that the outputs have their shapes."""
    return topology.segments or ((0, 0, WORLD),)


def _along(
    visit: Visit, value: Any, data: Any, begin: int, end: int, *, reverse: bool
) -> tuple[Any, Any]:
    sliced, row = _rows(data, begin, end)

    def body(carry: Any, x: list[Any]) -> tuple[Any, Any]:
        return visit(carry, row(x))

    if end - begin == 1:
        value, output = body(value, [x[0] for x in sliced])
        return value, jax.tree.map(lambda a: jnp.asarray(a)[None], output)
    return jax.lax.scan(body, value, sliced, length=end - begin, reverse=reverse)


def _outward_by_table(topology: Topology, visit: Visit, start: Any, data: Any) -> Any:
    n = topology.n_rows
    sliced, row = _rows(data, 0, n)

    def body(table: Any, x: Any) -> tuple[Any, Any]:
        (here, parent), x = x
        value, output = visit(_read(table, parent), row(x))
        return jax.tree.map(lambda a, v: _put(a, v, here), table, value), output

    return jax.lax.scan(body, _table(start, n), (_places(topology), sliced))[1]


def _inward_by_table(topology: Topology, visit: Visit, zero: Any, data: Any) -> Any:
    n = topology.n_rows
    sliced, row = _rows(data, 0, n)

    def body(sums: Any, x: Any) -> tuple[Any, Any]:
        (here, parent), x = x
        value, output = visit(_read(sums, here), row(x))
        above = jax.tree.map(jnp.add, _read(sums, parent), value)
        return jax.tree.map(lambda a, v: _put(a, v, parent), sums, above), output

    return jax.lax.scan(body, _table(zero, n), (_places(topology), sliced), reverse=True)[1]


def _places(topology: Topology) -> tuple[jax.Array, jax.Array]:
    """Where each row and its parent stand in the table; the world stands last."""
    parent = np.where(topology.parent_place == WORLD, topology.n_rows, topology.parent_place)
    return jnp.arange(topology.n_rows), jnp.asarray(parent)


def _table(value: Any, n: int) -> Any:
    return jax.tree.map(lambda a: jnp.broadcast_to(a, (n + 1, *jnp.shape(a))), value)


def _read(table: Any, index: jax.Array) -> Any:
    return jax.tree.map(lambda a: jax.lax.dynamic_index_in_dim(a, index, keepdims=False), table)


def _put(a: jax.Array, value: jax.Array, index: jax.Array) -> jax.Array:
    return jax.lax.dynamic_update_index_in_dim(a, value, index, 0)


def _rows(data: Any, begin: int, end: int) -> tuple[list[jax.Array], Callable[[list[Any]], Any]]:
    """The leaves to loop over, and what makes the data of one row of them."""
    leaves, structure = jax.tree.flatten(data)
    constants: list[float | None] = []
    sliced = []
    for leaf in leaves:
        part = leaf[begin:end]
        if isinstance(part, np.ndarray) and part.size and np.all(part == part[0]):
            constants.append(float(part[0]))
        else:
            constants.append(None)
            sliced.append(jnp.asarray(part))

    def row(x: list[Any]) -> Any:
        rest = iter(x)
        return jax.tree.unflatten(structure, [next(rest) if c is None else c for c in constants])

    return sliced, row


def _stack(outputs: list[Any]) -> Any:
    if len(outputs) == 1:
        return outputs[0]
    return jax.tree.map(lambda *parts: jnp.concatenate(parts), *outputs)
