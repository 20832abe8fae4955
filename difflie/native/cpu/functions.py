"""Programs as functions of LLVM IR.

A program becomes functions of some hundred instructions each, which keeps the time that LLVM takes
proportional to their number. All of them work on one frame of memory, their only argument: what is
computed in one and used in another goes through it. With lanes, a scalar of the program is a vector
with an entry for each environment, but for what is the same for all of them.

Without lanes, products of matrices are loops over vectors. A row of the product is as many vectors
as it takes; the last two may overlap. Some rows at a time, each entry of the left matrix is
multiplied with a vector of the right one.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from ..program import Instructions, Program
from ..program.instructions import greatest, is_pair, ordered
from .body import Body, suffix
from .module import Module, Place
from .types import TYPE, bytes_of, in_memory, literal, type_of

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
        module.products[name] = _product(module, name, kind, (m, summed, n), a, b)
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


def _product(
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


# Instructions of a function.
_CHUNK = 500


class Printed(NamedTuple):
    """A program in a module: the calls to make once and again, and where its results are.

    A result is a place in the frame, or a known number.
    """

    once: list[str]
    again: list[str]
    results: list[Place | object]


def printed(
    module: Module, program: Instructions, arguments: Sequence[Place], fixed: int
) -> Printed:
    """Adds the functions of a program whose arguments lie at these places.

    What depends on the first `fixed` arguments only is computed once.
    """
    used, operations = ordered(program), program.operations
    lanes = greatest(program, used, [place.lanes for place in arguments], 1)
    repeated = greatest(program, used, [i >= fixed for i in range(len(arguments))], False)
    places = {k: arguments[program.places[k]] for k in used if operations[k] == "argument"}
    running = [
        k for k in used if program.known[k] is None and operations[k] not in ("argument", "item")
    ]
    once = _chunks(program, [k for k in running if not repeated[k]])
    chunks = once + _chunks(program, [k for k in running if repeated[k]])
    last = _last_use(program, chunks)
    dying = defaultdict(list)
    for x, at in last.items():
        # What is computed once stays.
        if repeated[x]:
            dying[at].append(x)
    calls: tuple[list[str], list[str]] = [], []
    for i, chunk in enumerate(chunks):
        if operations[chunk[0]] == "while":
            lines = _looped(module, program, chunk[0], places, lanes[chunk[0]], used)
        elif operations[chunk[0]] == "product":
            lines = product(module, program, chunk[0], places, used)
        else:
            lines = [_function(module, program, chunk, places, lanes, last)]
        calls[i >= len(once)].extend(line for line in lines if line)
        for x in dying[i]:
            module.frame.give_back(places[x], program.types[x])
    results: list[Place | object] = [
        places[x] if program.known[x] is None else program.known[x] for x in program.results
    ]
    return Printed(*calls, results)


def _chunks(program: Instructions, instructions: Sequence[int]) -> list[list[int]]:
    """The instructions of each function; a loop inside, or a product of matrices, alone."""
    chunks: list[list[int]] = [[]]
    for k in instructions:
        if program.operations[k] in ("while", "product"):
            chunks += [[k], []]
        else:
            if len(chunks[-1]) >= _CHUNK and program.operations[k] not in ("sin", "cos"):
                chunks.append([])
            chunks[-1].append(k)
    return [c for c in chunks if c]


def _last_use(program: Instructions, chunks: Sequence[Sequence[int]]) -> dict[int, int]:
    """In which chunk each scalar is used for the last time, if not in its own; results in none."""
    home = {k: i for i, chunk in enumerate(chunks) for k in chunk}
    last = {}
    for i, chunk in enumerate(chunks):
        for k in chunk:
            for x in program.operands[k]:
                if home.get(x, i) != i:
                    last[x] = i
    return last | {x: len(chunks) for x in program.results if x in home}


def _function(
    module: Module,
    program: Instructions,
    chunk: Sequence[int],
    places: dict[int, Place],
    lanes: dict[int, int],
    last: dict[int, int],
) -> str:
    """The call of a new function; sets the places of what is used in others."""
    body = Body(module, program, places)
    for k, after in zip(chunk, [*chunk[1:], chunk[-1]], strict=True):
        if k not in body.values:
            if is_pair(program, k, after):
                pair = (k, after) if program.operations[k] == "sin" else (after, k)
                body.sine_and_cosine(*pair, lanes[k])
            else:
                body.instruction(k, lanes[k])
        if k in last:
            places[k] = module.frame.scalar(program.types[k], lanes[k])
            body.store(body.values[k], places[k], program.types[k])
    return module.function(body.lines)


def _looped(
    module: Module,
    program: Instructions,
    k: int,
    places: dict[int, Place],
    lanes: int,
    used: Sequence[int],
) -> list[str]:
    """The lines of a loop inside; sets the places of what it carries."""
    loop, operands = program.loops[k], program.operands[k]
    kinds = [program.types[x] for x in operands[loop.fixed :]]
    carried = [module.frame.scalar(kind, lanes) for kind in kinds]
    start = Body(module, program, places)
    for x, place, kind in zip(operands[loop.fixed :], carried, kinds, strict=True):
        start.store(start.value(x, lanes), place, kind)
    arguments = [*(places[x] for x in operands[: loop.fixed]), *carried]
    going = module.frame.scalar("b1", lanes)
    # What the condition writes in every iteration is no place for what the body computes once.
    with module.frame.apart():
        condition = printed(module, loop.condition, arguments, loop.fixed)
    body = printed(module, loop.body, arguments, loop.fixed)
    for item in used:
        if program.operations[item] == "item" and program.operands[item][0] == k:
            places[item] = carried[program.places[item]]
    # Each lane ends by itself: what it carries stays as it is from then on.
    test = Body(module, program, {})
    test.store(_result(test, condition.results[0], "b1", lanes), going, "b1")
    carry = carrying(module, body.results, carried, kinds, going if lanes > 1 else None)
    again, inside, end = (module.label() for _ in range(3))
    more, memory = f"%{again}_more", in_memory("b1", lanes)
    some, any_lane = f"{more}_all", ""
    if lanes > 1:
        reduced, some = f"@llvm.vector.reduce.or.v{lanes}i8", f"{more}_any"
        module.declared.add(f"declare i8 {reduced}(<{lanes} x i8>)")
        any_lane = f"  {some} = call i8 {reduced}({memory} {more}_all)"
    lines = [
        module.function(start.lines),
        *condition.once,
        *body.once,
        f"  br label %{again}",
        f"{again}:",
        *condition.again,
        module.function(test.lines),
        f"  {more}_at = getelementptr i8, ptr %m, i64 {going.offset}",
        f"  {more}_all = load {memory}, ptr {more}_at",
        any_lane,
        f"  {more} = icmp ne i8 {some}, 0",
        f"  br i1 {more}, label %{inside}, label %{end}",
        f"{inside}:",
        *body.again,
        carry,
        f"  br label %{again}",
        f"{end}:",
    ]
    return [line for line in lines if line]


def carrying(
    module: Module,
    results: Sequence[Place | object],
    targets: Sequence[Place],
    kinds: Sequence[str],
    where: Place | None = None,
) -> str:
    """Moves results to places that may be those of other results, in lanes where that is true."""
    body = Body(module, Program(), {})
    mask = None if where is None else body.load(where, "b1")
    moved = []
    for result, target, kind in zip(results, targets, kinds, strict=True):
        if result == target:
            continue
        new = _result(body, result, kind, target.lanes)
        if mask is not None:
            t = type_of(kind, target.lanes)
            old = body.load(target, kind)
            new = body.op(f"select {type_of('b1', target.lanes)} {mask}, {t} {new}, {t} {old}")
        moved.append((new, target, kind))
    for new, target, kind in moved:
        body.store(new, target, kind)
    return module.function(body.lines)


def _result(body: Body, result: Place | object, kind: str, lanes: int) -> str:
    """A result of a program as a value with so many lanes."""
    if not isinstance(result, Place):
        return literal(result, kind, lanes)
    x = body.load(result, kind)
    return x if result.lanes == lanes else body.spread(x, kind, lanes)
