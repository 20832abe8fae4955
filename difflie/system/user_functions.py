"""How functions that users write are called: laws of forces, controls, events, quantities.

Compiled programs hold what such a function closes over. `watched` ones are compiled anew when that
changes; see `native/closures.py`. What laws remember from step to step is carried in types that
stay the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ..native import as_written, code_of
from ..native import watched as watched
from .system import System


def called(f: Callable[..., Any], *args: Any) -> Any:
    """f(*args), with numbers as jax has them: 0 times infinity is no number, and 0 - 0 is not -0.

    In algorithms on a machine the zeros of its structure are left out instead. A function of this
    package keeps that.
    """
    return as_written(f, *args)


def users_code(system: System, *others: Any) -> Any:
    """The methods of users' classes among the parts of a system and others, to be compared by.

    As a static argument of what is compiled; None where there are none.
    """
    return code_of(*system.couplings, *system.actuators, *system.constraints, *others)


def no_leaf(function: Any) -> Any:
    """A function as a pytree without leaves; a module of Equinox as it is."""
    pytree = isinstance(function, eqx.Module | jax.tree_util.Partial)
    made = function if pytree else watched(function)
    # A function of a package, which is not watched, would be a leaf.
    return jax.tree_util.Partial(made) if made is function and not pytree else made


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
