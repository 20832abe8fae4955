"""Factorisations of small matrices, triangular systems and sorting, scalar by scalar."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..program import Program, Unsupported
from .writing import RULES, Array, array_of, kind_of_result

# Longer rows take too many comparisons.
_LONGEST_SORTED = 40


def _matrices(x: Array) -> list[list[list[int]]]:
    return x.reshape((math.prod(x.shape[:-2]), *x.shape[-2:])).tolist()


def _less(program: Program, kind: str, x: int, products: Sequence[tuple[int, int]]) -> int:
    """x without the sum of products, most of which are 0 from the structure of machines."""
    known, lost, strict = program.known, 0, program.strict
    for a, b in products:
        if not strict and (known[a] == 0 or known[b] == 0):
            lost |= program.needed(a) | program.needed(b)
        else:
            x = program.sub(x, program.mul(a, b, kind), kind)
    return program.showing(x, lost) if lost else x


def _cholesky(program: Program, equation: Any, x: Array) -> list[Array]:
    """The lower triangle L with L L^T = x, not a number where x is not positive definite.

    Zeros by the structure of x stay zeros, also then: systems with L fold them away, and their
    solutions are not a number by the diagonal.
    """
    kind, n = kind_of_result(equation), x.shape[-1]
    zero, nan = program.zero(kind), program.constant(math.nan, kind)
    factors = []
    for a in _matrices(x):
        lower = [[zero] * n for _ in range(n)]
        fine = program.constant(True, "b1")
        for j in range(n):
            for i in range(j, n):
                pairs = list(zip(lower[i][:j], lower[j][:j], strict=True))
                rest = _less(program, kind, a[i][j], pairs)
                if i == j:
                    fine = program.all_of(fine, program.compare("gt", rest, zero))
                    lower[j][j] = program.unary("sqrt", rest, kind)
                else:
                    lower[i][j] = program.div(rest, lower[j][j], kind)
        for row in lower:
            for j, y in enumerate(row):
                if program.known[y] != 0:
                    row[j] = program.select(fine, nan, y, kind)
        factors.append(lower)
    return [array_of(factors, x.shape)]


def _exchange(program: Program, which: int, x: list[int], i: int, j: int) -> None:
    """Exchanges two entries where a truth holds."""
    x[i], x[j] = program.swap(which, x[i], x[j])


def _lu(program: Program, equation: Any, x: Array) -> list[Array]:
    """L and U in one matrix, the pivots, and the permutation: x[permutation] = L U."""
    kind, (rows, columns) = kind_of_result(equation), x.shape[-2:]
    factors, pivots, permutations = _matrices(x), [], []
    for a in factors:
        order = [program.constant(i, "i32") for i in range(rows)]
        pivots.append([])
        for j in range(min(rows, columns)):
            best, pivot = program.unary("abs", a[j][j], kind), program.constant(j, "i32")
            for i in range(j + 1, rows):
                size = program.unary("abs", a[i][j], kind)
                larger = program.compare("gt", size, best)
                best = program.select(larger, best, size, kind)
                pivot = program.select(larger, pivot, program.constant(i, "i32"), "i32")
            pivots[-1].append(pivot)
            for i in range(j + 1, rows):
                swap = program.compare("eq", pivot, program.constant(i, "i32"))
                for k in range(columns):
                    a[j][k], a[i][k] = program.swap(swap, a[j][k], a[i][k])
                _exchange(program, swap, order, j, i)
            # A column of zeros stays, instead of what is not a number.
            nothing = program.compare("eq", a[j][j], program.zero(kind))
            divisor = program.select(nothing, a[j][j], program.one(kind), kind)
            for i in range(j + 1, rows):
                a[i][j] = program.div(a[i][j], divisor, kind)
                for k in range(j + 1, columns):
                    a[i][k] = _less(program, kind, a[i][k], [(a[i][j], a[j][k])])
        permutations.append(order)
    shapes = [v.aval.shape for v in equation.outvars]
    return [array_of(y, s) for y, s in zip((factors, pivots, permutations), shapes, strict=True)]


def _permutation(program: Program, equation: Any, pivots: Array) -> list[Array]:
    """The permutation that exchanges of rows make."""
    size, permutations = equation.params["permutation_size"], []
    for row in pivots.reshape((-1, pivots.shape[-1])).tolist():
        order = [program.constant(i, "i32") for i in range(size)]
        for j, pivot in enumerate(row):
            for i in range(j + 1, size):
                place = program.constant(i, program.types[pivot])
                _exchange(program, program.compare("eq", pivot, place), order, j, i)
        permutations.append(order)
    return [array_of(permutations, (*pivots.shape[:-1], size))]


def _qr(program: Program, equation: Any, x: Array) -> list[Array]:
    """Q and R with Q R = x, by reflections with the signs of LAPACK.

    Q is of all columns (m, m), or of the first ones (m, min(m, n)).
    """
    kind, (m, n) = kind_of_result(equation), x.shape[-2:]
    size = m if equation.params["full_matrices"] else min(m, n)
    zero, one = program.zero(kind), program.constant(1.0, kind)
    bases, triangles = [], []
    for a in _matrices(x):
        mirrors = []
        for j in range(min(m, n)):
            mirrors.append(_mirror(program, kind, [row[j] for row in a[j:]]))
            _reflected(program, kind, mirrors[-1], a, j, j)
        q = [[one if i == j else zero for j in range(size)] for i in range(m)]
        for j in reversed(range(min(m, n))):
            _reflected(program, kind, mirrors[j], q, j, j)
        bases.append(q)
        # Below the diagonal there is nothing but rounding.
        triangles.append([[zero] * min(i, n) + row[i:] for i, row in enumerate(a[:size])])
    batch = x.shape[:-2]
    return [array_of(bases, (*batch, m, size)), array_of(triangles, (*batch, size, n))]


def _mirror(program: Program, kind: str, x: list[int]) -> tuple[int, list[int]]:
    """tau and u, u_0 = 1, with (I - tau u u^T) x along the first axis; tau = 0 where x lies there.

    The squares of x have to be within the range of numbers.
    """
    first, rest = x[0], x[1:]
    zero, one = program.zero(kind), program.constant(1.0, kind)
    below = zero
    for y in rest:
        below = program.add(below, program.mul(y, y, kind), kind)
    none = program.compare("eq", below, zero)
    norm = program.unary("sqrt", program.add(program.mul(first, first, kind), below, kind), kind)
    norm = program.select(none, norm, one, kind)
    # The end is on the other side of zero, so that nothing cancels.
    negative = program.compare("lt", first, zero)
    end = program.select(negative, program.sub(zero, norm, kind), norm, kind)
    step = program.sub(first, end, kind)
    tau = program.div(program.sub(end, first, kind), end, kind)
    scale = program.select(none, step, one, kind)
    u = [one, *(program.div(y, scale, kind) for y in rest)]
    return program.select(none, tau, zero, kind), u


def _reflected(
    program: Program, kind: str, mirror: tuple[int, list[int]], a: list[list[int]], i: int, j: int
) -> None:
    """Reflects the rows from i and the columns from j of a matrix."""
    tau, u = mirror
    zero = program.zero(kind)
    for k in range(j, len(a[0]) if a else 0):
        along = zero
        for y, row in zip(u, a[i:], strict=True):
            along = program.add(along, program.mul(y, row[k], kind), kind)
        along = program.mul(tau, along, kind)
        for y, row in zip(u, a[i:], strict=True):
            row[k] = program.sub(row[k], program.mul(y, along, kind), kind)


def _triangular_solve(program: Program, equation: Any, a: Array, b: Array) -> list[Array]:
    """x with a x = b, or x a = b, for triangular a."""
    kind, params, n = kind_of_result(equation), equation.params, a.shape[-1]
    lower, across = params["lower"], bool(params["transpose_a"])
    # x a = b is a^T x^T = b^T.
    if not params["left_side"]:
        b, across = np.swapaxes(b, -1, -2), not across
    if across:
        a, lower = np.swapaxes(a, -1, -2), not lower
    solved = []
    for matrix, right in zip(_matrices(a), _matrices(b), strict=True):
        x: list[list[int]] = [[] for _ in range(n)]
        for i in range(n) if lower else range(n - 1, -1, -1):
            before = range(i) if lower else range(i + 1, n)
            for k in range(b.shape[-1]):
                products = [(matrix[i][j], x[j][k]) for j in before]
                y = _less(program, kind, right[i][k], products)
                x[i].append(y if params["unit_diagonal"] else program.div(y, matrix[i][i], kind))
        solved.append(x)
    solution = array_of(solved, b.shape)
    return [solution if params["left_side"] else np.swapaxes(solution, -1, -2)]


def _sort(program: Program, equation: Any, *operands: Array) -> list[Array]:
    """Rows in ascending order of their first arrays, equal ones in their order."""
    axis, keys = equation.params["dimension"], equation.params["num_keys"]
    moved = [np.moveaxis(x, axis, -1) for x in operands]
    n = moved[0].shape[-1]
    if not operands[0].size:
        return list(operands)
    if n > _LONGEST_SORTED:
        raise Unsupported(f"sorting more than {_LONGEST_SORTED} numbers")
    rows = [x.reshape((-1, n)).tolist() for x in moved]
    for row in zip(*rows, strict=True):
        for last in range(n - 1, 0, -1):
            for i in range(last):
                swap = _behind(program, [x[i] for x in row[:keys]], [x[i + 1] for x in row[:keys]])
                for x in row:
                    _exchange(program, swap, x, i, i + 1)
    return [np.moveaxis(array_of(r, x.shape), -1, axis) for r, x in zip(rows, moved, strict=True)]


def _behind(program: Program, xs: Sequence[int], ys: Sequence[int]) -> int:
    """Whether the keys xs come after ys; what is not a number comes last."""
    behind = program.constant(False, "b1")
    for x, y in reversed(list(zip(xs, ys, strict=True))):
        after, same = program.compare("gt", x, y), program.compare("eq", x, y)
        if program.types[x][0] == "f":
            no_x, no_y = program.compare("ne", x, x), program.compare("ne", y, y)
            number = program.unary("not", no_y, "b1")
            after = program.binary("or", after, program.all_of(no_x, number), "b1")
            same = program.binary("or", same, program.all_of(no_x, no_y), "b1")
        behind = program.binary("or", after, program.all_of(same, behind), "b1")
    return behind


RULES |= {
    "cholesky": _cholesky,
    "lu": _lu,
    "lu_pivots_to_permutation": _permutation,
    "qr": _qr,
    "sort": _sort,
    "triangular_solve": _triangular_solve,
}
