"""Operations that go entry by entry."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from ..program import BINARY, COMPARE, UNARY, Program, Unsupported
from .writing import PLAIN, SCALAR_RULES

Params = dict[str, Any]


def choice(program: Program, kind: str, _: Params, which: int, *cases: int) -> int:
    """The case of this number; the nearest where there is none."""
    if program.types[which] == "b1":
        no, yes = cases
        return program.select(which, no, yes, kind)
    return program.entry(which, cases, kind)


def _unary(name: str) -> Callable[..., int]:
    return lambda program, kind, _, x: program.unary(name, x, kind)


def _binary(name: str) -> Callable[..., int]:
    # Of the arithmetic that is met most, without a detour.
    method = getattr(Program, name, None) if name in ("add", "sub", "mul", "div") else None
    if method is not None:
        return lambda program, kind, _, x, y: method(program, x, y, kind)
    return lambda program, kind, _, x, y: program.binary(name, x, y, kind)


def _compare(name: str) -> Callable[..., int]:
    return lambda program, kind, _, x, y: program.compare(name, x, y)


def _round(program: Program, kind: str, params: Params, x: int) -> int:
    if int(params["rounding_method"]) != 1:
        raise Unsupported("rounding half away from zero")
    return program.unary("round", x, kind)


def _pow(program: Program, kind: str, _: Params, x: int, y: int) -> int:
    return program.binary("pow", x, program.convert(y, kind), kind)


def _one_minus_square(program: Program, kind: str, _: Params, x: int) -> int:
    """(1 + x) (1 - x), as jax from 0.12 has it."""
    one = program.one(kind)
    return program.mul(program.add(one, x, kind), program.sub(one, x, kind), kind)


def _log2(program: Program, kind: str, _: Params, x: int) -> int:
    by = program.constant(1 / math.log(2), kind)
    return program.mul(program.unary("log", x, kind), by, kind)


def _polynomial(program: Program, kind: str, _: Params, x: int, *coefficients: int) -> int:
    """By Horner's rule; the coefficient of the lowest power comes first."""

    def step(total: int, c: int) -> int:
        return program.add(program.mul(total, x, kind), c, kind)

    return functools.reduce(step, reversed(coefficients))


def _clamp(program: Program, kind: str, _: Params, low: int, x: int, high: int) -> int:
    return program.binary("min", program.binary("max", x, low, kind), high, kind)


SCALAR_RULES |= {
    **{name: _unary(name) for name in UNARY},
    **{name: _binary(name) for name in BINARY},
    **{name: _compare(name) for name in COMPARE},
    "add_any": _binary("add"),
    "clamp": _clamp,
    "convert_element_type": lambda program, kind, _, x, *__: program.convert(x, kind),
    "integer_pow": lambda program, kind, params, x: program.power(x, params["y"], kind),
    "is_finite": lambda program, kind, _, x: program.is_finite(x),
    "log2": _log2,
    "one_minus_square": _one_minus_square,
    "polynomial": _polynomial,
    "pow": _pow,
    "round": _round,
    "rsqrt": lambda program, kind, _, x: program.div(
        program.one(kind), program.unary("sqrt", x, kind), kind
    ),
    "select_n": choice,
    "square": lambda program, kind, _, x: program.mul(x, x, kind),
}

PLAIN |= {
    *COMPARE,
    *"add add_any and convert_element_type cos div is_finite mul neg not or select_n sin".split(),
    *"square sub xor".split(),
}
