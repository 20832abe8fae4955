"""The program of a jaxpr: arrays are arrays of the numbers of their entries.

What only moves entries about (slices, transpositions, gathers at known places) costs nothing at run
time; loops over known numbers of iterations are written out, `while` becomes a loop of the program.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..private import Literal
from ..program import TYPES, Program, Unsupported
from ..strict_user_code import is_strict
from .parameters import check

# Arrays with more entries are no part of a program.
LARGEST = 20_000

Array = np.ndarray

# By the name of an operation of jax: its results, from the program that is being written, the
# equation, and its operands.
RULES: dict[str, Callable[..., Sequence[Array]]] = {}
# Those that go entry by entry: the number of an entry of the result, from the program, the type of
# the result, the parameters of the equation, and the numbers of entries.
SCALAR_RULES: dict[str, Callable[..., int]] = {}

_KINDS = {np.dtype(name): kind for name, kind in TYPES.items()}


def kind_of(dtype: Any) -> str:
    """The type of the scalars of an array."""
    kind = _KINDS.get(dtype)
    if kind is None:
        raise Unsupported(f"the type {dtype}")
    return kind


def kind_of_result(equation: Any) -> str:
    """The type of the scalars of the first result."""
    return kind_of(equation.outvars[0].aval.dtype)


def array_of(entries: Any, shape: Sequence[int]) -> Array:
    """An array of the numbers of scalars."""
    return np.array(entries, np.int64).reshape(shape)


def like(entries: Sequence[int], arrays: Sequence[Any]) -> list[Array]:
    """The entries of several arrays one after another, in shapes like theirs."""
    ends = np.cumsum([x.size for x in arrays], dtype=np.int64)[:-1]
    parts = np.split(array_of(entries, (-1,)), ends) if len(arrays) else []
    return [part.reshape(x.shape) for part, x in zip(parts, arrays, strict=True)]


def flat(arrays: Sequence[Array]) -> list[int]:
    """The entries of several arrays one after another."""
    return [k for x in arrays for k in x.ravel().tolist()]


def _checked(size: int) -> None:
    if size > LARGEST:
        raise Unsupported(f"an array of more than {LARGEST} entries")


def arguments(program: Program, avals: Sequence[Any]) -> list[Array]:
    """New arguments of these shapes and types."""
    arrays = []
    for aval in avals:
        kind = kind_of(aval.dtype)
        _checked(aval.size)
        arrays.append(array_of([program.argument(kind) for _ in range(aval.size)], aval.shape))
    return arrays


def constants(program: Program, a: Any) -> Array:
    """A known array."""
    a = np.asarray(a)
    kind = kind_of(a.dtype)
    _checked(a.size)
    return array_of([program.constant(x, kind) for x in a.ravel().tolist()], a.shape)


def elementwise(f: Callable[..., int], *operands: Array) -> Array:
    """f, entry by entry."""
    shape = operands[0].shape
    if any(x.shape != shape for x in operands):
        operands = np.broadcast_arrays(*operands)  # pyright: ignore
        shape = operands[0].shape
    return array_of(list(map(f, *(x.ravel().tolist() for x in operands))), shape)


def write_closed(program: Program, closed: Any, operands: Sequence[Array]) -> list[Array]:
    """Appends what a closed jaxpr computes; operands and results are scalars' numbers."""
    jaxpr = closed.jaxpr
    values: dict[Any, Array | int] = {}
    for v, c in zip(jaxpr.constvars, closed.consts, strict=True):
        values[v] = constants(program, c)
    values.update(zip(jaxpr.invars, operands, strict=True))

    def read(v: Any) -> Array:
        if v.__class__ is Literal:
            # Without 64 bits a number of Python is shorter than numpy makes it.
            return constants(program, np.asarray(v.val, v.aval.dtype))
        x = values[v]
        return np.array(x, np.int64) if x.__class__ is int else x  # pyright: ignore

    def scalar(v: Any) -> int:
        if v.__class__ is Literal:
            return program.constant(np.asarray(v.val, v.aval.dtype).item(), kind_of(v.aval.dtype))
        x = values[v]
        return x if x.__class__ is int else x.item()  # pyright: ignore

    outside = program.strict
    for equation in jaxpr.eqns:
        name, outvars = equation.primitive.name, equation.outvars
        program.strict = is_strict(equation, outside)
        if equation.params:
            check(name, equation.params)
        entry = SCALAR_RULES.get(name)
        if entry is not None:
            (v,) = outvars
            f = functools.partial(entry, program, kind_of(v.aval.dtype), equation.params)
            if not v.aval.shape:
                # Nine out of ten operations, which need no arrays.
                values[v] = f(*map(scalar, equation.invars))
                continue
            results = [elementwise(f, *map(read, equation.invars))]
        elif name in RULES:
            results = RULES[name](program, equation, *map(read, equation.invars))
        else:
            raise Unsupported(f"the operation {name}")
        for v, result in zip(outvars, results, strict=True):
            _checked(result.size)
            shape = v.aval.shape
            values[v] = result if result.shape == shape else np.broadcast_to(result, shape)
    program.strict = outside
    return [read(v) for v in jaxpr.outvars]
