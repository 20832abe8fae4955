"""The memories that users' laws keep from step to step: their types, and how they are carried."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

# An update may widen what another one gives it; types widen so many times at most.
_MOST = 4


def settled(memory: Any, update: Callable[[Any], Any], dtype: Any) -> Any:
    """The memory before the first step, in the types that updates give it.

    An integral that starts from the whole number 0 is a real number after the first step, and a
    real number from the start. dtype: the precision of floating-point numbers. A memory that an
    update makes something else of, in its structure, is left as it is.
    """
    memory = jax.tree.map(lambda a: _in(jnp.asarray(a), jnp.asarray(a).dtype, dtype), memory)
    for _ in range(_MOST):
        after = jax.eval_shape(update, memory)
        if jax.tree.structure(after) != jax.tree.structure(memory):
            return memory
        wide = jax.tree.map(lambda a, b: _in(a, _common(a.dtype, b.dtype), dtype), memory, after)
        if _types(wide) == _types(memory):
            return memory
        memory = wide
    return memory


def carried(new: Any, old: Any) -> Any:
    """A memory after a step in the types of that before it, which are `settled`."""
    return jax.tree.map(lambda a, b: _in(jnp.asarray(a), b.dtype, b.dtype), new, old)


def _types(memory: Any) -> list[Any]:
    return [a.dtype for a in jax.tree.leaves(memory)]


def _common(one: Any, other: Any) -> Any:
    return one if one == other else jnp.promote_types(one, other)


def _in(a: jax.Array, kind: Any, dtype: Any) -> jax.Array:
    """The array in a type; in the precision of `dtype` if that is floating point."""
    if jnp.issubdtype(kind, jnp.floating):
        kind = dtype
    elif jnp.issubdtype(kind, jnp.complexfloating):
        kind = jnp.promote_types(dtype, jnp.complex64)
    return a if a.dtype == kind else a.astype(kind)
