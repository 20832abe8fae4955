"""Residuals and their derivatives by all unknowns, which minimisers and standard errors share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree


@eqx.filter_jit
def residuals_and_jacobian(
    residual: Callable, unknown: Any, args: Any
) -> tuple[jax.Array, jax.Array]:
    """residual(unknown, args) (k,) and its derivatives (k, n) in forward mode.

    unknown: a pytree of n numbers.
    """
    flat, whole = ravel_pytree(unknown)
    r, slopes = jax.linearize(lambda flat: residual(whole(flat), args), flat)
    return r, jax.vmap(slopes, out_axes=-1)(jnp.eye(len(flat), dtype=flat.dtype))
