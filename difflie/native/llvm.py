"""Programs as LLVM IR.

A program becomes functions of some hundred instructions each, which keeps the time that LLVM takes
proportional to their number. All of them work on one frame of memory, their only argument: what is
computed in one and used in another goes through it. With lanes, a scalar of the program is a vector
with an entry for each environment, but for what is the same for all of them.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from .elementary import NAMES, definitions, symbol
from .program import NUMPY, Loop, Program, Unsupported

# Instructions of a function.
_CHUNK = 500

_TYPE = {
    "f64": "double",
    "f32": "float",
    "i64": "i64",
    "i32": "i32",
    "u64": "i64",
    "u32": "i32",
    "b1": "i1",
}
_FLOAT = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_INTEGER = {"add": "add", "sub": "sub", "mul": "mul", "and": "and", "or": "or", "xor": "xor"}
_INTRINSIC = {
    "abs": "fabs",
    "ceil": "ceil",
    "floor": "floor",
    "round": "roundeven",
    "sqrt": "sqrt",
}


def bytes_of(kind: str) -> int:
    """The size of a scalar in memory."""
    return NUMPY[kind].itemsize


class Place(NamedTuple):
    """Where a scalar lies in the frame: at this byte, for each lane or once for all of them."""

    offset: int
    lanes: int


class Frame:
    """The memory that all functions of a module work on."""

    def __init__(self) -> None:
        self.size = 0
        self._free: dict[int, list[int]] = {}

    def block(self, size: int) -> int:
        """The offset of new bytes."""
        offset = self.size
        self.size += -(-size // 64) * 64
        return offset

    def scalar(self, kind: str, lanes: int) -> Place:
        """A place for one scalar, one that has been given back if there is one."""
        size = bytes_of(kind) * lanes
        free = self._free.setdefault(size, [])
        if not free:
            count = max(1, 64 // size)
            first = self.block(size * count)
            free.extend(first + size * i for i in reversed(range(count)))
        return Place(free.pop(), lanes)

    def give_back(self, place: Place, kind: str) -> None:
        self._free[bytes_of(kind) * place.lanes].append(place.offset)

    @contextlib.contextmanager
    def apart(self) -> Iterator[None]:
        """Places given back within are not taken again."""
        free, self._free = self._free, {}
        yield
        self._free = free

    def array(self, kind: str, size: int, lanes: int) -> list[Place]:
        """Places side by side."""
        each = bytes_of(kind) * lanes
        first = self.block(max(1, each * size))
        return [Place(first + each * i, lanes) for i in range(size)]


class Module:
    """The functions of a module, and what they need."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.frame = Frame()
        self.functions: list[str] = []
        self.elementary: set[tuple[str, str, int]] = set()
        self.declared: set[str] = set()
        self._count = 0

    def function(self, lines: Sequence[str]) -> str:
        """A function of the frame; its call."""
        if not lines:
            return ""
        name = f"@f{self._count}"
        self._count += 1
        body = "\n".join(lines)
        self.functions.append(
            f"define internal void {name}(ptr noalias %m) #0 {{\n{body}\n  ret void\n}}\n"
        )
        return f"  call void {name}(ptr %m)"

    def label(self) -> str:
        self._count += 1
        return f"l{self._count}"

    def text(self) -> str:
        """All functions and declarations."""
        parts = [*sorted(self.declared), definitions(sorted(self.elementary)), *self.functions]
        return "\n".join(parts)


def joined(*texts: str) -> str:
    """Texts as one, with every declaration once: LLVM takes no second one."""
    lines = [line for text in texts for line in text.split("\n")]
    declared = dict.fromkeys(line for line in lines if line.startswith("declare "))
    return "\n".join([*declared, *(line for line in lines if not line.startswith("declare "))])


def type_of(kind: str, lanes: int) -> str:
    """The type of a value in registers."""
    return _TYPE[kind] if lanes == 1 else f"<{lanes} x {_TYPE[kind]}>"


def in_memory(kind: str, lanes: int) -> str:
    """The type of a value in memory, where a truth takes a byte."""
    element = "i8" if kind == "b1" else _TYPE[kind]
    return element if lanes == 1 else f"<{lanes} x {element}>"


def literal(x: object, kind: str, lanes: int) -> str:
    """A known number as an operand."""
    if kind == "f32":
        x = float(np.float32(x))  # pyright: ignore
    if kind[0] == "f":
        text = f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"
    elif kind == "b1":
        text = "true" if x else "false"
    else:
        text = str(int(x))  # pyright: ignore
    if lanes == 1:
        return text
    element = _TYPE[kind]
    return "<" + ", ".join([f"{element} {text}"] * lanes) + ">"


