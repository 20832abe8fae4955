"""Products of matrices of a program without lanes: loops over vectors.

A row of the product is as many vectors as it takes; the last two may overlap. Some rows at a time,
each entry of the left matrix is multiplied with a vector of the right one. Where the columns of the
right matrix lie together and not its rows, as in A x = (x^T A^T)^T, an entry of the product is the
sum of the entries of a vector.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from ..program import Instructions, Program
from .body import Body, suffix
from .module import Module, Place
from .types import TYPE, bytes_of, literal, type_of

# Sums that are under way at the same time, and the bytes of a vector.
_SUMS, _VECTOR = 12, 64
# Such sums that end in the sum of a vector.
_DOTS = 4


class _Matrix(NamedTuple):
    """Where a matrix lies in the frame: its first entry, and the bytes between rows and columns."""

    offset: int
    row: int
    column: int


class Products:
    """The products of a program, whose matrices are copied to where vectors can be read of them.

    places: where the scalars of the program are.
    """

    def __init__(self, module: Module, program: Instructions, places: dict[int, Place]):
        self._module, self._program, self._places = module, program, places
        self._copies: dict[tuple[int, ...], int] = {}

    def lines(self, k: int, used: Sequence[int]) -> list[str]:
        """The lines of product k; sets the places of its entries that are used."""
        program, module = self._program, self._module
        m, summed, n = program.sizes[k]
        operands = program.operands[k]
        left, right = operands[: m * summed], operands[m * summed :]
        kind = program.types[operands[0]]
        size, lines = bytes_of(kind), []
        a = self._matrix(left, summed) or self._copied(left, summed, kind, lines)
        b = self._matrix(right, n)
        if b is not None and b.row == size != b.column and m < _DOTS:
            if a.column != size:
                a = self._copied(left, summed, kind, lines)
            function, name = _dots, f"@dots_{kind}_{m}_{summed}_{n}_{a.row}_{b.column}"
        else:
            if b is None or b.column != size:
                b = self._copied(right, n, kind, lines)
            function = _rows
            name = f"@product_{kind}_{m}_{summed}_{n}_{a.row}_{a.column}_{b.row}"
        if name not in module.products:
            module.products[name] = function(module, name, kind, (m, summed, n), a, b)
        result = module.frame.array(kind, m * n, 1)
        for item in used:
            if program.operations[item] == "item" and program.operands[item][0] == k:
                self._places[item] = result[program.places[item]]
        offsets = (a.offset, b.offset, result[0].offset)
        names = [f"%{module.label()}" for _ in offsets]
        for at, offset in zip(names, offsets, strict=True):
            lines.append(f"  {at} = getelementptr i8, ptr %m, i64 {offset}")
        return [*lines, f"  call void {name}({', '.join(f'ptr {at}' for at in names)})"]

    def _matrix(self, entries: Sequence[int], columns: int) -> _Matrix | None:
        """Where a matrix lies, if at equal distances."""
        program = self._program
        if any(program.known[x] is not None for x in entries):
            return None
        at = [self._places[x].offset for x in entries]
        row = at[columns] - at[0] if len(at) > columns else 0
        column = at[1] - at[0] if columns > 1 else bytes_of(program.types[entries[0]])
        rows = range(len(at) // columns)
        even = [at[0] + i * row + j * column for i in rows for j in range(columns)]
        return _Matrix(at[0], row, column) if at == even else None

    def _copied(
        self, entries: tuple[int, ...], columns: int, kind: str, lines: list[str]
    ) -> _Matrix:
        """A copy of a matrix, row by row, which further products share."""
        size = bytes_of(kind)
        if entries not in self._copies:
            targets = self._module.frame.array(kind, len(entries), 1)
            body = Body(self._module, Program(), {})
            for x, target in zip(entries, targets, strict=True):
                known = self._program.known[x]
                at = self._places
                value = body.load(at[x], kind) if known is None else literal(known, kind, 1)
                body.store(value, target, kind)
            lines.append(self._module.function(body.lines))
            self._copies[entries] = targets[0].offset
        return _Matrix(self._copies[entries], size * columns, size)


def _rows(
    module: Module, name: str, kind: str, sizes: tuple[int, int, int], a: _Matrix, b: _Matrix
) -> str:
    """The text of a function of the addresses of the factors and of the product."""
    m, summed, n = sizes
    size = bytes_of(kind)
    width = 1 << min(n, _VECTOR // size).bit_length() - 1
    starts = [*range(0, n - width + 1, width)]
    if starts[-1] + width < n:
        starts.append(n - width)
    vector, scalar = type_of(kind, width), TYPE[kind]
    height = max(1, _SUMS // len(starts))
    of_floats = kind[0] == "f"
    times, plus = ("fmul", "fadd") if of_floats else ("mul", "add")
    fma = f"@llvm.fma.{suffix(kind, width)}"
    if of_floats and module.fuses:
        module.declared.add(f"declare {vector} {fma}({vector}, {vector}, {vector})")
    lines = [f"define internal void {name}(ptr %a, ptr %b, ptr %c) #0 {{", "start:"]
    before = "start"
    for first in range(0, m, height):
        rows = range(first, min(m, first + height))
        sums = list(itertools.product(rows, range(len(starts))))
        here = f"of{first}"
        lines += [f"  br label %{here}", f"{here}:"]
        lines += [f"  %l{first} = phi i64 [0, %{before}], [%next{first}, %{here}]"]
        for i, j in sums:
            lines.append(
                f"  %s{i}_{j} = phi {vector} [zeroinitializer, %{before}], [%t{i}_{j}, %{here}]"
            )
        lines += [f"  %row{first} = mul i64 %l{first}, {b.row}"]
        lines += [f"  %b{first} = getelementptr i8, ptr %b, i64 %row{first}"]
        for j, at in enumerate(starts):
            lines += [f"  %at{first}_{j} = getelementptr i8, ptr %b{first}, i64 {at * size}"]
            lines += [f"  %y{first}_{j} = load {vector}, ptr %at{first}_{j}, align {size}"]
        lines += [f"  %column{first} = mul i64 %l{first}, {a.column}"]
        lines += [f"  %a{first} = getelementptr i8, ptr %a, i64 %column{first}"]
        for i in rows:
            lines += [
                f"  %at{i} = getelementptr i8, ptr %a{first}, i64 {i * a.row}",
                f"  %x{i} = load {scalar}, ptr %at{i}, align {size}",
                f"  %one{i} = insertelement {vector} poison, {scalar} %x{i}, i32 0",
                f"  %all{i} = shufflevector {vector} %one{i}, {vector} poison,"
                f" <{width} x i32> zeroinitializer",
            ]
        for i, j in sums:
            if of_floats and module.fuses:
                operands = f"%all{i}", f"%y{first}_{j}", f"%s{i}_{j}"
                typed = ", ".join(f"{vector} {x}" for x in operands)
                lines.append(f"  %t{i}_{j} = call {vector} {fma}({typed})")
                continue
            lines += [
                f"  %p{i}_{j} = {times} {vector} %all{i}, %y{first}_{j}",
                f"  %t{i}_{j} = {plus} {vector} %s{i}_{j}, %p{i}_{j}",
            ]
        lines += [
            f"  %next{first} = add i64 %l{first}, 1",
            f"  %more{first} = icmp ult i64 %next{first}, {summed}",
            f"  br i1 %more{first}, label %{here}, label %done{first}",
            f"done{first}:",
        ]
        for i, j in sums:
            place = size * (i * n + starts[j])
            lines += [
                f"  %to{i}_{j} = getelementptr i8, ptr %c, i64 {place}",
                f"  store {vector} %t{i}_{j}, ptr %to{i}_{j}, align {size}",
            ]
        before = f"done{first}"
    return "\n".join([*lines, "  ret void", "}", ""])


def _dots(
    module: Module, name: str, kind: str, sizes: tuple[int, int, int], a: _Matrix, b: _Matrix
) -> str:
    """The same where rows of the left matrix and columns of the right one are read as vectors."""
    m, summed, n = sizes
    size = bytes_of(kind)
    width = 1 << min(summed, _VECTOR // size).bit_length() - 1
    starts = [*range(0, summed - width + 1, width)]
    # The last vector overlaps; what the one before has counted is zero in it.
    twice = -summed % width
    if twice:
        starts.append(summed - width)
    vector, truths, scalar = type_of(kind, width), type_of("b1", width), TYPE[kind]
    fresh = f"<{', '.join(f'i1 {int(i >= twice)}' for i in range(width))}>"
    of_floats = kind[0] == "f"
    times, plus = ("fmul", "fadd") if of_floats else ("mul", "add")
    fma = f"@llvm.fma.{suffix(kind, width)}" if of_floats and module.fuses else None
    if fma:
        module.declared.add(f"declare {vector} {fma}({vector}, {vector}, {vector})")
    together = min(n, _DOTS)
    lines = [f"define internal void {name}(ptr %a, ptr %b, ptr %c) #0 {{", "start:"]
    count = itertools.count()

    def op(text: str) -> str:
        result = f"%v{next(count)}"
        lines.append(f"  {result} = {text}")
        return result

    def at(base: str, offset: int | str, type_: str) -> str:
        place = op(f"getelementptr i8, ptr {base}, i64 {offset}")
        return op(f"load {type_}, ptr {place}, align {size}")

    def part(base: str, start: int) -> str:
        x = at(base, start * size, vector)
        if twice and start == starts[-1]:
            x = op(f"select {truths} {fresh}, {vector} {x}, {vector} zeroinitializer")
        return x

    def total(x: str) -> str:
        """The sum of the entries, halves first."""
        left = width
        while left > 2:
            whole, left = type_of(kind, left), left // 2
            halves = []
            for first in (0, left):
                places = ", ".join(f"i32 {first + i}" for i in range(left))
                halves.append(
                    op(f"shufflevector {whole} {x}, {whole} poison, <{left} x i32> <{places}>")
                )
            x = op(f"{plus} {type_of(kind, left)} {halves[0]}, {halves[1]}")
        if left == 1:
            return x
        one, other = (op(f"extractelement {type_of(kind, 2)} {x}, i32 {i}") for i in (0, 1))
        return op(f"{plus} {scalar} {one}, {other}")

    before = "start"
    for i in range(m):
        here = f"of{i}"
        rows = [part("%a", i * a.row // size + start) for start in starts]
        lines += [f"  br label %{here}", f"{here}:"]
        lines.append(f"  %j{i} = phi i64 [0, %{before}], [%next{i}, %{here}]")
        # The last columns overlap, too.
        late = op(f"icmp ugt i64 %j{i}, {n - together}")
        first = op(f"select i1 {late}, i64 {n - together}, i64 %j{i}")
        column = op(f"getelementptr i8, ptr %b, i64 {op(f'mul i64 {first}, {b.column}')}")
        entry = op(f"getelementptr i8, ptr %c, i64 {op(f'mul i64 {first}, {size}')}")
        for k in range(together):
            base = op(f"getelementptr i8, ptr {column}, i64 {k * b.column}")
            sums = "zeroinitializer"
            for x, start in zip(rows, starts, strict=True):
                y = part(base, start)
                if fma:
                    sums = op(f"call {vector} {fma}({vector} {x}, {vector} {y}, {vector} {sums})")
                else:
                    sums = op(f"{plus} {vector} {sums}, {op(f'{times} {vector} {x}, {y}')}")
            place = op(f"getelementptr i8, ptr {entry}, i64 {(i * n + k) * size}")
            lines.append(f"  store {scalar} {total(sums)}, ptr {place}, align {size}")
        lines += [
            f"  %next{i} = add i64 %j{i}, {together}",
            f"  %more{i} = icmp ult i64 %next{i}, {n}",
            f"  br i1 %more{i}, label %{here}, label %done{i}",
            f"done{i}:",
        ]
        before = f"done{i}"
    return "\n".join([*lines, "  ret void", "}", ""])
