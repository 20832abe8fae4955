"""Programs as functions of LLVM IR.

A program becomes functions of some hundred instructions each, which keeps the time that LLVM takes
proportional to their number. All of them work on one frame of memory, their only argument: what is
computed in one and used in another goes through it. With lanes, a scalar of the program is a vector
with an entry for each environment, but for what is the same for all of them.

Without lanes, products of matrices are loops over vectors (`cpu.products`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from ..program import Instructions, Program
from ..program.instructions import greatest, is_pair, ordered
from .body import Body
from .module import Module, Place
from .products import Products
from .tables import Tables
from .types import in_memory, literal, type_of

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
    products, tables = Products(module, program, places), Tables(module, program, places)
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
            lines = products.lines(chunk[0], used)
        elif operations[chunk[0]] == "entry":
            lines = tables.lines(chunk[0], lanes[chunk[0]])
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
    """The instructions of each function; loops inside and what reads memory stand alone."""
    chunks: list[list[int]] = [[]]
    for k in instructions:
        if program.operations[k] in ("while", "product", "entry"):
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