class Body:
    """The lines of one function."""

    def __init__(self, module: Module, program: Program, places: dict[int, Place]):
        self.module, self.program, self.places = module, program, places
        self.lines: list[str] = []
        self.values: dict[int, str] = {}
        self.lanes_of: dict[int, int] = {}
        self._spread: dict[int, str] = {}
        self._count = 0

    def op(self, text: str) -> str:
        self._count += 1
        name = f"%t{self._count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def load(self, place: Place, kind: str) -> str:
        """What lies at a place."""
        memory = in_memory(kind, place.lanes)
        at = self.op(f"getelementptr i8, ptr %m, i64 {place.offset}")
        align = bytes_of(kind) * place.lanes
        x = self.op(f"load {memory}, ptr {at}, align {min(align, 64)}")
        return self.op(f"trunc {memory} {x} to {type_of(kind, place.lanes)}") if kind == "b1" else x

    def store(self, value: str, place: Place, kind: str) -> None:
        memory = in_memory(kind, place.lanes)
        if kind == "b1":
            value = self.op(f"zext {type_of(kind, place.lanes)} {value} to {memory}")
        at = self.op(f"getelementptr i8, ptr %m, i64 {place.offset}")
        align = bytes_of(kind) * place.lanes
        self.lines.append(f"  store {memory} {value}, ptr {at}, align {min(align, 64)}")

    def value(self, x: int, lanes: int) -> str:
        """A scalar of the program as an operand with so many lanes."""
        program = self.program
        kind = program.types[x]
        if program.known[x] is not None:
            return literal(program.known[x], kind, lanes)
        name = self.values.get(x)
        if name is None:
            place = self.places[x]
            name = self.values[x] = self.load(place, kind)
            self.lanes_of[x] = place.lanes
        if self.lanes_of[x] == lanes:
            return name
        wide = self._spread.get(x)
        if wide is None:
            wide = self._spread[x] = self.spread(name, kind, lanes)
        return wide

    def spread(self, name: str, kind: str, lanes: int) -> str:
        """The same number in every lane."""
        kind_of_all = type_of(kind, lanes)
        one = self.op(f"insertelement {kind_of_all} poison, {_TYPE[kind]} {name}, i32 0")
        zeros = f"<{lanes} x i32> zeroinitializer"
        return self.op(f"shufflevector {kind_of_all} {one}, {kind_of_all} poison, {zeros}")

    def instruction(self, k: int, lanes: int) -> None:
        """Appends instruction k of the program."""
        program = self.program
        operation, operands, kind = program.operations[k], program.operands[k], program.types[k]
        simple = _FLOAT.get(operation) if kind[0] == "f" else None
        if simple is not None:
            x, y = self.value(operands[0], lanes), self.value(operands[1], lanes)
            self._count += 1
            name = f"%t{self._count}"
            self.lines.append(f"  {name} = {simple} contract {type_of(kind, lanes)} {x}, {y}")
        else:
            name = self._other(operation, operands, kind, lanes)
        self.values[k] = name
        self.lanes_of[k] = lanes

    def _other(self, operation: str, operands: tuple[int, ...], kind: str, lanes: int) -> str:
        t = type_of(kind, lanes)
        source = self.program.types[operands[-1]]
        xs = [self.value(x, lanes) for x in operands]
        if operation == "select":
            # A choice between values that are loaded would be looked through again and again.
            yes, no = (self.op(f"freeze {t} {x}") for x in xs[1:])
            return self.op(f"select {type_of('b1', lanes)} {xs[0]}, {t} {yes}, {t} {no}")
        if operation in ("eq", "ne", "lt", "le", "gt", "ge"):
            return self.compare(operation, source, lanes, *xs)
        if operation == "convert":
            return self._convert(xs[0], source, kind, lanes)
        if operation == "neg":
            return self.op(
                f"fneg {t} {xs[0]}"
                if kind[0] == "f"
                else f"sub {t} zeroinitializer, {xs[0]}"
                if lanes > 1
                else f"sub {t} 0, {xs[0]}"
            )
        if operation == "not":
            return self.op(f"xor {t} {xs[0]}, {literal(-1 if kind != 'b1' else 1, kind, lanes)}")
        if operation in ("max", "min"):
            return self._best(operation, xs, kind, lanes)
        if operation == "sign":
            one, minus = literal(1, kind, lanes), literal(-1, kind, lanes)
            zero = literal(0, kind, lanes)
            up, down = (self.compare(c, kind, lanes, xs[0], zero) for c in ("gt", "lt"))
            b = type_of("b1", lanes)
            found = self.op(f"select {b} {down}, {t} {minus}, {t} {xs[0]}")
            return self.op(f"select {b} {up}, {t} {one}, {t} {found}")
        if kind[0] == "f" and operation in _INTRINSIC:
            return self.intrinsic(_INTRINSIC[operation], kind, lanes, *xs)
        if kind[0] == "f" and operation in NAMES:
            self.module.elementary.add((operation, kind, lanes))
            arguments = ", ".join(f"{t} {x}" for x in xs)
            return self.op(f"call {t} {symbol(operation, kind, lanes)}({arguments})")
        if kind[0] != "f" and operation in _INTEGER:
            return self.op(f"{_INTEGER[operation]} {t} {xs[0]}, {xs[1]}")
        if kind[0] in "iu" and operation in ("div", "rem"):
            return self.op(f"{'s' if kind[0] == 'i' else 'u'}{operation} {t} {xs[0]}, {xs[1]}")
        if kind[0] == "i" and operation == "abs":
            opposite = self.op(f"sub {t} {literal(0, kind, lanes)}, {xs[0]}")
            below = self.compare("lt", kind, lanes, xs[0], literal(0, kind, lanes))
            return self.op(f"select {type_of('b1', lanes)} {below}, {t} {opposite}, {t} {xs[0]}")
        raise Unsupported(f"{operation} of {kind}")

    def intrinsic(self, name: str, kind: str, lanes: int, *xs: str) -> str:
        t = type_of(kind, lanes)
        suffix = kind if lanes == 1 else f"v{lanes}{kind}"
        types = ", ".join([t] * len(xs))
        self.module.declared.add(f"declare {t} @llvm.{name}.{suffix}({types})")
        arguments = ", ".join(f"{t} {x}" for x in xs)
        return self.op(f"call {t} @llvm.{name}.{suffix}({arguments})")

    def compare(self, name: str, kind: str, lanes: int, x: str, y: str) -> str:
        t = type_of(kind, lanes)
        if kind[0] == "f":
            return self.op(f"fcmp {'u' if name == 'ne' else 'o'}{name} {t} {x}, {y}")
        if name not in ("eq", "ne"):
            name = ("s" if kind[0] == "i" else "u") + name
        return self.op(f"icmp {name} {t} {x}, {y}")

    def _best(self, name: str, xs: list[str], kind: str, lanes: int) -> str:
        t, b = type_of(kind, lanes), type_of("b1", lanes)
        if kind == "b1":
            return self.op(f"{'or' if name == 'max' else 'and'} {t} {xs[0]}, {xs[1]}")
        first = self.compare("gt" if name == "max" else "lt", kind, lanes, *xs)
        if kind[0] == "f":
            # What is not a number is the result.
            nan = self.op(f"fcmp uno {t} {xs[0]}, {xs[0]}")
            first = self.op(f"or {b} {first}, {nan}")
        return self.op(f"select {b} {first}, {t} {xs[0]}, {t} {xs[1]}")

    def _convert(self, x: str, source: str, kind: str, lanes: int) -> str:
        s, t = type_of(source, lanes), type_of(kind, lanes)
        if kind == "b1":
            return self.compare("ne", source, lanes, x, literal(0, source, lanes))
        if source[0] == "f" and kind[0] == "f":
            return self.op(f"{'fpext' if kind == 'f64' else 'fptrunc'} {s} {x} to {t}")
        if source[0] == "f":
            sign = "s" if kind[0] == "i" else "u"
            a, b = (c if lanes == 1 else f"v{lanes}{c}" for c in (_TYPE[kind], source))
            name = f"@llvm.fpto{sign}i.sat.{a}.{b}"
            self.module.declared.add(f"declare {t} {name}({s})")
            return self.op(f"call {t} {name}({s} {x})")
        if kind[0] == "f":
            return self.op(f"{'si' if source[0] == 'i' else 'ui'}tofp {s} {x} to {t}")
        narrow, wide = bytes_of(source), bytes_of(kind)
        if source == "b1" or narrow < wide:
            return self.op(f"{'sext' if source[0] == 'i' else 'zext'} {s} {x} to {t}")
        return x if narrow == wide else self.op(f"trunc {s} {x} to {t}")


