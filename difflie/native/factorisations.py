"""Factorisations of small matrices, triangular systems and sorting, scalar by scalar."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .program import NUMPY, Program, Unsupported

Array = np.ndarray


class Numbers:
    """Arithmetic on the scalars of one type of a program."""

    def __init__(self, program: Program, kind: str):
        self.program, self.kind = program, kind
        self.zero = program.constant(0.0 if kind[0] == "f" else 0, kind)
        self.one = program.constant(1.0 if kind[0] == "f" else 1, kind)

    def mul(self, x: int, y: int) -> int:
        return self.program.mul(x, y, self.kind)

    def div(self, x: int, y: int) -> int:
        return self.program.div(x, y, self.kind)

    def less(self, x: int, products: Sequence[tuple[int, int]]) -> int:
        """x without the sum of products."""
        for a, b in products:
            x = self.program.sub(x, self.mul(a, b), self.kind)
        return x

    def select(self, which: int, no: int, yes: int) -> int:
        return self.program.select(which, no, yes, self.kind)


def _matrices(x: Array) -> list[list[list[int]]]:
    return x.reshape((math.prod(x.shape[:-2]), *x.shape[-2:])).tolist()


def _stacked(found: Any, shape: tuple[int, ...]) -> Array:
    return np.array(found, np.int64).reshape(shape)


def cholesky(program: Program, kind: str, x: Array) -> Array:
    """The lower triangle L with L L^T = x, not a number where x is not positive definite."""
    numbers, n = Numbers(program, kind), x.shape[-1]
    factors = []
    for a in _matrices(x):
        lower = [[numbers.zero] * n for _ in range(n)]
        fine = program.constant(True, "b1")
        for j in range(n):
            for i in range(j, n):
                pairs = list(zip(lower[i][:j], lower[j][:j], strict=True))
                rest = numbers.less(a[i][j], pairs)
                if i == j:
                    positive = program.compare("gt", rest, numbers.zero)
                    fine = program.binary("and", fine, positive, "b1")
                    lower[j][j] = program.unary("sqrt", rest, kind)
                else:
                    lower[i][j] = numbers.div(rest, lower[j][j])
        nan = program.constant(math.nan, kind)
        for i in range(n):
            lower[i][: i + 1] = [numbers.select(fine, nan, y) for y in lower[i][: i + 1]]
        factors.append(lower)
    return _stacked(factors, x.shape)


def lu(program: Program, kind: str, x: Array) -> tuple[Array, Array, Array]:
    """L and U in one matrix, the pivots, and the permutation: x[permutation] = L U."""
    numbers, (rows, columns) = Numbers(program, kind), x.shape[-2:]
    count = min(rows, columns)
    factors, pivots, permutations = [], [], []
    for a in _matrices(x):
        order = [program.constant(i, "i32") for i in range(rows)]
        chosen = []
        for j in range(count):
            best = program.unary("abs", a[j][j], kind)
            pivot = program.constant(j, "i32")
            for i in range(j + 1, rows):
                size = program.unary("abs", a[i][j], kind)
                larger = program.compare("gt", size, best)
                best = numbers.select(larger, best, size)
                here = program.constant(i, "i32")
                pivot = program.select(larger, pivot, here, "i32")
            chosen.append(pivot)
            for i in range(j + 1, rows):
                swap = program.compare("eq", pivot, program.constant(i, "i32"))
                for k in range(columns):
                    one, two = a[j][k], a[i][k]
                    a[j][k] = numbers.select(swap, one, two)
                    a[i][k] = numbers.select(swap, two, one)
                one, two = order[j], order[i]
                order[j] = program.select(swap, one, two, "i32")
                order[i] = program.select(swap, two, one, "i32")
            # A column of zeros stays, instead of what is not a number.
            nothing = program.compare("eq", a[j][j], numbers.zero)
            divisor = numbers.select(nothing, a[j][j], numbers.one)
            for i in range(j + 1, rows):
                a[i][j] = numbers.div(a[i][j], divisor)
                for k in range(j + 1, columns):
                    a[i][k] = numbers.less(a[i][k], [(a[i][j], a[j][k])])
        factors.append(a)
        pivots.append(chosen)
        permutations.append(order)
    lead = x.shape[:-2]
    return (
        _stacked(factors, x.shape),
        _stacked(pivots, (*lead, count)),
        _stacked(permutations, (*lead, rows)),
    )


def permutation(program: Program, pivots: Array, size: int) -> Array:
    """The permutation that exchanges of rows make."""
    found = []
    for row in pivots.reshape((-1, pivots.shape[-1])).tolist():
        order = [program.constant(i, "i32") for i in range(size)]
        for j, pivot in enumerate(row):
            for i in range(j + 1, size):
                swap = program.compare("eq", pivot, program.constant(i, program.types[pivot]))
                one, two = order[j], order[i]
                order[j] = program.select(swap, one, two, "i32")
                order[i] = program.select(swap, two, one, "i32")
        found.append(order)
    return _stacked(found, (*pivots.shape[:-1], size))


def triangular_solve(program: Program, kind: str, params: dict, a: Array, b: Array) -> Array:
    """x with a x = b, or x a = b, for triangular a."""
    if params["conjugate_a"] and NUMPY[kind].kind == "c":
        raise Unsupported("complex numbers")
    numbers, n = Numbers(program, kind), a.shape[-1]
    lower, across = params["lower"], bool(params["transpose_a"])
    # x a = b is a^T x^T = b^T.
    if not params["left_side"]:
        b, across = np.swapaxes(b, -1, -2), not across
    if across:
        a, lower = np.swapaxes(a, -1, -2), not lower
    order = range(n) if lower else range(n - 1, -1, -1)
    solved = []
    for matrix, right in zip(_matrices(a), _matrices(b), strict=True):
        x: list[list[int]] = [[] for _ in range(n)]
        for i in order:
            before = range(i) if lower else range(i + 1, n)
            for k in range(b.shape[-1]):
                rest = numbers.less(right[i][k], [(matrix[i][j], x[j][k]) for j in before])
                x[i].append(rest if params["unit_diagonal"] else numbers.div(rest, matrix[i][i]))
        solved.append(x)
    found = _stacked(solved, b.shape)
    return found if params["left_side"] else np.swapaxes(found, -1, -2)


# Longer rows take too many comparisons.
_LONGEST_SORTED = 40


def sort(program: Program, params: dict, *operands: Array) -> list[Array]:
    """Rows in ascending order of their first arrays, equal ones in their order."""
    axis, keys = params["dimension"], params["num_keys"]
    moved = [np.moveaxis(x, axis, -1) for x in operands]
    n = moved[0].shape[-1]
    if n > _LONGEST_SORTED:
        raise Unsupported(f"sorting more than {_LONGEST_SORTED} numbers")
    rows = [x.reshape((-1, n)).tolist() for x in moved]
    for row in zip(*rows, strict=True):
        for last in range(n - 1, 0, -1):
            for i in range(last):
                swap = _behind(program, [x[i] for x in row[:keys]], [x[i + 1] for x in row[:keys]])
                for x in row:
                    one, two = x[i], x[i + 1]
                    kind = program.types[one]
                    x[i] = program.select(swap, one, two, kind)
                    x[i + 1] = program.select(swap, two, one, kind)
    sorted_rows = [np.array(r, np.int64).reshape(x.shape) for r, x in zip(rows, moved, strict=True)]
    return [np.moveaxis(x, -1, axis) for x in sorted_rows]


def _behind(program: Program, xs: Sequence[int], ys: Sequence[int]) -> int:
    """Whether the keys xs come after ys; what is not a number comes last."""
    behind = program.constant(False, "b1")
    for x, y in reversed(list(zip(xs, ys, strict=True))):
        after, same = program.compare("gt", x, y), program.compare("eq", x, y)
        if program.types[x][0] == "f":
            no_x, no_y = program.compare("ne", x, x), program.compare("ne", y, y)
            number = program.unary("not", no_y, "b1")
            after = program.binary("or", after, program.binary("and", no_x, number, "b1"), "b1")
            same = program.binary("or", same, program.binary("and", no_x, no_y, "b1"), "b1")
        behind = program.binary("or", after, program.binary("and", same, behind, "b1"), "b1")
    return behind
