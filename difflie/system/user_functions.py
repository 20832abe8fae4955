"""How functions that users write are called: laws of forces, controls, events, quantities.

Compiled programs hold what such a function closes over. `watched` ones are compiled anew when that
changes; see `native/closures.py`. What laws remember from step to step is carried in types that
stay the same.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ..native import Watched, as_written, code_of, is_own
from ..native import watched as watched
from .system import System

# What Python's own control flow, numpy and math raise where they get traced numbers.
_TRACED = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)


def called(f: Callable[..., Any], *args: Any, names: str = "") -> Any:
    """f(*args), with numbers as jax has them: 0 times infinity is no number, and 0 - 0 is not -0.

    In algorithms on a machine the zeros of its structure are left out instead. A function of this
    package keeps that. names: of the arguments, for messages, such as "control(t, q, v)".

    Raises TypeError, with the function's name and what to do, where it takes another number of
    arguments, and where it does with traced numbers what needs concrete ones.
    """
    try:
        return as_written(f, *args)
    except _TRACED as error:
        if is_own(f):
            raise
        said = str(error).split("\n", 1)[0].rstrip(".")
        raise TypeError(
            f"the function {_name(f)} is compiled, and what it does needs concrete numbers "
            f"({said}); use jax.numpy in place of numpy and math, and jnp.where in place of if"
        ) from error
    except TypeError:
        if is_own(f) or (taken := _other_signature(f, args)) is None:
            raise
        given = f"as {names}" if names else f"with {len(args)} arguments"
        raise TypeError(f"the function {_name(f)} takes {taken}; it is called {given}") from None


def _written(f: Any) -> Any:
    """What the user wrote, without what this package put around it."""
    if isinstance(f, jax.tree_util.Partial) and not f.args and not f.keywords:
        f = f.func
    return f.function if isinstance(f, Watched) else f


def _name(f: Any) -> str:
    f = _written(f)
    f = f.func if isinstance(f, functools.partial) else f
    return getattr(f, "__qualname__", type(f).__qualname__).rpartition("<locals>.")[2]


def _other_signature(f: Any, args: tuple[Any, ...]) -> str | None:
    """The parameters of a function that cannot be called with so many arguments; else None."""
    try:
        signature = inspect.signature(_written(f))
    except (TypeError, ValueError):
        return None
    try:
        signature.bind(*args)
    except TypeError:
        return str(signature.replace(return_annotation=inspect.Signature.empty))
    return None


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