class Printed(NamedTuple):
    """A program in a module: the calls to make once and again, and where its results are.

    A result is a place in the frame, or a known number.
    """

    once: list[str]
    again: list[str]
    results: list[Place | object]


def printed(module: Module, program: Program, arguments: Sequence[Place], fixed: int) -> Printed:
    """Adds the functions of a program whose arguments lie at these places.

    What depends on the first `fixed` arguments only is computed once.
    """
    used = _ordered(program)
    places: dict[int, Place] = {}
    width, repeated = _kinds(program, used, arguments, fixed)
    for k in used:
        operation = program.operations[k]
        if operation == "argument":
            places[k] = arguments[program.operands[k][0]]
    parts = [k for k in used if not repeated[k]], [k for k in used if repeated[k]]
    parts = [[k for k in part if _runs(program, k)] for part in parts]
    chunks = [_chunks(program, part) for part in parts]
    last = _last_use(program, chunks)
    calls: list[list[str]] = []
    for number, part in enumerate(chunks):
        calls.append([])
        for index, chunk in enumerate(part):
            if len(chunk) == 1 and program.operations[chunk[0]] == "while":
                calls[-1] += _looped(module, program, chunk[0], places, width[chunk[0]], used)
            else:
                here = number, index
                calls[-1].append(_function(module, program, chunk, places, width, last, here))
            if number == 1:
                for k in last["dying"].get((number, index), ()):
                    module.frame.give_back(places[k], program.types[k])
    results: list[Place | object] = [
        places[x] if program.known[x] is None else program.known[x] for x in program.results
    ]
    return Printed([c for c in calls[0] if c], [c for c in calls[1] if c], results)


