"""Sums and the like of some axes, and products of matrices."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..jaxprs import nested
from ..program import NUMPY, Program, Unsupported
from .writing import PLAIN, RULES, Array, array_of, elementwise, kind_of_result

# Smaller products of matrices are scalars; rows of few columns fill no vectors.
_FEWEST_COLUMNS, _LEAST_PRODUCTS = 4, 250


def _of_nothing(name: str, kind: str) -> Any:
    """What changes no result of an operation."""
    if name in ("add", "mul"):
        return NUMPY[kind].type(name == "mul").item()
    most = name in ("min", "and")
    if kind == "b1":
        return most
    if kind[0] == "f":
        return math.inf if most else -math.inf
    if name in ("and", "or"):
        return int(~NUMPY[kind].type(0)) if most else 0
    info = np.iinfo(NUMPY[kind])
    return int(info.max if most else info.min)


def _reduction(name: str) -> Callable:
    def reduce(program: Program, equation: Any, x: Array) -> list[Array]:
        kind = kind_of_result(equation)
        axes = tuple(equation.params["axes"])
        kept = [i for i in range(x.ndim) if i not in axes]
        shape = tuple(x.shape[i] for i in kept)
        if not x.size:
            return [np.full(shape, program.constant(_of_nothing(name, kind), kind), np.int64)]
        rows = np.transpose(x, [*kept, *axes]).reshape((math.prod(shape), -1)).tolist()
        f = functools.partial(program.binary, name, kind=kind)
        return [array_of([functools.reduce(f, row) for row in rows], shape)]

    return reduce


def _cumulative(name: str) -> Callable:
    def apply(program: Program, equation: Any, x: Array) -> list[Array]:
        kind, axis = kind_of_result(equation), equation.params["axis"]
        backwards = slice(None, None, -1 if equation.params["reverse"] else 1)
        rows = np.moveaxis(x, axis, 0)[backwards]
        f = functools.partial(elementwise, lambda a, b: program.binary(name, a, b, kind))
        sums = np.stack(list(itertools.accumulate(rows, f))) if len(rows) else rows
        return [np.moveaxis(sums[backwards], 0, axis)]

    return apply


def _arg_best(comparison: str) -> Callable:
    def apply(program: Program, equation: Any, x: Array) -> list[Array]:
        kind = kind_of_result(equation)
        (axis,) = equation.params["axes"]
        if not x.size:
            return [np.delete(x, slice(None), axis).reshape(equation.outvars[0].aval.shape)]

        def best(entries: Any) -> int:
            first, *rest = entries.tolist()
            at = program.constant(0, kind)
            for k, y in enumerate(rest, 1):
                # What is not a number comes first, as in NumPy.
                better = program.compare(comparison, y, first)
                if program.types[y][0] == "f":
                    nan = program.compare("ne", y, y)
                    fine = program.compare("eq", first, first)
                    better = program.all_of(program.binary("or", better, nan, "b1"), fine)
                first = program.select(better, first, y, program.types[y])
                at = program.select(better, at, program.constant(k, kind), kind)
            return at

        return [np.apply_along_axis(best, axis, x)]

    return apply


def _dot(program: Program, equation: Any, x: Array, y: Array) -> list[Array]:
    kind = kind_of_result(equation)
    if any(program.types[a.flat[0]] != kind for a in (x, y) if a.size):
        raise Unsupported("a product of mixed types")
    if kind == "b1":
        return [_dot_of_truths(program, equation, x, y)]
    return [_product(program, equation, x, y, kind)]


def _product(program: Program, equation: Any, x: Array, y: Array, kind: str) -> Array:
    (cx, cy), (bx, by) = equation.params["dimension_numbers"]
    left, shape_x = _as_rows(x, bx, cx)
    right, shape_y = _as_rows(y, by, cy)
    entries = []
    for one, two in zip(left.tolist(), right.tolist(), strict=True):
        entries += product_of(program, one, two, kind)
    return array_of(entries, (*(x.shape[i] for i in bx), *shape_x, *shape_y))


def product_of(
    program: Program, rows: list[list[int]], columns: list[list[int]], kind: str
) -> list[int]:
    """The entries, row by row, of a product of matrices: one instruction where it is large."""
    m, summed, n = len(rows), len(rows[0]) if rows else 0, len(columns)
    if program.products and _may_be_large(m, summed, n) and _is_large(program, rows, columns):
        return _as_one(program, rows, columns)
    if program.products and _may_be_large(n, summed, m) and _is_large(program, rows, columns):
        # Of few columns, as those of a vector: the rows of the transpose fill vectors.
        return array_of(_as_one(program, columns, rows), (n, m)).T.ravel().tolist()
    return [_sum_of_products(program, x, y, kind) for x, y in itertools.product(rows, columns)]


def _as_one(program: Program, rows: list[list[int]], columns: list[list[int]]) -> list[int]:
    """The entries, row by row, of a product that is one instruction."""
    sizes = len(rows), len(rows[0]), len(columns)
    right = itertools.chain(*zip(*columns, strict=True))
    return program.product([*itertools.chain(*rows)], [*right], sizes)


def _dot_of_truths(program: Program, equation: Any, x: Array, y: Array) -> Array:
    """Whether any product holds, from a product of whole numbers; there may be many of these."""
    whole = [elementwise(lambda k: program.convert(k, "i32"), a) for a in (x, y)]
    counts = _product(program, equation, whole[0], whole[1], "i32")
    return elementwise(lambda k: program.convert(k, "b1"), counts)


def _sum_of_products(program: Program, row: list[int], column: list[int], kind: str) -> int:
    known, needed, lost, total = program.known, program.needed, 0, program.zero(kind)
    strict = program.strict and kind[0] == "f"
    for a, b in zip(row, column, strict=True):
        # Most products of large matrices fold to 0, from the structure of machines.
        if not strict and (known[a] == 0 or known[b] == 0):
            lost |= needed(a) | needed(b)
        else:
            total = program.add(total, program.mul(a, b, kind), kind)
    return program.showing(total, lost) if lost else total


def _sizes(equation: Any) -> tuple[int, int, int, int]:
    """The sizes of a product of matrices: batch, rows, summed, columns."""
    x, y = (v.aval.shape for v in equation.invars)
    (cx, cy), (bx, by) = equation.params["dimension_numbers"]
    batch, summed = (math.prod(x[i] for i in axes) for axes in (bx, cx))
    m, n = (
        math.prod(size for i, size in enumerate(shape) if i not in (*b, *c))
        for shape, b, c in ((x, bx, cx), (y, by, cy))
    )
    return batch, m, summed, n


def work(jaxpr: Any) -> tuple[int, int]:
    """The multiplications in large products of matrices, and how many other operations there are.

    Zeros and what only moves entries about are counted with the others.
    """
    products = others = 0
    for equation in jaxpr.eqns:
        inner = [work(x.jaxpr) for x in nested(equation.params)]
        products += sum(p for p, _ in inner)
        others += sum(o for _, o in inner)
        if equation.primitive.name == "dot_general":
            batch, m, summed, n = _sizes(equation)
            if _may_be_large(m, summed, n):
                products += batch * m * summed * n
                continue
        others += sum(math.prod(v.aval.shape) for v in equation.outvars)
    return products, others


def _may_be_large(m: int, summed: int, n: int) -> bool:
    return n >= _FEWEST_COLUMNS and m * summed * n >= _LEAST_PRODUCTS


def _is_large(program: Program, rows: list[list[int]], columns: list[list[int]]) -> bool:
    """Whether a product gains from loops over vectors, which take zeros with them."""
    if any(map(program.is_linear, itertools.chain(*rows, *columns))):
        return False
    # Of each summed place, how many factors there are.
    pairs = zip(*(_factors(program, x) for x in (rows, columns)), strict=True)
    left = sum(m * n for m, n in pairs)
    whole = len(rows) * len(rows[0]) * len(columns)
    return left >= max(_LEAST_PRODUCTS, whole / 2)


def _factors(program: Program, rows: list[list[int]]) -> list[int]:
    return [sum(program.known[x] is None for x in column) for column in zip(*rows, strict=True)]


def _as_rows(x: Array, batch: Sequence[int], summed: Sequence[int]) -> tuple[Array, tuple]:
    """An array as (batch, rows, summed), and the shape of its rows."""
    rest = [i for i in range(x.ndim) if i not in (*summed, *batch)]
    sizes = [math.prod(x.shape[i] for i in axes) for axes in (batch, rest, summed)]
    ordered = np.transpose(x, (*batch, *rest, *summed))
    return ordered.reshape(sizes), tuple(x.shape[i] for i in rest)


RULES |= {
    "argmax": _arg_best("gt"),
    "argmin": _arg_best("lt"),
    "cummax": _cumulative("max"),
    "cummin": _cumulative("min"),
    "cumprod": _cumulative("mul"),
    "cumsum": _cumulative("add"),
    "dot_general": _dot,
    "reduce_and": _reduction("and"),
    "reduce_max": _reduction("max"),
    "reduce_min": _reduction("min"),
    "reduce_or": _reduction("or"),
    "reduce_prod": _reduction("mul"),
    "reduce_sum": _reduction("add"),
}
PLAIN |= {"cumsum", "dot_general", "reduce_and", "reduce_or", "reduce_sum"}
