"""Elementary functions as LLVM IR, for numbers and for vectors of lanes.

sin, cos, tan, exp, tanh and logistic are written out, in arithmetic that works on all lanes at
once; the others call libm for one lane after the other. A lane's result does not depend on their
number: each function has one template, no operation of which may be regrouped or fused.

The written ones are wrong by less than 0.8 ulps (sin, cos, exp, logistic), 0.9 (tanh) and 1.1
(tan) in both formats, results below the least normal number included. Beyond arguments of 1e9
(f32: 1e5) sin, cos and tan are libm's, in a branch that is taken if any lane is out there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from .coefficients import FORMATS, HALF_PI, LOG_2, parts
from .vectors import Function, Value


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
    **dict.fromkeys((*_WRITTEN, *_PERIODIC), 1),
    **dict.fromkeys(("exp2", "expm1", "log", "log1p", "sinh", "cosh", "asin", "acos", "atan"), 1),
    **dict.fromkeys(("asinh", "acosh", "atanh", "cbrt", "erf", "erfc"), 1),
    **dict.fromkeys(("pow", "atan2", "rem"), 2),
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
