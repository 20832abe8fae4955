"""Programs: a function on small arrays, written out scalar by scalar.

Every entry of every array is a scalar with a number of its own. What is known at trace time is
computed at once. In particular the zeros and ones that come from structure (the pattern of a screw,
a world at rest) are folded away together with all that they are multiplied with; 0 x is 0 here even
where x should turn out to be infinite, and 0 - x is -x. No argument that is NaN is folded away
unseen: each scalar knows which entries of the arguments it must show besides those it is computed
from, and results are NaN where one of these is (see `nan_masks` for the invariant).

Where a program is `strict`, as in a user's function, only what XLA leaves out is: 1 in 1 x, and 0
in x - 0 and x + 0, but neither 0 x nor 0 / x nor the 0 in 0 - x.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from .instructions import Instructions, Unsupported
from .operations import COMPARE, OPERATIONS

TYPES = {
    "float64": "f64",
    "float32": "f32",
    "int64": "i64",
    "int32": "i32",
    "uint64": "u64",
    "uint32": "u32",
    "bool": "b1",
}
NUMPY = {t: np.dtype(name) for name, t in TYPES.items()}

MOST_WRITTEN = 40_000

# Smaller tables are choices one after the other. So are those that are to be transposed.
_FEWEST_ENTRIES = 8
# Indices that may have more values take too many comparisons.
MOST_INDICES = 256


def check_dynamic(values: int) -> None:
    """Raises `Unsupported` for a dynamic index that may have too many values."""
    if values > MOST_INDICES:
        raise Unsupported(f"a dynamic index of {values} values")


# Of doubles, Python computes the same, and faster.
_AS_IN_PYTHON = "add", "sub", "mul"


class Program(Instructions):
    """Instructions, and the arithmetic that appends them.

    products, tables: whether products of large matrices, and entries of tables at numbers that are
    known at run time, are instructions of their own. differentiable: it is there to be
    differentiated; operations of jax whose derivative is asked of jax are regions.
    most_written: a loop inside of more entries in all is repeated, and not written out.
    """

    def __init__(
        self,
        products: bool = False,
        tables: bool = False,
        differentiable: bool = False,
        most_written: int = MOST_WRITTEN,
    ) -> None:
        super().__init__()
        self.products, self.tables = products, tables
        self.differentiable = differentiable
        self.most_written = most_written
        # By operation, type and operands.
        self._known_results: dict[tuple[str, str, tuple[int, ...]], int] = {}
        # Where this is false, loops make no iterations: in a branch that is not taken.
        self.guard: int | None = None

    def _showing_operands(self, result: int, *operands: int) -> int:
        """A result, which still shows what its operands would."""
        entries = 0
        for x in operands:
            entries |= self.shown[x] | self._lost.get(x, 0)
        return self.showing(result, entries) if entries else result

    def _computed(self, name: str, kind: str, *operands: int) -> int:
        """What is computed from known numbers."""
        key = name, kind, operands
        number = self._known_results.get(key)
        if number is None:
            number = self._known_results[key] = self.constant(self._result(*key), kind)
        # Numbers show nothing of themselves.
        if self._lost.keys().isdisjoint(operands):
            return number
        return self._showing_operands(number, *operands)

    def _result(self, name: str, kind: str, operands: tuple[int, ...]) -> Any:
        f = OPERATIONS[name].number
        assert f is not None, name
        values = [self.known[x] for x in operands]
        if kind == "f64" and name in _AS_IN_PYTHON:
            return f(*values)
        with np.errstate(all="ignore"):
            values = [NUMPY[self.types[x]].type(a) for x, a in zip(operands, values, strict=True)]
            return np.asarray(f(*values)).astype(NUMPY[kind]).item()

    def _opposite(self, x: int) -> int:
        """What x, one of the negatives, is the negative of."""
        return self.losing(self._negatives[x], self.lost(x))

    def _folds_away(self, known: Any, kind: str) -> bool:
        """Whether a known number is 0 and may be folded away where the result then differs."""
        return known == 0 and not (self.strict and kind[0] == "f")

    def _truth(self, x: int) -> int | None:
        """The truth that a number 0 or 1 has been made of; None for other numbers.

        XLA makes a choice of its products, as in slopes of extremes: 0 also of what is no number.
        """
        if self.operations[x] != "convert" or self.types[self.operands[x][0]] != "b1":
            return None
        return self.operands[x][0]

    def zero(self, kind: str) -> int:
        """The number 0 of a type."""
        return self.constant(0.0 if kind[0] == "f" else 0, kind)

    def one(self, kind: str) -> int:
        """The number 1 of a type."""
        return self.constant(1.0 if kind[0] == "f" else 1, kind)

    def unary(self, name: str, x: int, kind: str) -> int:
        """An operation of one operand, by the name it has in jax."""
        if self.known[x] is not None:
            return self._computed(name, kind, x)
        if name == "neg" and x in self._negatives:
            return self._opposite(x)
        return self.value(name, (x,), kind)

    def add(self, x: int, y: int, kind: str) -> int:
        """x + y, of truths whether one holds."""
        if kind == "b1":
            return self.binary("or", x, y, kind)
        a, b = self.known[x], self.known[y]
        if a is not None and b is not None:
            return self._computed("add", kind, x, y)
        if a == 0:
            return self._showing_operands(y, x)
        if b == 0:
            return self._showing_operands(x, y)
        # A sign is carried on to where it costs nothing.
        if y in self._negatives:
            return self.sub(x, self._opposite(y), kind)
        if x in self._negatives:
            return self.sub(y, self._opposite(x), kind)
        return self.value("add", (x, y), kind)

    def sub(self, x: int, y: int, kind: str) -> int:
        """x - y."""
        if kind == "b1":
            raise Unsupported("a difference of truths")
        a, b = self.known[x], self.known[y]
        if a is not None and b is not None:
            return self._computed("sub", kind, x, y)
        if b == 0:
            return self._showing_operands(x, y)
        if self._folds_away(a, kind):
            return self._showing_operands(self.unary("neg", y, kind), x)
        if y in self._negatives:
            return self.add(x, self._opposite(y), kind)
        return self.value("sub", (x, y), kind)

    def mul(self, x: int, y: int, kind: str) -> int:
        """x y, of truths whether both hold."""
        if kind == "b1":
            return self.binary("and", x, y, kind)
        if self.known[x] is None and self.known[y] is not None:
            x, y = y, x
        a = self.known[x]
        if a is not None:
            if self.known[y] is not None:
                return self._computed("mul", kind, x, y)
            if self._folds_away(a, kind):
                return self._showing_operands(self.zero(kind), x, y)
            if a == 1:
                return self._showing_operands(y, x)
            if a == -1:
                return self._showing_operands(self.unary("neg", y, kind), x)
        if self.strict:
            for truth, other in ((x, y), (y, x)):
                which = self._truth(truth)
                if which is not None:
                    return self.select(which, self.zero(kind), other, kind)
        if y in self._negatives:
            return self.unary("neg", self.mul(x, self._opposite(y), kind), kind)
        if x in self._negatives:
            return self.unary("neg", self.mul(self._opposite(x), y, kind), kind)
        # A symmetric product of matrices has equal entries so.
        if a is None and y < x:
            x, y = y, x
        return self.value("mul", (x, y), kind)

    def div(self, x: int, y: int, kind: str) -> int:
        """x / y, of whole numbers without the fraction."""
        if kind[0] != "f":
            return self._whole("div", x, y, kind)
        a, b = self.known[x], self.known[y]
        if a is not None and b is not None:
            return self._computed("div", kind, x, y)
        if b == 1:
            return self._showing_operands(x, y)
        if self._folds_away(a, kind):
            return self._showing_operands(self.zero(kind), x, y)
        return self.value("div", (x, y), kind)

    def _whole(self, name: str, x: int, y: int, kind: str) -> int:
        """The quotient or rest of whole numbers, where the processor has none as well."""
        a, b = self.known[x], self.known[y]
        zero, signed = self.zero(kind), kind[0] == "i"
        all_bits = self.constant(-1 if signed else int(np.iinfo(NUMPY[kind]).max), kind)
        by_zero, by_minus_one = (all_bits, self.sub(zero, x, kind)) if name == "div" else (x, zero)
        if b == 0:
            return by_zero
        if b == 1:
            return x if name == "div" else zero
        if b == -1 and signed:
            return by_minus_one
        if a is not None and b is not None:
            quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            return self.constant(quotient if name == "div" else a - b * quotient, kind)
        if b is not None:
            return self.value(name, (x, y), kind)
        special = {zero: by_zero}
        if signed:
            # The least number, divided by -1, is too large.
            special[self.constant(-1, kind)] = by_minus_one
        tests = [self.compare("eq", y, at) for at in special]
        bad = functools.reduce(lambda p, q: self.binary("or", p, q, "b1"), tests)
        result = self.value(name, (x, self.select(bad, y, self.one(kind), kind)), kind)
        for test, instead in reversed([*zip(tests, special.values(), strict=True)]):
            result = self.select(test, result, instead, kind)
        return result

    def binary(self, name: str, x: int, y: int, kind: str) -> int:
        """An operation of two operands, by the name it has in jax."""
        if name in ("add", "sub", "mul", "div"):
            return getattr(self, name)(x, y, kind)
        if name == "rem" and kind[0] != "f":
            return self._whole("rem", x, y, kind)
        a, b = self.known[x], self.known[y]
        if a is not None and b is not None:
            return self._computed(name, kind, x, y)
        if kind == "b1" and name in ("and", "or"):
            for known, other in ((a, y), (b, x)):
                if known is not None:
                    keeps = bool(known) == (name == "and")
                    return other if keeps else self.constant(bool(known), kind)
            if x == y:
                return x
        return self.value(name, (x, y), kind)

    def compare(self, name: str, x: int, y: int) -> int:
        """Whether x is equal to y, less, and so on, by the name it has in jax."""
        if self.known[x] is not None and self.known[y] is not None:
            return self.constant(bool(COMPARE[name](self.known[x], self.known[y])), "b1")
        return self.value(name, (x, y), "b1")

    def all_of(self, *truths: int) -> int:
        """Whether all of these hold."""
        whole = self.constant(True, "b1")
        for x in truths:
            whole = self.binary("and", whole, x, "b1")
        return whole

    def is_finite(self, x: int) -> int:
        """Whether x is neither infinite nor no number."""
        if self.known[x] is not None:
            return self.constant(bool(np.isfinite(self.known[x])), "b1")
        kind = self.types[x]
        largest = self.constant(float(np.finfo(NUMPY[kind]).max), kind)
        return self.compare("le", self.unary("abs", x, kind), largest)

    def select(self, which: int, no: int, yes: int, kind: str) -> int:
        """yes where `which` holds, no elsewhere."""
        if self.known[which] is not None:
            return yes if self.known[which] else no
        if no == yes:
            return no
        if not self._lost or kind[0] != "f":
            return self.value("select", (which, yes, no), kind)
        needed = self.needed(yes) & self.needed(no)
        if self.base(no) == self.base(yes):
            return self.losing(no, needed)
        return self.losing(self.value("select", (which, yes, no), kind), needed)

    def entry(self, which: int, table: Sequence[int], kind: str) -> int:
        """The entry of a table of that number; the nearest where there is none."""
        number, last = self.known[which], len(table) - 1
        if number is not None:
            return table[min(max(int(number), 0), last)]
        if not self.tables or last < _FEWEST_ENTRIES or any(map(self.is_linear, table)):
            chosen = table[last]
            for k in range(last - 1, -1, -1):
                here = self.compare("le", which, self.constant(k, self.types[which]))
                chosen = self.select(here, chosen, table[k], kind)
            return chosen
        if len(set(table)) == 1:
            return table[0]
        needed = functools.reduce(operator.and_, map(self.needed, table))
        chosen = self.value("entry", (which, *map(self.base, table)), kind)
        return self.losing(chosen, needed) if kind[0] == "f" else chosen

    def swap(self, which: int, x: int, y: int) -> tuple[int, int]:
        """y and x where `which` holds, x and y elsewhere."""
        kind = self.types[x]
        return self.select(which, x, y, kind), self.select(which, y, x, kind)

    def convert(self, x: int, kind: str) -> int:
        """x as a number of another type."""
        source, known = self.types[x], self.known[x]
        if source == kind:
            return x
        if known is None:
            return self.value("convert", (x,), kind)
        if source[0] == "f" and kind[0] in "iu":
            # The nearest whole number of the type, as at run time.
            info = np.iinfo(NUMPY[kind])
            known = 0 if known != known else int(min(max(known, info.min), info.max))
        with np.errstate(all="ignore"):
            known = np.asarray(known).astype(NUMPY[kind]).item()
        return self._showing_operands(self.constant(known, kind), x)

    def power(self, x: int, exponent: int, kind: str) -> int:
        """x to a whole power."""
        result = one = self.one(kind)
        square, left = x, abs(exponent)
        while left:
            if left & 1:
                result = self.mul(result, square, kind)
            left >>= 1
            if left:
                square = self.mul(square, square, kind)
        return result if exponent >= 0 else self.div(one, result, kind)
