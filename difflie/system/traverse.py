"""How a tree is walked; the only place that knows.

The rows of a system (its degrees of freedom) are visited generation by generation. Unbranched limbs
of a tree go side by side: one loop (`jax.lax.scan`) runs along all of them at once, so that the
legs of a quadruped share one vector operation. Each branching ends a loop and begins another, and
each loop takes time to compile; a tree of many has one loop over all rows instead, in which values
are kept in a table and looked up by the row's parent. `Topology.traversal` says how many are many.

Data are pytrees whose leaves have one leading axis over the rows in the order of
`Topology.order`. A leaf that is a NumPy array is known at trace time; where it is the same all
along a stretch the visited function gets it as a Python number, so that its zeros and ones cost
nothing. The visited function sees one row, or vectors over limbs where its values are scalars; on
those it must be elementwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .topology import WORLD, Stretch, Topology

Visit = Callable[[Any, Any], tuple[Any, Any]]


# The longest sequence of loops: compiling one takes a second or two, a pass through the table takes
# twice the time of one through limbs.
_LOOPS = {"loop": 2, "fast": 1000}


def outward(topology: Topology, visit: Visit, start: Any, data: Any) -> Any:
    """Visits every row after its parent: visit(value of the parent, data) -> (value, output).

    `start` is the value of the world. Returns the outputs, stacked over the rows (n_rows, ...).
    """
    stretches = _stretches(topology)
    if len(stretches) > _LOOPS[topology.traversal]:
        return _outward_by_table(topology, visit, start, data)
    value = jax.tree.map(lambda a: jnp.asarray(a)[None], start)
    outputs = []
    for stretch in stretches:
        value = jax.tree.map(lambda a, s=stretch: _of_limbs(a, s.parents), value)
        value, output = _along(visit, value, data, stretch, reverse=False)
        outputs.append(output)
    return _stack(outputs)


def inward(topology: Topology, visit: Visit, zero: Any, data: Any) -> Any:
    """Visits every row after its children: visit(sum over them, data) -> (value, output).

    `zero` is the sum over no children. Returns the outputs, stacked over the rows (n_rows, ...).
    """
    stretches = _stretches(topology)
    if len(stretches) > _LOOPS[topology.traversal]:
        return _inward_by_table(topology, visit, zero, data)
    nothing = jax.tree.map(lambda a: jnp.asarray(a)[None], zero)
    total = jax.tree.map(lambda a: _of_limbs(a, (0,) * stretches[-1].width), nothing)
    outputs = []
    for stretch, above in zip(reversed(stretches), (*stretches[-2::-1], None), strict=True):
        value, output = _along(visit, total, data, stretch, reverse=True)
        outputs.append(output)
        if above is not None:
            limbs = (stretch.parents, above.width)
            total = jax.tree.map(lambda a, z, to=limbs: _sum_over_limbs(a, z, *to), value, nothing)
    return _stack(outputs[::-1])


def _stretches(topology: Topology) -> tuple[Stretch, ...]:
    """The stretches; an empty one where nothing moves, so that the outputs have their shapes."""
    return topology.stretches or (Stretch(0, 0, (0,)),)


def _of_limbs(a: jax.Array, limbs: tuple[int, ...]) -> jax.Array:
    """a[limbs], limbs in ascending order, by slices: a gather cannot be part of a native call."""
    width = a.shape[0]
    if limbs == tuple(range(width)):
        return a
    counts = np.bincount(limbs, minlength=width)
    parts = [jnp.broadcast_to(a[i], (n, *a.shape[1:])) for i, n in enumerate(counts) if n]
    return jnp.concatenate(parts)


def _sum_over_limbs(
    a: jax.Array, zero: jax.Array, parents: tuple[int, ...], width: int
) -> jax.Array:
    """(width, ...): for each limb the sum of the values of those that hang on it."""
    if parents == tuple(range(width)):
        return a
    ends = np.cumsum(np.bincount(parents, minlength=width))
    parts = [
        jnp.sum(a[begin:end], axis=0, keepdims=True) if end > begin else zero
        for begin, end in zip([0, *ends[:-1]], ends, strict=True)
    ]
    return jnp.concatenate(parts)


def _along(
    visit: Visit, value: Any, data: Any, stretch: Stretch, *, reverse: bool
) -> tuple[Any, Any]:
    """One loop along the limbs of a stretch; values and outputs have an axis over them."""
    length, width = stretch.length, stretch.width
    sliced, row = _rows(data, stretch.start, stretch.stop)

    def body(value: Any, x: list[Any]) -> tuple[Any, Any]:
        return visit(value, row(x))

    # One limb alone runs on scalars, which compile to faster code than vectors of one.
    if width == 1:
        value = jax.tree.map(lambda a: a[0], value)
    else:
        sliced = [x.reshape(length, width, *x.shape[1:]) for x in sliced]
        scalars = all(a.ndim == 1 for a in jax.tree.leaves(value)) and all(
            x.ndim == 2 for x in sliced
        )
        body = _elementwise(body, width) if scalars else jax.vmap(body)
    if length == 1:
        value, output = body(value, [x[0] for x in sliced])
        output = jax.tree.map(lambda a: jnp.asarray(a)[None], output)
    else:
        value, output = jax.lax.scan(body, value, sliced, length=length, reverse=reverse)
    if width == 1:
        return jax.tree.map(lambda a: jnp.asarray(a)[None], value), output
    return value, jax.tree.map(lambda a: a.reshape(length * width, *a.shape[2:]), output)


def _elementwise(body: Callable, width: int) -> Callable:
    """What `jax.vmap` does to a function of scalars, except that values stay shared."""

    def on_vectors(value: Any, x: list[Any]) -> Any:
        return jax.tree.map(lambda a: jnp.broadcast_to(a, (width,)), body(value, x))

    return on_vectors


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
