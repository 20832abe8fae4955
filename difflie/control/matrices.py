"""Checks of the matrices of linear models and quadratic costs, before anything is traced."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..system.validation import real_numbers

# Relative to the largest entry; derivatives of costs are symmetric up to rounding.
_TOLERANCE = 1e-4


def matrices(where: str, **given: tuple[Any, str]) -> list[jax.Array]:
    """The matrices, passed as name = (value, axes), in the precision of the first.

    axes names each axis by a letter: "xu" is (nx, nu), "nxu" also has a leading axis (n,); what
    has the same letter has the same size. Raises TypeError for what are no real numbers, and
    ValueError for other shapes and for concrete numbers that are not finite.
    """
    sizes: dict[str, int] = {}
    made: list[jax.Array] = []
    for name, (value, axes) in given.items():
        matrix = real_numbers(where, name, value)
        dtype = made[0].dtype if made else jnp.promote_types(matrix.dtype, jnp.float32)
        known = matrix.ndim == len(axes)
        fits = known and all(
            n == sizes.setdefault(axis, n) for n, axis in zip(matrix.shape, axes, strict=True)
        )
        if not fits:
            needed = ", ".join(
                str(sizes.get(axis, {"n": "n"}.get(axis, f"n{axis}"))) for axis in axes
            )
            raise ValueError(f"{where}: {name} has shape {matrix.shape}, needed is ({needed})")
        if not isinstance(matrix, Tracer) and not np.isfinite(np.asarray(matrix)).all():
            raise ValueError(f"{where}: {name} has entries that are not finite")
        made.append(matrix.astype(dtype))
    return made


def check_symmetric(where: str, name: str, matrix: jax.Array) -> None:
    """Raises ValueError if a concrete matrix (..., n, n) is not symmetric."""
    if isinstance(matrix, Tracer):
        return
    values = np.asarray(matrix)
    skew = np.abs(values - np.swapaxes(values, -1, -2)).max(initial=0)
    if skew > _TOLERANCE * np.abs(values).max(initial=0):
        raise ValueError(
            f"{where}: {name} is not symmetric, by {skew:.3g}; give ({name} + {name}.T) / 2"
        )


def check_definite(where: str, name: str, matrix: jax.Array) -> None:
    """Raises ValueError if a concrete matrix (..., n, n) is not symmetric and positive definite."""
    check_symmetric(where, name, matrix)
    if isinstance(matrix, Tracer):
        return
    least = np.linalg.eigvalsh(np.asarray(matrix, float)).min(initial=np.inf)
    if not least > 0:
        raise ValueError(
            f"{where}: {name} has the eigenvalue {least:.3g} and must be positive definite, since "
            "commands that cost nothing have no limit"
        )
