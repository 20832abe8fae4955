"""Residuals, their Jacobian by all unknowns, and its triangular factor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.sharding import AxisType, PartitionSpec
from jaxtyping import Array, Float
from numpy.typing import NDArray

_ROWS = 256


@eqx.filter_jit
def residuals_and_jacobian(
    residual: Callable, unknown: Any, args: Any, directions: Any = None
) -> tuple[Float[Array, " k"], Float[Array, "k c"]]:
    """residual(unknown, args) (k,) and its Jacobian (k, n), in forward mode.

    unknown: a pytree of n numbers. directions (c, n): of the derivatives, by default those of all
    numbers. These columns are divided among jax's devices; a CPU counts as `jax_num_cpu_devices` of
    them.
    """
    flat, whole = ravel_pytree(unknown)
    arrays, fixed = eqx.partition((residual, args), eqx.is_array)

    def columns(directions, flat, arrays):
        residual, args = eqx.combine(arrays, fixed)

        def along(direction):
            return jax.jvp(lambda flat: residual(whole(flat), args), (flat,), (direction,))

        return jax.vmap(along, out_axes=(None, -1))(directions)

    unit = jnp.eye(len(flat), dtype=flat.dtype)
    unit = unit if directions is None else jnp.asarray(directions, flat.dtype)
    count, shares = len(unit), jax.device_count()
    unit = jnp.pad(unit, ((0, -count % shares), (0, 0)))
    if shares > 1:
        mesh = jax.make_mesh((shares,), ("columns",), axis_types=(AxisType.Auto,))
        each, same = PartitionSpec("columns"), PartitionSpec()
        columns = jax.shard_map(
            columns,
            mesh=mesh,
            in_specs=(each, same, same),
            out_specs=(same, PartitionSpec(None, "columns")),
            check_vma=False,
        )
    r, jacobian = columns(unit, flat, arrays)
    return r, jacobian[:, :count]


def triangle(rows: NDArray) -> NDArray:
    """The upper triangle R (n, n), or (k, n) if k < n, with R^T R = A^T A for rows A (k, n).

    By blocks of rows, then of their triangles, each so small that LAPACK runs it on one core:
    threads would spend more time waiting for each other than working. Demmel et al. 2012.
    """
    n = rows.shape[1]
    size = max(_ROWS, 4 * n)
    while len(rows) > 2 * size:
        blocks = np.pad(rows, ((0, -len(rows) % size), (0, 0))).reshape(-1, size, n)
        rows = np.asarray(np.linalg.qr(blocks, mode="r")).reshape(-1, n)
    return np.asarray(np.linalg.qr(rows, mode="r"))
