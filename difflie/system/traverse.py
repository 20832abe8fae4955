"""Forward and backward passes along the tree, and how they are compiled.

The dofs of a system (its degrees of freedom) are visited in the order of their indices, parents
before children or the other way round, in one loop (`jax.lax.scan`). In a chain each dof hands its
value to the next. In a branched tree the values are kept in a table and read at the dof's parent.

There are two ways to compile the loop. Scanned: each visit is a kernel of its own, which compiles
in the same time for every machine. Unrolled: a whole algorithm, a function under `tree_algorithm`,
is one kernel, in which the loops are unrolled dof by dof and everything that the topology fixes is
computed in advance. This gives the fastest code, but every dof adds to the compile time.
`Topology.unrolled` decides. Only this file knows.

Data are pytrees whose leaves have one leading axis over the dofs. A leaf that is a NumPy array is
known at trace time. If it is the same for all dofs, the visited function gets it as a Python
number, so that its zeros and ones cost nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..native import kernel, scan, structured
from .topology import WORLD, Topology

Visit = Callable[[Any, Any], tuple[Any, Any]]


def tree_algorithm(algorithm: Callable[..., Any]) -> Callable[..., Any]:
    """An algorithm whose first argument is a `Tree`, compiled as one kernel if it is unrolled.

    The other arguments and the result are arrays (...) or pytrees of them, as the algorithm has
    them.
    """

    def on_structure(tree: Any, *args: Any) -> Any:
        return algorithm(tree.structured(), *args)

    compiled = kernel(on_structure, once=True)

    @functools.wraps(algorithm)
    def run(tree: Any, *args: Any) -> Any:
        with structured():
            if not tree.topology.unrolled:
                return algorithm(tree, *args)
            return compiled(tree, *args)

    return run


def in_one(topology: Topology, f: Callable[..., Any]) -> Callable[..., Any]:
    """f, compiled as one kernel if the tree is unrolled; arguments and results as those of f."""
    return kernel(f) if topology.unrolled else f


def for_each(f: Callable[..., Any]) -> Callable[..., Any]:
    """f mapped over leading axes (n, ...) of bodies or dofs: a batch of one kernel."""
    return jax.vmap(kernel(f))


def forward_pass(topology: Topology, visit: Visit, start: Any, data: Any) -> Any:
    """Visits every dof after its parent: visit(value of the parent, data) -> (value, output).

    `start` is the value of the world. Returns the outputs, stacked over the dofs (n_dofs, ...).
    """
    value, dofs, step, unpacked = _prepared(visit, start, data)
    if topology.unbranched:
        outputs = scan(step, value, dofs, topology.n_dofs)[1]
        return unpacked(outputs)

    def body(table: Any, x: Any) -> tuple[Any, Any]:
        (index, parent), dof = x
        value, output = step(_read(table, parent), dof)
        return _put(table, value, index), output

    return unpacked(_along_table(topology, body, value, dofs, reverse=False))


def backward_pass(topology: Topology, visit: Visit, zero: Any, data: Any) -> Any:
    """Visits every dof after its children: visit(sum over them, data) -> (value, output).

    `zero` is the sum over no children. Returns the outputs, stacked over the dofs (n_dofs, ...).
    """
    value, dofs, step, unpacked = _prepared(visit, zero, data)
    if topology.unbranched:
        outputs = scan(step, value, dofs, topology.n_dofs, reverse=True)[1]
        return unpacked(outputs)

    def body(sums: Any, x: Any) -> tuple[Any, Any]:
        (index, parent), dof = x
        value, output = step(_read(sums, index), dof)
        above = jax.tree.map(jnp.add, _read(sums, parent), value)
        return _put(sums, above, parent), output

    return unpacked(_along_table(topology, body, value, dofs, reverse=True))


def _prepared(visit: Visit, value: Any, data: Any) -> tuple[Any, Any, Visit, Callable]:
    """The start value, the dofs to loop over, one step, and a function that unpacks its outputs.

    If everything consists of scalars, values, dofs and outputs are packed into one array each,
    which a loop passes on faster than many, and the step is a kernel.
    """
    leaves, structure = jax.tree.flatten(data)
    known = [
        float(x[0]) if isinstance(x, np.ndarray) and x.size and np.all(x == x[0]) else None
        for x in leaves
    ]
    dofs = [jnp.asarray(x) for x, constant in zip(leaves, known, strict=True) if constant is None]

    def dof(entries: Iterable[Any]) -> Any:
        remaining = iter(entries)
        return jax.tree.unflatten(structure, [next(remaining) if c is None else c for c in known])

    start, value_structure = jax.tree.flatten(value)
    start = [jnp.asarray(x) for x in start]
    scalars = all(x.ndim == 0 for x in start) and all(x.ndim == 1 for x in dofs)
    if not (scalars and dofs and start and len({x.dtype for x in (*start, *dofs)}) == 1):
        return value, dofs, lambda value, x: visit(value, dof(x)), lambda outputs: outputs

    outputs_structure = None

    def step(value: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        nonlocal outputs_structure
        before = jax.tree.unflatten(value_structure, jnp.unstack(value))
        after, output = visit(before, dof(jnp.unstack(x)))
        output, outputs_structure = jax.tree.flatten(output)
        return jnp.stack(jax.tree.leaves(after)), jnp.stack(output)

    def unpacked(outputs: jax.Array) -> Any:
        return jax.tree.unflatten(outputs_structure, jnp.unstack(outputs, axis=1))

    return jnp.stack(start), jnp.stack(dofs, axis=1), kernel(step), unpacked


def _along_table(topology: Topology, body: Callable, value: Any, dofs: Any, reverse: bool) -> Any:
    """The outputs of a loop with a table of values, in which the world is the last entry."""
    n = topology.n_dofs
    parent = np.where(topology.dof_parent == WORLD, n, topology.dof_parent)
    indices = jnp.arange(n), jnp.asarray(parent)
    table = jax.tree.map(lambda a: jnp.broadcast_to(a, (n + 1, *jnp.shape(a))), value)
    return jax.lax.scan(body, table, (indices, dofs), reverse=reverse)[1]


def _read(table: Any, index: jax.Array) -> Any:
    return jax.tree.map(lambda a: jax.lax.dynamic_index_in_dim(a, index, keepdims=False), table)


def _put(table: Any, value: Any, index: jax.Array) -> Any:
    return jax.tree.map(
        lambda a, v: jax.lax.dynamic_update_index_in_dim(a, v, index, 0), table, value
    )
