"""Operations that are better no part of a program, because of the size of their arrays.

A program knows scalars only. In it a weight matrix of a neural network is written out entry by
entry, and in reverse mode every environment of a batch sums its own cotangents of all of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import numpy as np
from jax.core import Tracer

from .jaxprs import is_literal, nested, variables
from .private import ClosedJaxpr
from .rules import LARGEST, MOST_PLACES

# Weights with more entries in all, each counted as often as it is used, are no part of a program.
# Measured on an arm under a network, in batches: with layers of 32 x 32 a gradient of semi-implicit
# Euler is faster as one program, with 48 x 48 it is not.
_MOST = 1500
# Where there are so many, smaller matrices are none either, down to this size.
_FEWEST = 256


class Kind(IntEnum):
    """What a value is: known at trace time, made of small or of large arrays that stay, or varying.

    To stay is not to change from turn to turn of a loop. What is made of several is the last.
    """

    KNOWN = 0
    FEW = 1
    WEIGHTS = 2
    VARYING = 3


def has_many(closed: ClosedJaxpr, arguments: Sequence[Kind]) -> bool:
    """Whether a function of such arguments is better no program."""
    return _entries(closed, arguments) > _MOST


def kinds_of(closed: ClosedJaxpr, arguments: Sequence[Kind]) -> dict[Any, Kind]:
    """What all variables of a function of such arguments are."""
    jaxpr = closed.jaxpr
    kinds = dict(zip(jaxpr.invars, arguments, strict=True))
    for v, c in zip(jaxpr.constvars, closed.consts, strict=True):
        # Known zeros are left out of programs.
        known = not isinstance(c, Tracer) and np.count_nonzero(c) <= _MOST
        kinds[v] = Kind.KNOWN if known else of_size(v.aval.size)
    for e in jaxpr.eqns:
        kind = max((kinds[v] for v in variables(e.invars)), default=Kind.KNOWN)
        kinds.update(dict.fromkeys(e.outvars, kind))
    return kinds


def of_size(entries: int) -> Kind:
    """What an array is that stays."""
    return Kind.WEIGHTS if entries > _FEWEST else Kind.FEW


def is_kernel(equation: Any) -> bool:
    """Whether this is a native call of a function, its arguments and results with a leading one."""
    if equation.primitive.name != "native":
        return False
    loop, batch = equation.params["how"], equation.params["batch"]
    return batch is None and loop.length == 1 and loop.consts == loop.carry == 0


def functions(equation: Any) -> list[ClosedJaxpr]:
    """The functions in an operation."""
    if is_kernel(equation):
        return [equation.params["how"].turn.closed()]
    return nested(equation.params)


def given_inside(inner: ClosedJaxpr, equation: Any, kinds: dict[Any, Kind]) -> list[Kind]:
    """What the arguments of a function in an operation are, the last ones of the operation."""
    outer = [Kind.KNOWN if is_literal(v) else kinds[v] for v in equation.invars]
    n = len(inner.jaxpr.invars)
    return [*[Kind.VARYING] * (n - len(outer)), *outer[max(0, len(outer) - n) :]]


def large(equations: Sequence[Any], kinds: dict[Any, Kind]) -> list[bool]:
    """Which operations are large, or share large arrays with such."""
    is_one = [is_large(e, kinds) for e in equations]

    def arrays(equation: Any) -> set[Any]:
        used = (*variables(equation.invars), *equation.outvars)
        return {v for v in used if _size(v) > (_FEWEST if kinds[v] == Kind.WEIGHTS else _MOST)}

    while True:
        shared = {v for e, x in zip(equations, is_one, strict=True) if x for v in arrays(e)}
        more = [x or bool(shared & arrays(e)) for e, x in zip(equations, is_one, strict=True)]
        if more == is_one:
            return is_one
        is_one = more


def is_large(equation: Any, kinds: dict[Any, Kind]) -> bool:
    """Whether an operation is, or has such operations inside."""
    return _large_entries(equation, kinds) > 0


def _entries(closed: ClosedJaxpr, arguments: Sequence[Kind]) -> int:
    """The entries of all that is large in a function."""
    kinds = kinds_of(closed, arguments)
    return sum(_large_entries(e, kinds) for e in closed.jaxpr.eqns)


def _large_entries(equation: Any, kinds: dict[Any, Kind]) -> int:
    """The entries of the array that makes an operation large; 0 where it is not."""
    name, read = equation.primitive.name, equation.invars
    largest = max(map(_size, (*read, *equation.outvars)), default=0)
    if largest > LARGEST:
        return largest
    if name == "dot_general":
        return _matrix_entries(equation, kinds)
    if name in ("dynamic_slice", "gather"):
        unknown = any(kinds[v] != Kind.KNOWN for v in variables(read[1:]))
        sizes = zip(read[0].aval.shape, equation.params["slice_sizes"], strict=True)
        places = max((n - size + 1 for n, size in sizes), default=1)
        return largest if unknown and places > MOST_PLACES else 0
    inside = functions(equation)
    entries = sum(_entries(inner, given_inside(inner, equation, kinds)) for inner in inside)
    # In a program such a loop is written out.
    return entries * equation.params["length"] if name == "scan" else entries


def _matrix_entries(equation: Any, kinds: dict[Any, Kind]) -> int:
    """The entries of the weights in a product, or of what it makes of two vectors."""
    (contracted, _), batches = equation.params["dimension_numbers"]
    made = _size(equation.outvars[0])
    if not contracted and made > _MOST:
        return made
    largest = 0
    for v, axes in zip(equation.invars, batches, strict=True):
        matrices = math.prod(v.aval.shape[i] for i in axes)
        if not is_literal(v) and kinds[v] == Kind.WEIGHTS and _size(v) > _FEWEST * matrices:
            largest = max(largest, _size(v))
    return largest


def _size(v: Any) -> int:
    return getattr(v.aval, "size", 0)
