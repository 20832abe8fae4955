"""Products of matrices as loops over vectors, for programs without lanes.

A row of the product is as many vectors as it takes; the last two may overlap. Some rows at a time,
each entry of the left matrix is multiplied with a vector of the right one.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from ..program import Instructions, Program
from .body import Body
from .module import Module, Place
from .types import TYPE, bytes_of, literal, type_of

# Sums that are under way at the same time, and the bytes of a vector.
_SUMS, _VECTOR = 12, 64


class _Matrix(NamedTuple):
    """Where a matrix lies in the frame: its first entry, and the bytes between rows and columns."""

    offset: int
    row: int
    column: int


def product(
    module: Module,
    program: Instructions,
    k: int,
    places: dict[int, Place],
    used: Sequence[int],
) -> list[str]:
    """The lines of a product of matrices; sets the places of its entries that are used."""
    m, summed, n = program.sizes[k]
    operands = program.operands[k]
    kind = program.types[operands[0]]
    size = bytes_of(kind)
    left, right = operands[: m * summed], operands[m * summed :]
    lines = []

    def stored(entries: Sequence[int], columns: int) -> _Matrix:
        at = module.frame.array(kind, len(entries), 1)
        lines.append(_copy(module, program, entries, kind, places, at))
        return _Matrix(at[0].offset, size * columns, size)

    a = _matrix(program, left, summed, places) or stored(left, summed)
    b = _matrix(program, right, n, places)
    if b is None or b.column != size:
        b = stored(right, n)
    result = module.frame.array(kind, m * n, 1)
    for item in used:
        if program.operations[item] == "item" and program.operands[item][0] == k:
            places[item] = result[program.places[item]]
    name = f"@product_{kind}_{m}_{summed}_{n}_{a.row}_{a.column}_{b.row}"
    if name not in module.products:
        module.products[name] = _function(name, kind, (m, summed, n), a, b)
    offsets = (a.offset, b.offset, result[0].offset)
    names = [f"%{module.label()}" for _ in offsets]
    for at, offset in zip(names, offsets, strict=True):
        lines.append(f"  {at} = getelementptr i8, ptr %m, i64 {offset}")
    lines.append(f"  call void {name}({', '.join(f'ptr {at}' for at in names)})")
    return lines


def _matrix(
    program: Instructions, entries: Sequence[int], columns: int, places: dict[int, Place]
) -> _Matrix | None:
    """Where a matrix lies, if at equal distances."""
    if any(program.known[x] is not None for x in entries):
        return None
    at = [places[x].offset for x in entries]
    row = at[columns] - at[0] if len(at) > columns else 0
    column = at[1] - at[0] if columns > 1 else bytes_of(program.types[entries[0]])
    rows = range(len(at) // columns)
    even = [at[0] + i * row + j * column for i in rows for j in range(columns)]
    return _Matrix(at[0], row, column) if at == even else None


def _copy(
    module: Module,
    program: Instructions,
    entries: Sequence[int],
    kind: str,
    places: dict[int, Place],
    targets: Sequence[Place],
) -> str:
    """The call that writes scalars of the program to these places."""
    body = Body(module, Program(), {})
    for x, target in zip(entries, targets, strict=True):
        known = program.known[x]
        value = body.load(places[x], kind) if known is None else literal(known, kind, 1)
        body.store(value, target, kind)
    return module.function(body.lines)


def _function(name: str, kind: str, sizes: tuple[int, int, int], a: _Matrix, b: _Matrix) -> str:
    """The text of a function of the addresses of the factors and of the product."""
    m, summed, n = sizes
    size = bytes_of(kind)
    width = 1 << min(n, _VECTOR // size).bit_length() - 1
    starts = [*range(0, n - width + 1, width)]
    if starts[-1] + width < n:
        starts.append(n - width)
    vector, scalar = type_of(kind, width), TYPE[kind]
    height = max(1, _SUMS // len(starts))
    times, plus = ("fmul contract", "fadd contract") if kind[0] == "f" else ("mul", "add")
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