def _runs(program: Program, k: int) -> bool:
    return program.known[k] is None and program.operations[k] not in ("argument", "item")


def _ordered(program: Program) -> list[int]:
    """The instructions that matter; the sine and cosine of a number stand together."""
    used = program.used()
    operations, operands = program.operations, program.operands
    other = {(operations[k], operands[k]): k for k in used if operations[k] in ("sin", "cos")}
    order, moved = [], set()
    for k in used:
        if k in moved:
            continue
        order.append(k)
        if operations[k] in ("sin", "cos"):
            pair = other.get(("cos" if operations[k] == "sin" else "sin", operands[k]))
            if pair is not None:
                order.append(pair)
                moved.add(pair)
    return order


def _kinds(
    program: Program, used: Sequence[int], arguments: Sequence[Place], fixed: int
) -> tuple[dict[int, int], dict[int, bool]]:
    """How many lanes each scalar has, and whether it is computed again and again."""
    width: dict[int, int] = {}
    repeated: dict[int, bool] = {}
    for k in used:
        operation = program.operations[k]
        if operation == "argument":
            (place,) = program.operands[k]
            width[k], repeated[k] = arguments[place].lanes, place >= fixed
        elif operation == "item":
            loop = program.operands[k][0]
            width[k], repeated[k] = width[loop], repeated[loop]
        elif operation == "placeholder":
            raise Unsupported("what should be linear is not")
        else:
            known = [x for x in program.operands[k] if program.known[x] is None]
            width[k] = max((width[x] for x in known), default=1)
            repeated[k] = any(repeated[x] for x in known)
    return width, repeated


def _chunks(program: Program, instructions: Sequence[int]) -> list[list[int]]:
    chunks: list[list[int]] = [[]]
    for k in instructions:
        if program.operations[k] == "while":
            chunks += [[k], []]
        else:
            if len(chunks[-1]) >= _CHUNK and program.operations[k] not in ("sin", "cos"):
                chunks.append([])
            chunks[-1].append(k)
    return [c for c in chunks if c]


def _last_use(program: Program, chunks: Sequence[Sequence[Sequence[int]]]) -> dict:
    """In which function each scalar is used for the last time, if not where it is computed."""
    home: dict[int, tuple[int, int]] = {}
    last: dict[int, tuple[int, int]] = {}
    for number, part in enumerate(chunks):
        for index, chunk in enumerate(part):
            here = number, index
            for k in chunk:
                home[k] = here
                for x in program.operands[k]:
                    if home.get(x, here) != here:
                        last[x] = here
    never = (2, 0)
    for x in program.results:
        if x in home:
            last[x] = never
    dying: dict[tuple[int, int], list[int]] = {}
    for x, at in last.items():
        # What is computed once stays.
        if home[x][0] == 1:
            dying.setdefault(at, []).append(x)
    return {"last": last, "dying": dying}


