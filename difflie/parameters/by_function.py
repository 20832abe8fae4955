"""Numbers that are no field of a system: a function of the user writes them into it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax.tree_util import keystr, tree_leaves_with_path

from ..system.fields import Number
from ..system.system import System
from ..system.user_functions import called, no_leaf
from .block import Block, numbers, with_prior
from .declaration import Parameter, transform_of


class FunctionBlock(Block):
    """One value, of any shape, that of(system, value) writes into a system."""

    of: Callable[..., System]

    def read(self, system: System) -> jax.Array:
        """The value (1, *shape) at the start: a system does not have it."""
        return self.starts

    def written(self, system: System, values: jax.Array) -> System:
        return called(self.of, system, values[0])

    def compare(self, ours: System, theirs: System) -> None:
        """Raises ValueError: no system says what was written into it."""
        raise ValueError(
            f"{ours.name}: {self.paths[0]!r} is written by a function, so that no system tells "
            "it; take x_at(values), or declare no such number"
        )


def function_block(system: System, p: Parameter) -> Block:
    """The `FunctionBlock` of a declaration with a function.

    Raises ValueError where its start is missing, for a tie or a fixed one, for an unsuitable
    transform, bounds or prior, and for a function that fails, or does not return the system with
    other numbers.
    """
    where = f"{system.name}: {p.label!r}"
    if len(p.patterns) != 1 or p.start is None:
        raise ValueError(f"{where} is written by a function; give it one name, and a `start`")
    if p.tied or p.fixed:
        raise ValueError(
            f"{where} is written by a function, which may write it to many places, or write "
            "constants; leave out `tied` and `fixed`"
        )
    start = numbers(system, p, "start", p.start, np.shape(p.start))
    transform = transform_of(where, p, p.label, Number(), start.shape)
    of: Any = no_leaf(p.of)
    name = getattr(p.of, "__name__", repr(p.of))
    _check_function(f"{where}: {name}(system, value)", of, system, start)
    names = transform.labels(p.label, start.shape)
    units = transform.units(p.unit, start.shape)
    block = FunctionBlock(transform, start[None], None, (), names, units, (p.label,), False, (), of)
    return with_prior(system, p, block)


def _check_function(called: str, of: Any, system: System, start: jax.Array) -> None:
    """Raises ValueError, which begins with the call, unless it gives the system other numbers."""
    try:
        made = eqx.filter_eval_shape(of, system, start)
    except Exception as error:
        raise ValueError(
            f"{called} fails at the start: {type(error).__name__}: {error}; correct the function"
        ) from error
    if not isinstance(made, System) or jax.tree.structure(made) != jax.tree.structure(system):
        raise ValueError(
            f"{called} must return the system with other numbers and no other parts, as "
            f"system.replace(mass=...) does; it returns {type(made).__name__}"
        )
    before, after = tree_leaves_with_path(system), tree_leaves_with_path(made)
    for (keys, old), (_, new) in zip(before, after, strict=True):
        if (old.shape, old.dtype) != (new.shape, new.dtype):
            raise ValueError(
                f"{called} makes {keystr(keys).lstrip('.')} {new.dtype} of shape {new.shape}; keep "
                f"{old.dtype} and {old.shape}"
            )
