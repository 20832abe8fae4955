"""Instructions of a program as those of LLVM, for numbers and for vectors of lanes."""

from __future__ import annotations

from collections.abc import Sequence

from ..program import COMPARE, Instructions, Unsupported
from .elementary import NAMES, symbol
from .module import Module, Place
from .types import TYPE, bytes_of, in_memory, literal, type_of

_WHOLE = {x: x for x in ("add", "sub", "mul", "and", "or", "xor")}
# By the first letter of the type: what is one instruction with two operands.
_SIMPLE = {
    "f": {x: f"f{x} contract" for x in ("add", "sub", "mul", "div")},
    "i": _WHOLE | {"div": "sdiv", "rem": "srem"},
    "u": _WHOLE | {"div": "udiv", "rem": "urem"},
    "b": _WHOLE | {"max": "or", "min": "and"},
}
_INTRINSIC = {
    "abs": "fabs",
    "ceil": "ceil",
    "floor": "floor",
    "round": "roundeven",
    "sqrt": "sqrt",
}


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
        simple = _SIMPLE[kind[0]].get(operation)
        if simple is not None:
            self.values[k] = self.op(f"{simple} {type_of(kind, lanes)} {xs[0]}, {xs[1]}")
        else:
            source = program.types[operands[-1]]
            self.values[k] = self._other(operation, xs, source, kind, lanes)
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

    def _other(self, operation: str, xs: Sequence[str], source: str, kind: str, lanes: int) -> str:
        """An operation on operands, the last one of type `source`."""
        t, b = type_of(kind, lanes), type_of("b1", lanes)
        x, is_float = xs[0], kind[0] == "f"
        if operation == "select":
            # A choice between values that are loaded would be looked through again and again.
            yes, no = (self.op(f"freeze {t} {y}") for y in xs[1:])
            return self.op(f"select {b} {x}, {t} {yes}, {t} {no}")
        if operation in COMPARE:
            return self._compare(operation, source, lanes, *xs)
        if operation == "convert":
            return self._convert(x, source, kind, lanes)
        if operation == "neg":
            return self.op(f"fneg {t} {x}") if is_float else self._opposite(x, kind, lanes)
        if operation == "not":
            return self.op(f"xor {t} {x}, {literal(1 if kind == 'b1' else -1, kind, lanes)}")
        if operation in ("max", "min"):
            best = self._compare("gt" if operation == "max" else "lt", kind, lanes, *xs)
            if is_float:
                # What is not a number is the result.
                nan = self.op(f"fcmp uno {t} {x}, {x}")
                best = self.op(f"or {b} {best}, {nan}")
            return self.op(f"select {b} {best}, {t} {x}, {t} {xs[1]}")
        if operation == "sign":
            zero = literal(0, kind, lanes)
            up, down = (self._compare(c, kind, lanes, x, zero) for c in ("gt", "lt"))
            result = self.op(f"select {b} {down}, {t} {literal(-1, kind, lanes)}, {t} {x}")
            return self.op(f"select {b} {up}, {t} {literal(1, kind, lanes)}, {t} {result}")
        if is_float and operation in _INTRINSIC:
            suffix = kind if lanes == 1 else f"v{lanes}{kind}"
            return self._called(f"@llvm.{_INTRINSIC[operation]}.{suffix}", t, t, x)
        if is_float and operation in NAMES:
            self.module.elementary.add((operation, kind, lanes))
            operands = ", ".join(f"{t} {y}" for y in xs)
            return self.op(f"call {t} {symbol(operation, kind, lanes)}({operands})")
        if kind[0] == "i" and operation == "abs":
            opposite = self._opposite(x, kind, lanes)
            below = self._compare("lt", kind, lanes, x, literal(0, kind, lanes))
            return self.op(f"select {b} {below}, {t} {opposite}, {t} {x}")
        raise Unsupported(f"{operation} of {kind}")

    def _opposite(self, x: str, kind: str, lanes: int) -> str:
        return self.op(f"sub {type_of(kind, lanes)} {literal(0, kind, lanes)}, {x}")

    def _called(self, name: str, result: str, source: str, x: str) -> str:
        """An intrinsic function of one operand."""
        self.module.declared.add(f"declare {result} {name}({source})")
        return self.op(f"call {result} {name}({source} {x})")

    def _compare(self, name: str, kind: str, lanes: int, x: str, y: str) -> str:
        t = type_of(kind, lanes)
        if kind[0] == "f":
            return self.op(f"fcmp {'u' if name == 'ne' else 'o'}{name} {t} {x}, {y}")
        sign = "" if name in ("eq", "ne") else "s" if kind[0] == "i" else "u"
        return self.op(f"icmp {sign}{name} {t} {x}, {y}")

    def _convert(self, x: str, source: str, kind: str, lanes: int) -> str:
        s, t = type_of(source, lanes), type_of(kind, lanes)
        if kind == "b1":
            return self._compare("ne", source, lanes, x, literal(0, source, lanes))
        if source[0] == "f" and kind[0] == "f":
            return self.op(f"{'fpext' if kind == 'f64' else 'fptrunc'} {s} {x} to {t}")
        if source[0] == "f":
            sign = "s" if kind[0] == "i" else "u"
            a, b = (c if lanes == 1 else f"v{lanes}{c}" for c in (TYPE[kind], source))
            return self._called(f"@llvm.fpto{sign}i.sat.{a}.{b}", t, s, x)
        if kind[0] == "f":
            return self.op(f"{'si' if source[0] == 'i' else 'ui'}tofp {s} {x} to {t}")
        narrow, wide = bytes_of(source), bytes_of(kind)
        if source == "b1" or narrow < wide:
            return self.op(f"{'sext' if source[0] == 'i' else 'zext'} {s} {x} to {t}")
        return x if narrow == wide else self.op(f"trunc {s} {x} to {t}")
