"""Functions of numbers or of vectors of lanes, written as LLVM IR by arithmetic on their values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .coefficients import Format
from .types import TYPE, literal, type_of

PURE = "nounwind willreturn memory(none)"
# Functions of libm by another name than jax has for them.
_LIBM = {"rem": "fmod"}


def _operator(float_name: str, integer_name: str = "", result: str = "") -> Any:
    """A method that writes an instruction with two operands; numbers stand for all lanes."""

    def method(x: Value, y: Value | float) -> Value:
        y = x.body.value(y, x.kind)
        name = float_name if x.kind == "f" else integer_name
        return x.body.write(f"{name} {x.body.type(x.kind)} {x.name}, {y.name}", result or x.kind)

    return method


class Value:
    """A value of the function being written, of one kind: f, i or b; arithmetic writes it on."""

    def __init__(self, body: Function, name: str, kind: str):
        self.body, self.name, self.kind = body, name, kind

    __add__ = _operator("fadd", "add")
    __sub__ = _operator("fsub", "sub")
    __mul__ = _operator("fmul")
    __truediv__ = _operator("fdiv")
    __gt__ = _operator("fcmp ogt", result="b")
    __lt__ = _operator("fcmp olt", result="b")
    is_equal = _operator("fcmp oeq", result="b")
    __and__ = _operator("", "and")
    __xor__ = _operator("", "xor")
    __lshift__ = _operator("", "shl")
    __rshift__ = _operator("", "lshr")

    def __rsub__(self, other: float) -> Value:
        return self.body.value(other, self.kind) - self

    def __rtruediv__(self, other: float) -> Value:
        return self.body.value(other, self.kind) / self

    def __neg__(self) -> Value:
        return self.body.write(f"fneg {self.body.type('f')} {self.name}", "f")

    def to(self, kind: str, how: str = "bitcast") -> Value:
        """The same bits, or the last of them, as another kind."""
        types = self.body.type(self.kind), self.body.type(kind)
        return self.body.write(f"{how} {types[0]} {self.name} to {types[1]}", kind)


class Function:
    """A function under way: its operands, its lines, and the declarations that they need."""

    def __init__(self, form: Format, lanes: int, operands: Sequence[str]):
        self.form, self.lanes = form, lanes
        layout = np.finfo(form.kind)
        self.bits, self.mantissa, self.bias = layout.bits, layout.nmant, layout.maxexp - 1
        self._kinds = {"f": form.name, "i": f"i{layout.bits}", "b": "b1"}
        self.operands = [Value(self, f"%{name}", "f") for name in operands]
        self.lines: list[str] = []
        self.declared: set[str] = set()
        self.last = 0

    def type(self, kind: str) -> str:
        return type_of(self._kinds[kind], self.lanes)

    def result(self, number: int) -> str:
        """The type of results, several as a structure."""
        t = self.type("f")
        return t if number == 1 else f"{{{', '.join([t] * number)}}}"

    def give(self, results: Sequence[Value]) -> None:
        t, whole = self.type("f"), self.result(len(results))
        name = results[0].name if len(results) == 1 else "poison"
        for i, x in enumerate(results if len(results) > 1 else ()):
            name = self.write(f"insertvalue {whole} {name}, {t} {x.name}, {i}").name
        self.lines.append(f"  ret {whole} {name}")

    def text(self, name: str, results: int, attributes: str = "") -> str:
        head = f"define internal {self.result(results)} {name}({self.typed(self.operands)})"
        return "\n".join([f"{head} {attributes}{PURE} {{", *self.lines, "}"])

    def typed(self, xs: Sequence[Value | float]) -> str:
        """Operands of a function, with their types."""
        return ", ".join(f"{self.type('f')} {self.value(x, 'f').name}" for x in xs)

    def write(self, text: str, kind: str = "") -> Value:
        self.last += 1
        self.lines.append(f"  %v{self.last} = {text}")
        return Value(self, f"%v{self.last}", kind)

    def value(self, x: Value | float, kind: str) -> Value:
        """A number in all lanes; values as they are."""
        if isinstance(x, Value):
            return x
        return Value(self, literal(x, self._kinds[kind], self.lanes), kind)

    def call(self, name: str, *xs: Value | float) -> Value:
        """An intrinsic function of floating-point numbers."""
        t = self.type("f")
        suffix = self.form.name if self.lanes == 1 else f"v{self.lanes}{self.form.name}"
        self.declared.add(f"declare {t} @llvm.{name}.{suffix}({', '.join([t] * len(xs))})")
        return self.write(f"call {t} @llvm.{name}.{suffix}({self.typed(xs)})", "f")

    def fma(self, x: Value, y: Value | float, z: Value | float) -> Value:
        return self.call("fma", x, y, z)

    def select(self, condition: Value, x: Value | float, y: Value | float) -> Value:
        truth = f"{self.type('b')} {condition.name}"
        return self.write(f"select {truth}, {self.typed([x, y])}", "f")

    def libm(self, name: str, *xs: Value) -> Value:
        """A function of libm, called for one lane after the other."""
        t, one = self.type("f"), TYPE[self.form.name]
        name = _LIBM.get(name, name) + ("f" if self.form.name == "f32" else "")
        self.declared.add(f"declare {one} @{name}({', '.join([one] * len(xs))}) {PURE}")

        def called(xs: Sequence[Value]) -> Value:
            # not a builtin: LLVM must put nothing else in its place, in one width but not another
            typed = ", ".join(f"{one} {x.name}" for x in xs)
            return self.write(f"call {one} @{name}({typed}) nobuiltin", "f")

        if self.lanes == 1:
            return called(xs)
        result = Value(self, "poison", "f")
        for i in range(self.lanes):
            y = called([self.write(f"extractelement {t} {x.name}, i32 {i}") for x in xs])
            text = f"insertelement {t} {result.name}, {one} {y.name}, i32 {i}"
            result = self.write(text, "f")
        return result

    def any(self, x: Value) -> Value:
        """Whether a truth value holds in any lane, as a single one."""
        if self.lanes == 1:
            return x
        name, t = f"@llvm.vector.reduce.or.v{self.lanes}i1", self.type("b")
        self.declared.add(f"declare i1 {name}({t})")
        return self.write(f"call i1 {name}({t} {x.name})")

    def polynomial(self, x: Value, coefficients: Sequence[float]) -> Value:
        result = self.value(coefficients[0], "f")
        for c in coefficients[1:]:
            result = self.fma(result, x, c)
        return result

    def nearest(self, x: Value, factor: float) -> tuple[Value, Value]:
        """The whole number nearest to a product, as a floating-point number and as an integer.

        Next to 1.5 2^mantissa numbers are whole, and their last bits count on from there.
        """
        whole = 1.5 * 2**self.mantissa
        moved = self.fma(x, factor, whole)
        number = moved.to("i") - self.value(whole, "f").to("i")
        return moved - whole, number

    def power_of_2(self, n: Value) -> Value:
        return ((n + self.bias) << self.mantissa).to("f")

    def times_power_of_2(self, x: Value, n: Value) -> Value:
        """In two steps, since 2^n itself may be too large or too small."""
        middle = self.bias + 1
        half = ((n + 2 * middle) >> 1) - middle
        return x * self.power_of_2(half) * self.power_of_2(n - half)
