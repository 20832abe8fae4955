"""Frozen modules: their numbers are compile-time constants.

A frozen module is an instance of the original class, with its fields and methods, and a pytree
without leaves. It is hashed and compared by its numbers, so jax compiles a function once for all
equal ones.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from typing import Any, TypeVar, cast

import equinox as eqx
import jax
import numpy as np
from jax.core import Tracer

Module = TypeVar("Module", bound=eqx.Module)


class _Constants:
    """A module that compares equal to those with the same structure and bitwise equal numbers."""

    def __init__(self, module: eqx.Module):
        leaves, structure = jax.tree.flatten(module)
        numbers = [np.asarray(a) for a in leaves]
        self.module = module
        self._content = structure, tuple((a.dtype.str, a.shape, a.tobytes()) for a in numbers)
        self._hash = hash(self._content)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        same = self is other
        return same or (isinstance(other, _Constants) and self._content == other._content)


class _FrozenType(type(eqx.Module)):
    """The metaclass of frozen modules, which share the fields of the original class."""

    def __call__(cls, *args: Any, **fields: Any) -> Any:
        with jax.ensure_compile_time_eval():
            return frozen(cls.__mro__[1](*args, **fields))


@functools.cache
def _frozen_class(cls: type[Module]) -> type[Module]:
    """The class of the frozen modules of a class."""

    class Frozen(cls, metaclass=_FrozenType):
        # Instances do not store the fields, so that these are not part of the pytree.
        _constants: _Constants = eqx.field(static=True, init=False, repr=False)

        def __hash__(self) -> int:
            return hash(self._constants)

        def __reduce__(self) -> tuple:
            return frozen, (self._constants.module,)

    for field in dataclasses.fields(cls):
        value = property(operator.attrgetter(f"_constants.module.{field.name}"))
        setattr(Frozen, field.name, value)
    Frozen.__name__ = Frozen.__qualname__ = f"Frozen{cls.__name__}"
    return cast(type[Module], Frozen)


def frozen(module: Module) -> Module:
    """The module with its numbers as compile-time constants; a frozen one is returned as it is.

    `dataclasses.replace` of a frozen module is frozen as well. Raises TypeError, naming the number,
    if one is traced.
    """
    if is_frozen(module):
        return module
    for path, value in jax.tree_util.tree_leaves_with_path(module):
        if isinstance(value, Tracer):
            name = jax.tree_util.keystr(path).lstrip(".")
            raise TypeError(
                f"{name} is traced, and the numbers of a frozen {type(module).__name__} are "
                "constants; freeze or change it before jax.jit, jax.grad and jax.vmap, or use the "
                "one before frozen() to differentiate by a number or to batch it"
            )
    made = object.__new__(_frozen_class(type(module)))
    object.__setattr__(made, "_constants", _Constants(module))
    return cast(Module, made)


def is_frozen(module: eqx.Module) -> bool:
    """Whether the numbers of a module are compile-time constants."""
    return isinstance(type(module), _FrozenType)


def unfreeze(module: Module) -> Module:
    """The module with its numbers as leaves again; one that is not frozen is returned as it is."""
    return module._constants.module if is_frozen(module) else module  # pyright: ignore
