"""Elementary functions as LLVM IR, for numbers and for vectors of lanes.

sin, cos, tan, exp, tanh and logistic are written out, in arithmetic that works on all lanes at
once; the others call libm for one lane after the other. A lane's result does not depend on their
number: each function has one template, no operation of which may be regrouped or fused.

The written ones are wrong by less than 0.8 ulps (sin, cos, exp, logistic), 0.9 (tanh) and 1.1
(tan) in both formats, results below the least normal number included. Beyond arguments of 1e9
(f32: 1e5) sin, cos and tan are libm's, in a branch that is taken if any lane is out there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ..program import ELEMENTARY, OPERATIONS
from .types import TYPE, literal, type_of

HALF_PI = Fraction("1.570796326794896619231321691639751442098584699687552910487472296153908203")
LOG_2 = Fraction("0.693147180559945309417232121458176568075500134360255254120680009493393622")


def parts(value: Fraction, number: int, kind: type[np.floating]) -> list[float]:
    """Numbers of a kind whose sum is the value: of what is left, the leading digits, cut off.

    None is negative, which products with zero would show.
    """
    parts: list[float] = []
    for _ in range(number):
        rest = value - sum(map(Fraction, parts))
        part = kind(float(rest))
        parts.append(float(part if Fraction(float(part)) <= rest else np.nextafter(part, kind(0))))
    return parts


@dataclass(frozen=True)
class Format:
    """A floating-point type and the constants that depend on it.

    Polynomials are given from the highest coefficient to the lowest.
    """

    name: str
    kind: type[np.floating]
    farthest: float  # argument that multiples of pi / 2 are taken from here, not in libm
    sin: tuple[float, ...]  # of (r - sin r) / r^3 in r^2
    cos: tuple[float, ...]  # of (cos r - 1 + r^2 / 2) / r^4 in r^2
    exp: tuple[float, ...]  # of (exp r - 1 - r) / r^2 in r, |r| <= log(2) / 2
    exp_ends: tuple[float, float]  # exp is 0 below them and infinite above
    tanh_end: float  # tanh is 1 from here on


FORMATS = {
    # sin, cos: fdlibm, k_sin.c and k_cos.c; exp: minimax by Remez' algorithm, relative to r
    "f64": Format(
        name="f64",
        kind=np.float64,
        farthest=1e9,
        sin=(
            *(-1.58969099521155010221e-10, 2.50507602534068634195e-08, -2.75573137070700676789e-06),
            *(1.98412698298579493134e-04, -8.33333333332248946124e-03, 1.66666666666666324348e-01),
        ),
        cos=(
            *(-1.13596475577881948265e-11, 2.08757232129817482790e-09, -2.75573143513906633035e-07),
            *(2.48015872894767294178e-05, -1.38888888888741095749e-03, 4.16666666666666019037e-02),
        ),
        exp=(
            *(2.0924155184315092e-09, 2.5108678217588848e-08, 2.755724384829348e-07),
            *(2.7557245320405557e-06, 2.4801587359027062e-05, 0.00019841269884920127),
            *(0.0013888888888867808, 0.008333333333322162, 0.0416666666666667),
            *(0.16666666666666677, 0.5),
        ),
        exp_ends=(-746.0, 710.0),
        tanh_end=19.1,
    ),
    # sin, cos: Cephes, sinf.c
    "f32": Format(
        name="f32",
        kind=np.float32,
        farthest=1e5,
        sin=(1.9515295891e-4, -8.3321608736e-3, 1.6666654611e-1),
        cos=(2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2),
        exp=(0.00019913648, 0.0013940312, 0.008333274, 0.041666366, 0.16666667, 0.5),
        exp_ends=(-104.0, 89.0),
        tanh_end=9.1,
    ),
}


PURE = "nounwind willreturn memory(none)"


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

    def to(self, kind: str, cast: str = "bitcast") -> Value:
        """The same bits, or the last of them, as another kind."""
        types = self.body.type(self.kind), self.body.type(kind)
        return self.body.write(f"{cast} {types[0]} {self.name} to {types[1]}", kind)


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
        name = OPERATIONS[name].libm + ("f" if self.form.name == "f32" else "")
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


def _sum(x: Value | float, y: Value) -> tuple[Value, Value]:
    """A sum and what rounding took from it, for |x| >= |y| or x = 0 (Dekker)."""
    total = y.body.value(x, "f") + y
    return total, (x - total) + y


def _quotient(b: Function, x: Value, rest_x: Value, y: Value, rest_y: Value) -> Value:
    """(x + rest_x) / (y + rest_y), the rests roundings of x and y."""
    inverse = 1.0 / y
    guess = x * inverse
    rest = b.fma(-guess, y, x) + b.fma(-guess, rest_y, rest_x)
    return b.fma(rest, inverse, guess)


def _turned(b: Function, x: Value) -> tuple[Value, tuple[Value, Value], tuple[Value, Value]]:
    """The nearest multiple k of pi / 2, sine and cosine of x - k pi / 2, with their roundings."""
    first, second, third = parts(HALF_PI, 3, b.form.kind)
    n, k = b.nearest(x, 2 / np.pi)
    # The first difference is exact, and a multiple of the last digit of `step`: what rounding
    # takes from the second one is exact, too (Cody and Waite, Dekker). x - k pi / 2 is r - t.
    near = b.fma(n, -first, x)
    step = n * second
    r = near - step
    t = b.fma(n, third, ((r - near) + step) + b.fma(n, second, -step))
    z = r * r
    half = z * 0.5
    cos = 1.0 - half
    rest = (1.0 - cos) - half
    # signs are such that x = -0 remains
    sin = _sum(r, -b.fma(r * z, b.polynomial(z, b.form.sin), t * cos))
    rest = b.fma(z * z, b.polynomial(z, b.form.cos), b.fma(r, t, rest))
    return k, sin, _sum(cos, rest)


def _flipped(x: Value, sign: Value) -> Value:
    """With the other sign where the second bit of an integer is set."""
    return (x.to("i") ^ ((sign & 2) << (x.body.bits - 2))).to("f")


def _sincos(b: Function, x: Value) -> tuple[Value, Value]:
    k, (sin, _), (cos, _) = _turned(b, x)
    odd = k.to("b", "trunc")
    return _flipped(b.select(odd, cos, sin), k), _flipped(b.select(odd, sin, cos), k + 1)


def _tan(b: Function, x: Value) -> Value:
    k, sin, cos = _turned(b, x)
    odd = k.to("b", "trunc")
    above = (b.select(odd, p, q) for p, q in zip(cos, sin, strict=True))
    below = (b.select(odd, p, q) for p, q in zip(sin, cos, strict=True))
    result = _flipped(_quotient(b, *above, *below), k + k)
    return b.select(x.is_equal(0.0), x, result)


def _grown(b: Function, x: Value) -> tuple[Value, Value, Value]:
    """n, r and p with exp x = 2^n (1 + r + p), |p| < |r| <= log(2) / 2."""
    first, second = parts(LOG_2, 2, b.form.kind)
    n, k = b.nearest(x, 1 / np.log(2))
    near = b.fma(n, -first, x)  # exact
    r = b.fma(n, -second, near)
    rest = b.fma(n, -second, near - r)
    return k, r, b.fma(r * r, b.polynomial(r, b.form.exp), rest)


def _exp_parts(b: Function, x: Value) -> tuple[Value, Value]:
    """exp x and what rounding takes from it."""
    low, high = b.form.exp_ends
    x = b.select(x > high, high, x)
    x = b.select(x < low, low, x)
    n, r, p = _grown(b, x)
    one, rest = _sum(1.0, r)
    one, rest = _sum(one, rest + p)
    return b.times_power_of_2(one, n), b.times_power_of_2(rest, n)


def _exp(b: Function, x: Value) -> Value:
    return _exp_parts(b, x)[0]


def _tanh(b: Function, x: Value) -> Value:
    """(exp 2x - 1) / (exp 2x + 1), without cancellation near 0."""
    size = b.call("fabs", x)
    size = b.select(size > b.form.tanh_end, b.form.tanh_end, size)
    n, r, p = _grown(b, size + size)
    scale = b.power_of_2(n)
    r, p = _sum(r, p)
    parts: list[Value] = []
    for one in (-1.0, 1.0):
        whole, lost = _sum(scale, b.value(one, "f"))
        total, rest = _sum(whole, scale * r)
        parts += total, rest + b.fma(scale, p, lost)
    return b.call("copysign", _quotient(b, *parts), x)


def _logistic(b: Function, x: Value) -> Value:
    """1 / (1 + exp -x), or exp x / (1 + exp x) where x < 0."""
    e, rest = _exp_parts(b, -b.call("fabs", x))
    below, rest_below = _sum(1.0, e)
    negative = x < 0.0
    above, rest_above = b.select(negative, e, 1.0), b.select(negative, rest, 0.0)
    return _quotient(b, above, rest_above, below, rest_below + rest)


# Names are those of jax.lax, and `sincos`: both results as a structure of two.
_WRITTEN: dict[str, Callable[[Function, Value], Value]] = {
    "exp": _exp,
    "tanh": _tanh,
    "logistic": _logistic,
}
# the functions of libm that replace the results of arguments far out
_PERIODIC = {"sin": ("sin",), "cos": ("cos",), "tan": ("tan",), "sincos": ("sin", "cos")}
NAMES: dict[str, int] = {
    **{x.name: x.operands for x in OPERATIONS.values() if x.llvm.get("f") == ELEMENTARY},
    "sincos": 1,
}
"""The functions that there are, and how many operands they have."""


def symbol(name: str, dtype: str, lanes: int) -> str:
    """The name in LLVM of a function of "f64" or "f32"; a lane alone is a number, no vector."""
    if name not in NAMES or dtype not in FORMATS or lanes < 1:
        raise ValueError(f"no elementary function {name} of {lanes} x {dtype}")
    return f"@difflie_{name}_{dtype}_{lanes}"


def definitions(used: Iterable[tuple[str, str, int]]) -> str:
    """The functions in LLVM IR, each (name, dtype, lanes) once, after all declarations.

    Declarations have a line each; intrinsic functions are declared in LLVM's shortest way.
    """
    texts, declared = [], set()
    for name, dtype, lanes in sorted(set(used)):
        callee, form = symbol(name, dtype, lanes), FORMATS[dtype]
        b = Function(form, lanes, ("x", "y")[: NAMES[name]])
        if name in _PERIODIC:
            far = _give_periodic(b, name, callee)
            texts.append(far.text(f"{callee}_far", len(_PERIODIC[name]), "cold noinline "))
            declared |= far.declared
        elif name in _WRITTEN:
            b.give([_WRITTEN[name](b, *b.operands)])
        else:
            b.give([b.libm(name, *b.operands)])
        texts.append(b.text(callee, len(_PERIODIC.get(name, name[:1]))))
        declared |= b.declared
    return "\n".join([*sorted(declared), *texts]) + "\n"


def _give_periodic(b: Function, name: str, callee: str) -> Function:
    """Completes a function; gives the one that it calls where any lane is far out, for libm."""
    (x,), names = b.operands, _PERIODIC[name]
    near = dict(zip(("sin", "cos"), _sincos(b, x), strict=True)) if name != "tan" else {}
    results = [near[n] for n in names] if near else [_tan(b, x)]
    is_far = b.any(_is_far(x))
    b.lines += [f"  br i1 {is_far.name}, label %far, label %near", "near:"]
    b.give(results)
    whole = b.result(len(names))
    b.lines.append("far:")
    typed = b.typed([x, *results])
    result = b.write(f"call {whole} {callee}_far({typed})")
    b.lines.append(f"  ret {whole} {result.name}")
    far = Function(b.form, b.lanes, ("x", *names))
    x, *own = far.operands
    far.give([far.select(_is_far(x), far.libm(n, x), y) for n, y in zip(names, own, strict=True)])
    return far


def _is_far(x: Value) -> Value:
    """Not so for NaN: its results are NaN on the short way, too."""
    return x.body.call("fabs", x) > x.body.form.farthest