def _function(
    module: Module,
    program: Program,
    chunk: Sequence[int],
    places: dict[int, Place],
    width: dict[int, int],
    last: dict,
    here: tuple[int, int],
) -> str:
    body = Body(module, program, places)
    operations, operands = program.operations, program.operands
    kept = last["last"]
    for position, k in enumerate(chunk):
        if k in body.values:
            pass
        elif _is_pair(operations, operands, chunk, position):
            _sine_and_cosine(body, k, chunk[position + 1], width[k])
        else:
            body.instruction(k, width[k])
        if k in kept:
            places[k] = module.frame.scalar(program.types[k], width[k])
            body.store(body.values[k], places[k], program.types[k])
    return module.function(body.lines)


def _is_pair(operations: list, operands: list, chunk: Sequence[int], position: int) -> bool:
    if operations[chunk[position]] not in ("sin", "cos") or position + 1 == len(chunk):
        return False
    k, other = chunk[position], chunk[position + 1]
    pair = {operations[k], operations[other]}
    return pair == {"sin", "cos"} and operands[k] == operands[other]


def _sine_and_cosine(body: Body, k: int, other: int, lanes: int) -> None:
    program = body.program
    kind = program.types[k]
    t = type_of(kind, lanes)
    x = body.value(program.operands[k][0], lanes)
    body.module.elementary.add(("sincos", kind, lanes))
    both = body.op(f"call {{{t}, {t}}} {symbol('sincos', kind, lanes)}({t} {x})")
    for y in (k, other):
        place = 0 if program.operations[y] == "sin" else 1
        body.values[y] = body.op(f"extractvalue {{{t}, {t}}} {both}, {place}")
        body.lanes_of[y] = lanes


def _looped(
    module: Module,
    program: Program,
    k: int,
    places: dict[int, Place],
    lanes: int,
    used: Sequence[int],
) -> list[str]:
    """The lines of a loop inside; sets the places of what it carries."""
    loop: Loop = program.loops[k]
    operands = program.operands[k]
    arguments = []
    start = Body(module, program, places)
    for place, x in enumerate(operands):
        if place < loop.fixed:
            arguments.append(places[x])
            continue
        kind = program.types[x]
        at = module.frame.scalar(kind, lanes)
        arguments.append(at)
        start.store(start.value(x, lanes), at, kind)
    carried = arguments[loop.fixed :]
    going = module.frame.scalar("b1", lanes)
    # What the condition writes in every turn is no place for what the body computes once.
    with module.frame.apart():
        condition = printed(module, loop.condition, arguments, loop.fixed)
    body = printed(module, loop.body, arguments, loop.fixed)
    for item in used:
        if program.operations[item] == "item" and program.operands[item][0] == k:
            places[item] = carried[program.operands[item][1]]
    # Each lane ends by itself: what it carries stays as it is from then on.
    test = Body(module, loop.condition, {})
    more = _result(test, condition.results[0], "b1", lanes)
    test.store(more, going, "b1")
    kinds = [loop.body.types[x] for x in loop.body.results]
    carry = carrying(module, body.results, carried, kinds, going if lanes > 1 else None)
    names = [module.label() for _ in range(3)]
    again, turn, end = names
    check = f"%{again}_more"
    memory = in_memory("b1", lanes)
    lines = [module.function(start.lines), *condition.once, *body.once]
    lines += [f"  br label %{again}", f"{again}:", *condition.again, module.function(test.lines)]
    lines += [f"  {check}_at = getelementptr i8, ptr %m, i64 {going.offset}"]
    lines += [f"  {check}_all = load {memory}, ptr {check}_at"]
    if lanes > 1:
        name = f"@llvm.vector.reduce.or.v{lanes}i8"
        module.declared.add(f"declare i8 {name}(<{lanes} x i8>)")
        lines += [f"  {check}_any = call i8 {name}({memory} {check}_all)"]
        lines += [f"  {check} = icmp ne i8 {check}_any, 0"]
    else:
        lines += [f"  {check} = icmp ne i8 {check}_all, 0"]
    lines += [f"  br i1 {check}, label %{turn}, label %{end}", f"{turn}:", *body.again, carry]
    lines += [f"  br label %{again}", f"{end}:"]
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
            b = type_of("b1", target.lanes)
            new = body.op(f"select {b} {mask}, {t} {new}, {t} {old}")
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
