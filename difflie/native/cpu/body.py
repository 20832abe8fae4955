"""Instructions of a program as those of LLVM, for numbers and for vectors of lanes."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from ..program import ELEMENTARY, OPERATIONS, Instructions, Unsupported
from .elementary import symbol
from .module import Module, Place
from .types import TYPE, bytes_of, in_memory, literal, type_of


class Body:
    """The lines of one function."""

    def __init__(self, module: Module, program: Instructions, places: dict[int, Place]):
        self.module, self.program, self.places = module, program, places
        self.lines: list[str] = []
        self.values: dict[int, str] = {}
        self.lanes_of: dict[int, int] = {}
        self._spread: dict[int, str] = {}
        self._count = 0

    def op(self, text: str) -> str:
        """Appends an instruction; its result."""
        self._count += 1
        name = f"%t{self._count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def load(self, place: Place, kind: str) -> str:
        """What lies at a place."""
        memory = in_memory(kind, place.lanes)
        at = self.op(f"getelementptr i8, ptr %m, i64 {place.offset}")
        align = min(bytes_of(kind) * place.lanes, 64)
        x = self.op(f"load {memory}, ptr {at}, align {align}")
        return self.op(f"trunc {memory} {x} to {type_of(kind, place.lanes)}") if kind == "b1" else x

    def store(self, value: str, place: Place, kind: str) -> None:
        """Writes a value to a place."""
        memory = in_memory(kind, place.lanes)
        if kind == "b1":
            value = self.op(f"zext {type_of(kind, place.lanes)} {value} to {memory}")
        at = self.op(f"getelementptr i8, ptr %m, i64 {place.offset}")
        align = min(bytes_of(kind) * place.lanes, 64)
        self.lines.append(f"  store {memory} {value}, ptr {at}, align {align}")

    def value(self, x: int, lanes: int) -> str:
        """A scalar of the program as an operand with so many lanes."""
        kind, known = self.program.types[x], self.program.known[x]
        if known is not None:
            return literal(known, kind, lanes)
        name = self.values.get(x)
        if name is None:
            place = self.places[x]
            name = self.values[x] = self.load(place, kind)
            self.lanes_of[x] = place.lanes
        if self.lanes_of[x] == lanes:
            return name
        if x not in self._spread:
            self._spread[x] = self.spread(name, kind, lanes)
        return self._spread[x]

    def spread(self, name: str, kind: str, lanes: int) -> str:
        """The same number in every lane."""
        t = type_of(kind, lanes)
        one = self.op(f"insertelement {t} poison, {TYPE[kind]} {name}, i32 0")
        zeros = f"<{lanes} x i32> zeroinitializer"
        return self.op(f"shufflevector {t} {one}, {t} poison, {zeros}")

    def instruction(self, k: int, lanes: int) -> None:
        """Appends instruction k of the program."""
        program = self.program
        operation, operands, kind = program.operations[k], program.operands[k], program.types[k]
        xs = [self.value(x, lanes) for x in operands]
        source = program.types[operands[-1]]
        if operation == "convert":
            self.values[k] = self._convert(xs[0], source, kind, lanes)
        else:
            self.values[k] = self._printed(operation, xs, source, kind, lanes)
        self.lanes_of[k] = lanes

    def sine_and_cosine(self, sine: int, cosine: int, lanes: int) -> None:
        """Appends both at once."""
        kind = self.program.types[sine]
        t = type_of(kind, lanes)
        x = self.value(self.program.operands[sine][0], lanes)
        self.module.elementary.add(("sincos", kind, lanes))
        both = self.op(f"call {{{t}, {t}}} {symbol('sincos', kind, lanes)}({t} {x})")
        for place, y in enumerate((sine, cosine)):
            self.values[y] = self.op(f"extractvalue {{{t}, {t}}} {both}, {place}")
            self.lanes_of[y] = lanes

    def _printed(self, name: str, xs: Sequence[str], source: str, kind: str, lanes: int) -> str:
        """An operation as `program.operations` describes it, the last operand of type `source`."""
        operation = OPERATIONS.get(name)
        of = source if operation and operation.compares else kind
        form = operation.llvm.get(of[0]) if operation else None
        if form is None:
            raise Unsupported(f"{name} of {of}")
        t = type_of(of, lanes)
        if form == ELEMENTARY:
            self.module.elementary.add((name, of, lanes))
            operands = ", ".join(f"{t} {x}" for x in xs)
            return self.op(f"call {t} {symbol(name, of, lanes)}({operands})")
        words = {**_words(of, lanes), **dict(zip("xyz", xs, strict=False))}
        *steps, last = form.split("; ")
        for step in steps:
            result, instruction = step.split(" := ")
            words[result] = self._step(instruction, words, of, lanes)
        return self._step(last, words, of, lanes)

    def _step(self, text: str, words: Mapping[str, str], kind: str, lanes: int) -> str:
        """One instruction of a form."""
        if text[0] != "@":
            return self.op(text.format_map(words))
        name, *operands = text.replace(",", "").split()
        t, xs = type_of(kind, lanes), [x.format_map(words) for x in operands]
        return self._called(f"{name}.{suffix(kind, lanes)}", t, t, *xs)

    def _called(self, name: str, result: str, source: str, *xs: str) -> str:
        """An intrinsic function."""
        self.module.declared.add(f"declare {result} {name}({', '.join([source] * len(xs))})")
        return self.op(f"call {result} {name}({', '.join(f'{source} {x}' for x in xs)})")

    def _convert(self, x: str, source: str, kind: str, lanes: int) -> str:
        s, t = type_of(source, lanes), type_of(kind, lanes)
        if kind == "b1":
            return self._printed("ne", [x, literal(0, source, lanes)], source, kind, lanes)
        if source[0] == "f" and kind[0] == "f":
            return self.op(f"{'fpext' if kind == 'f64' else 'fptrunc'} {s} {x} to {t}")
        if source[0] == "f":
            sign = "s" if kind[0] == "i" else "u"
            a, b = suffix(TYPE[kind], lanes), suffix(source, lanes)
            return self._called(f"@llvm.fpto{sign}i.sat.{a}.{b}", t, s, x)
        if kind[0] == "f":
            return self.op(f"{'si' if source[0] == 'i' else 'ui'}tofp {s} {x} to {t}")
        narrow, wide = bytes_of(source), bytes_of(kind)
        if source == "b1" or narrow < wide:
            return self.op(f"{'sext' if source[0] == 'i' else 'zext'} {s} {x} to {t}")
        return x if narrow == wide else self.op(f"trunc {s} {x} to {t}")


def suffix(kind: str, lanes: int) -> str:
    """What the names of intrinsic functions of a type end in."""
    return kind if lanes == 1 else f"v{lanes}{kind}"


@functools.cache
def _words(kind: str, lanes: int) -> dict[str, str]:
    """What forms name besides operands."""
    numbers = {"zero": 0, "one": 1, "minus": -1}
    known = {name: literal(x, kind, lanes) for name, x in numbers.items()}
    return {"t": type_of(kind, lanes), "b": type_of("b1", lanes), **known}
