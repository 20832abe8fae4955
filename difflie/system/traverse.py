"""How a tree is walked; the only place that knows.

The rows of a system (its degrees of freedom) are visited stretch by stretch: along an unbranched
stretch by a loop (`jax.lax.scan`), so that compile time does not grow with its length and fusion
stays within one row; from stretch to stretch by ordinary calls.

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


def outward(topology: Topology, visit: Visit, start: Any, data: Any) -> Any:
    """Visits every row after its parent: visit(value of the parent, data) -> (value, output).

    `start` is the value of the world. Returns the outputs, stacked over the rows (n_rows, ...).
    """
    values: list[Any] = []
    outputs = []
    for begin, end, parent in topology.segments:
        value = start if parent == WORLD else values[parent]
        value, output = _along(visit, value, data, begin, end, reverse=False)
        values.append(value)
        outputs.append(output)
    return _stack(outputs)


def inward(topology: Topology, visit: Visit, zero: Any, data: Any) -> Any:
    """Visits every row after its children: visit(sum over them, data) -> (value, output).

    `zero` is the sum over no children. Returns the outputs, stacked over the rows (n_rows, ...).
    """
    sums: list[Any] = [None] * len(topology.segments)
    outputs: list[Any] = [None] * len(topology.segments)
    for s, (begin, end, parent) in reversed(list(enumerate(topology.segments))):
        value = zero if sums[s] is None else sums[s]
        value, outputs[s] = _along(visit, value, data, begin, end, reverse=True)
        if parent != WORLD:
            above = sums[parent]
            sums[parent] = value if above is None else jax.tree.map(jnp.add, above, value)
    return _stack(outputs)


def _along(
    visit: Visit, value: Any, data: Any, begin: int, end: int, *, reverse: bool
) -> tuple[Any, Any]:
    leaves, structure = jax.tree.flatten(data)
    constants: list[float | None] = []
    sliced = []
    for leaf in leaves:
        part = leaf[begin:end]
        if isinstance(part, np.ndarray) and np.all(part == part[0]):
            constants.append(float(part[0]))
        else:
            constants.append(None)
            sliced.append(jnp.asarray(part))

    def body(carry: Any, rows: list[Any]) -> tuple[Any, Any]:
        rest = iter(rows)
        row = [next(rest) if c is None else c for c in constants]
        return visit(carry, jax.tree.unflatten(structure, row))

    return jax.lax.scan(body, value, sliced, length=end - begin, reverse=reverse)


def _stack(outputs: list[Any]) -> Any:
    if len(outputs) == 1:
        return outputs[0]
    return jax.tree.map(lambda *parts: jnp.concatenate(parts), *outputs)
