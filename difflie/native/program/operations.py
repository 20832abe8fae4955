"""What a scalar of a program may be computed by: one entry for each operation.

An entry says how many operands there are, what the result is of known numbers, and the forms that
back ends print. An operation that is added here is known to all of them. What is not here is
printed by each back end in its own way: conversions, which depend on two types, and what is no
scalar operation (`while`, `product`, `item`, and the sine and cosine of the same number at once).

Forms go by the first letter of a type, f, i, u or b: of the result, or of what is compared. They
name the operands x, y and z. In C, a form is an expression. In LLVM, it is instructions, of which
all but the last have a name:

    below := fcmp olt {t} {x}, {zero}; select {b} {below}, {t} {zero}, {t} {x}

`@name operands` calls an intrinsic function of operands of the type, and the function of
`cpu/elementary.py` in `ELEMENTARY`. Besides, forms may name

    t, b                the type, and that of truths
    zero, one, minus    the numbers 0, 1 and -1 of the type
    u, s                in C: the type without a sign; the letter that functions of floats end in
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

ELEMENTARY = "elementary"


class Operation(NamedTuple):
    """An operation: number of operands, result of known numbers, and forms by letters of types.

    number: a function of numpy's scalars; None where nothing folds it. libm: the function of C.
    compares: whether the result is a truth.
    """

    name: str
    operands: int
    number: Callable | None
    llvm: Mapping[str, str]
    c: Mapping[str, str]
    libm: str = ""
    compares: bool = False


def _by_letter(forms: Mapping[str, str]) -> dict[str, str]:
    """Of forms that several letters may share, that of each."""
    return {letter: form for letters, form in forms.items() for letter in letters}


def _function(name: str, number: Callable, operands: int = 1) -> Operation:
    """A function of libm; integers have none."""
    arguments = ", ".join(["{x}", "{y}"][:operands])
    c = {"f": f"{name}{{s}}({arguments})"}
    return Operation(name, operands, number, {"f": ELEMENTARY}, c, name)


def _intrinsic(name: str, number: Callable, llvm: str, c: str) -> Operation:
    """A function of floating-point numbers that is an instruction of most processors."""
    return Operation(name, 1, number, {"f": f"@llvm.{llvm} {{x}}"}, {"f": f"{c}{{s}}({{x}})"})


def _arithmetic(name: str, number: Callable, symbol: str) -> Operation:
    """A sum, difference or product. In C, numbers with a sign must not overflow."""
    llvm = {"f": f"f{name} {{t}} {{x}}, {{y}}", "iu": f"{name} {{t}} {{x}}, {{y}}"}
    c = {"f": f"{{x}} {symbol} {{y}}", "iu": f"({{t}})(({{u}}){{x}} {symbol} ({{u}}){{y}})"}
    return Operation(name, 2, number, _by_letter(llvm), _by_letter(c))


def _bitwise(name: str, number: Callable, symbol: str) -> Operation:
    llvm = {"iub": f"{name} {{t}} {{x}}, {{y}}"}
    return Operation(
        name, 2, number, _by_letter(llvm), _by_letter({"iub": f"{{x}} {symbol} {{y}}"})
    )


def _comparison(name: str, number: Callable, symbol: str) -> Operation:
    equality = name in ("eq", "ne")
    llvm = {
        "f": f"fcmp {'u' if name == 'ne' else 'o'}{name} {{t}} {{x}}, {{y}}",
        "i": f"icmp {'' if equality else 's'}{name} {{t}} {{x}}, {{y}}",
        "ub": f"icmp {'' if equality else 'u'}{name} {{t}} {{x}}, {{y}}",
    }
    c = {"fiub": f"{{x}} {symbol} {{y}}"}
    return Operation(name, 2, number, _by_letter(llvm), _by_letter(c), compares=True)


def _extreme(name: str, number: Callable, than: str, symbol: str, of_truths: str) -> Operation:
    """The greatest or least of two; what is not a number is the result."""
    chosen = "select {b} {best}, {t} {x}, {t} {y}"
    llvm = {
        "f": f"beyond := fcmp o{than} {{t}} {{x}}, {{y}}; nan := fcmp uno {{t}} {{x}}, {{x}};"
        f" best := or {{b}} {{beyond}}, {{nan}}; {chosen}",
        "i": f"best := icmp s{than} {{t}} {{x}}, {{y}}; {chosen}",
        "u": f"best := icmp u{than} {{t}} {{x}}, {{y}}; {chosen}",
        "b": f"{of_truths} {{t}} {{x}}, {{y}}",
    }
    c = {
        "f": f"{{x}} {symbol} {{y}} || {{x}} != {{x}} ? {{x}} : {{y}}",
        "iub": f"{{x}} {symbol} {{y}} ? {{x}} : {{y}}",
    }
    return Operation(name, 2, number, llvm, _by_letter(c))


def _fused(name: str, x: str, z: str) -> Operation:
    """A product and a sum with one rounding, of x and z or their negatives; see `fusion`."""
    minus = "".join(f"less_{a} := fneg {{t}} {{{a}}}; " for a in "xz" if f"-{a}" in (x, z))
    left, right = (f"{{{a.replace('-', 'less_')}}}" for a in (x, z))
    llvm = f"{minus}@llvm.fma {left}, {{y}}, {right}"
    c = f"fma{{s}}({x.replace('x', '{x}')}, {{y}}, {z.replace('z', '{z}')})"
    return Operation(name, 3, None, {"f": llvm}, {"f": c})


_OPPOSITE = "({t})(0 - ({u}){x})"


def _division(name: str, number: Callable, of_floats: tuple[str, str, str]) -> Operation:
    """A quotient or rest, of whole numbers as XLA has it; that of floats as LLVM, C and libm."""
    symbol, by_zero, by_minus_one = {
        "div": ("/", "({t})-1", _OPPOSITE),
        "rem": ("%", "{x}", "0"),
    }[name]
    llvm, c, libm = of_floats
    forms = {
        "i": f"{{y}} == 0 ? {by_zero} : {{y}} == -1 ? {by_minus_one} : {{x}} {symbol} {{y}}",
        "u": f"{{y}} == 0 ? {by_zero} : {{x}} {symbol} {{y}}",
    }
    instructions = {x: f"{x.replace('i', 's')}{name} {{t}} {{x}}, {{y}}" for x in "iu"}
    return Operation(name, 2, number, {"f": llvm, **instructions}, {"f": c, **forms}, libm)


_LIST = (
    _arithmetic("add", operator.add, "+"),
    _arithmetic("sub", operator.sub, "-"),
    _arithmetic("mul", operator.mul, "*"),
    _fused("fma", "x", "z"),
    _fused("fms", "x", "-z"),
    _fused("fnma", "-x", "z"),
    _division("div", np.divide, ("fdiv {t} {x}, {y}", "{x} / {y}", "")),
    _division("rem", np.fmod, (ELEMENTARY, "fmod{s}({x}, {y})", "fmod")),
    Operation(
        "neg",
        1,
        np.negative,
        _by_letter({"f": "fneg {t} {x}", "iu": "sub {t} {zero}, {x}"}),
        _by_letter({"f": "-{x}", "iu": _OPPOSITE}),
    ),
    Operation(
        "abs",
        1,
        np.abs,
        {
            "f": "@llvm.fabs {x}",
            "i": "opposite := sub {t} {zero}, {x}; below := icmp slt {t} {x}, {zero};"
            " select {b} {below}, {t} {opposite}, {t} {x}",
        },
        {"f": "fabs{s}({x})", "i": f"{{x}} < 0 ? {_OPPOSITE} : {{x}}", "u": "{x}"},
    ),
    Operation(
        "sign",
        1,
        np.sign,
        {
            "f": "up := fcmp ogt {t} {x}, {zero}; down := fcmp olt {t} {x}, {zero};"
            " other := select {b} {down}, {t} {minus}, {t} {x};"
            " select {b} {up}, {t} {one}, {t} {other}",
            "i": "up := icmp sgt {t} {x}, {zero}; down := icmp slt {t} {x}, {zero};"
            " other := select {b} {down}, {t} {minus}, {t} {x};"
            " select {b} {up}, {t} {one}, {t} {other}",
            "u": "up := icmp ugt {t} {x}, {zero}; select {b} {up}, {t} {one}, {t} {x}",
        },
        _by_letter(
            {
                "fi": "{x} > {zero} ? {one} : {x} < {zero} ? {minus} : {x}",
                "u": "{x} > {zero} ? {one} : {x}",
            }
        ),
    ),
    _extreme("max", np.maximum, "gt", ">", "or"),
    _extreme("min", np.minimum, "lt", "<", "and"),
    _intrinsic("ceil", np.ceil, "ceil", "ceil"),
    _intrinsic("floor", np.floor, "floor", "floor"),
    _intrinsic("round", np.rint, "roundeven", "rint"),
    _intrinsic("sqrt", np.sqrt, "sqrt", "sqrt"),
    _bitwise("and", np.bitwise_and, "&"),
    _bitwise("or", np.bitwise_or, "|"),
    _bitwise("xor", np.bitwise_xor, "^"),
    Operation(
        "not",
        1,
        np.invert,
        _by_letter({"iub": "xor {t} {x}, {minus}"}),
        _by_letter({"iu": "~{x}", "b": "!{x}"}),
    ),
    _comparison("eq", operator.eq, "=="),
    _comparison("ge", operator.ge, ">="),
    _comparison("gt", operator.gt, ">"),
    _comparison("le", operator.le, "<="),
    _comparison("lt", operator.lt, "<"),
    _comparison("ne", operator.ne, "!="),
    Operation(
        "select",
        3,
        None,
        # A choice between values that are loaded would be looked through again and again.
        _by_letter(
            {
                "fiub": "yes := freeze {t} {y}; no := freeze {t} {z};"
                " select {b} {x}, {t} {yes}, {t} {no}"
            }
        ),
        _by_letter({"fiub": "{x} ? {y} : {z}"}),
    ),
    _function("exp", np.exp),
    _function("tanh", np.tanh),
    Operation(
        "logistic",
        1,
        lambda x: 1 / (1 + np.exp(-x)),
        {"f": ELEMENTARY},
        {"f": "{one} / ({one} + exp{s}(-{x}))"},
    ),
    _function("sin", np.sin),
    _function("cos", np.cos),
    _function("tan", np.tan),
    _function("exp2", np.exp2),
    _function("expm1", np.expm1),
    _function("log", np.log),
    _function("log1p", np.log1p),
    _function("sinh", np.sinh),
    _function("cosh", np.cosh),
    _function("asin", np.arcsin),
    _function("acos", np.arccos),
    _function("atan", np.arctan),
    _function("asinh", np.arcsinh),
    _function("acosh", np.arccosh),
    _function("atanh", np.arctanh),
    _function("cbrt", np.cbrt),
    _function("erf", np.vectorize(math.erf, otypes=[float])),
    _function("erfc", np.vectorize(math.erfc, otypes=[float])),
    _function("pow", np.power, 2),
    _function("atan2", np.arctan2, 2),
)
OPERATIONS: Mapping[str, Operation] = {x.name: x for x in _LIST}


def _numbers(operands: int, compares: bool) -> dict[str, Callable]:
    return {
        x.name: x.number
        for x in _LIST
        if x.number and (x.operands, x.compares) == (operands, compares)
    }


UNARY: Mapping[str, Callable] = _numbers(1, False)
BINARY: Mapping[str, Callable] = _numbers(2, False)
COMPARE: Mapping[str, Callable] = _numbers(2, True)
