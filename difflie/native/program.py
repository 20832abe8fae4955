"""Programs: a function on small arrays, written out scalar by scalar.

Every entry of every array is a scalar with a number of its own. What is known at trace time is
computed at once. In particular the zeros and ones that come from structure (the pattern of a screw,
a world at rest) vanish together with all that they are multiplied with; 0 x is 0 here even where x
should turn out to be infinite. What vanishes takes no argument with it that is not a number: each
scalar knows which entries of the arguments it must show besides those it is computed from, and
results are not numbers where one of these is none.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np


class Unsupported(Exception):
    """The function cannot be written as a program; the message says why."""


class TooLong(Unsupported):
    """Its program would take minutes to compile."""


# Longer programs take minutes to compile.
LONGEST = 150_000

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

_UNARY: dict[str, Callable] = {
    "abs": np.abs,
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "ceil": np.ceil,
    "cos": np.cos,
    "cosh": np.cosh,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "floor": np.floor,
    "log": np.log,
    "log1p": np.log1p,
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "neg": np.negative,
    "not": np.invert,
    "round": np.rint,
    "sign": np.sign,
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
    "erf": np.vectorize(math.erf, otypes=[float]),
    "erfc": np.vectorize(math.erfc, otypes=[float]),
}
_BINARY: dict[str, Callable] = {
    "add": np.add,
    "and": np.bitwise_and,
    "atan2": np.arctan2,
    "div": np.divide,
    "max": np.maximum,
    "min": np.minimum,
    "mul": np.multiply,
    "or": np.bitwise_or,
    "pow": np.power,
    "rem": np.fmod,
    "sub": np.subtract,
    "xor": np.bitwise_xor,
}
_COMPARE: dict[str, Callable] = {
    "eq": operator.eq,
    "ge": operator.ge,
    "gt": operator.gt,
    "le": operator.le,
    "lt": operator.lt,
    "ne": operator.ne,
}
# Of doubles, Python computes the same, and faster.
_AS_IN_PYTHON = operator.add, operator.sub, operator.mul
UNARY, BINARY, COMPARE = frozenset(_UNARY), frozenset(_BINARY), frozenset(_COMPARE)


class Loop(NamedTuple):
    """What an instruction `while` repeats: two programs of the same arguments.

    Their first `fixed` arguments stay as they are, the others are carried. `condition` has one
    result, `body` those carried.
    """

    fixed: int
    condition: Program
    body: Program


class Program:
    """The instructions of a program, in order, each distinct one once.

    Scalar k is `operations[k]` on the scalars `operands[k]`, of type `types[k]`, and is known at
    trace time where `known[k]` is not None. Operations are those of jax, and besides

    - `argument`, with the place of the scalar among the arguments in place of operands;
    - `constant`, with nothing;
    - `placeholder` and `solve`, which are there to be transposed;
    - `while`, whose `loops[k]` are a Loop, on the values of its arguments, and `item`, on such an
      instruction, with the place of the result;
    - `alias`, the same number as another scalar, from which other entries have vanished.
    """

    def __init__(self) -> None:
        self.operations: list[str] = []
        self.operands: list[tuple[int, ...]] = []
        self.types: list[str] = []
        self.known: list[Any] = []
        self.loops: dict[int, Loop] = {}
        self.solves: dict[int, Callable] = {}
        self.results: list[int] = []
        self.arguments: list[int] = []
        self._numbers: dict[Any, int] = {}
        # The entries of arguments, as bits, that every scalar shows; and what has vanished from it.
        self._shown: list[int] = []
        self._lost: dict[int, int] = {}
        # What is the negative of what.
        self._negatives: dict[int, int] = {}
        self._entries: list[int] = []
        self._linear = 0
        # Where this is false, loops make no turns: in a branch that is not taken.
        self.guard: int | None = None

    # Scalars

    def _new(self, operation: str, operands: tuple, kind: str, known: Any, shown: int) -> int:
        number = len(self.operations)
        if number >= LONGEST:
            raise TooLong(f"more than {LONGEST} instructions")
        self.operations.append(operation)
        self.operands.append(operands)
        self.types.append(kind)
        self.known.append(known)
        self._shown.append(shown)
        if operation == "neg":
            self._negatives[number] = operands[0]
        return number

    def argument(self, kind: str) -> int:
        """A new entry of the arguments."""
        shown = 0
        if kind[0] == "f":
            shown = 1 << len(self._entries)
            self._entries.append(len(self.operations))
        number = self._new("argument", (len(self.arguments),), kind, None, shown)
        self.arguments.append(number)
        return number

    def placeholder(self, kind: str) -> int:
        """A scalar that no result is computed from, in which a part of the program is linear."""
        number = self._new("placeholder", (), kind, None, 1 << len(self._entries))
        self._linear |= self._shown[number]
        self._entries.append(number)
        return number

    def is_linear(self, x: int) -> bool:
        """Whether a scalar is computed from placeholders."""
        return bool(self._linear and self.needed(x) & self._linear)

    def solve(self, operands: Sequence[int], transpose: Callable) -> list[int]:
        """The solution of a linear system, as many numbers, of which only the transpose is known.

        transpose appends what solves the transposed system: from scalars to scalars.
        """
        lost = functools.reduce(operator.or_, map(self.lost, operands), 0)
        shown = functools.reduce(operator.or_, (self._shown[x] for x in operands), 0)
        plain = tuple(map(self.base, operands))
        number = self._new("solve", plain, "b1", None, 0)
        self.solves[number] = transpose
        found = []
        for k, x in enumerate(plain):
            item = self._new("item", (number, k), self.types[x], None, shown)
            found.append(self.showing(item, lost))
        return found

    def bit(self, entry: int) -> int:
        """An argument or placeholder as entries, as bits."""
        return self._shown[entry]

    def constant(self, x: Any, kind: str) -> int:
        """A number that is known at trace time, a Python number of this type."""
        if kind[0] == "f":
            # 0.0 and -0.0 are equal, but not the same.
            key = ("nan",) if x != x else (x, math.copysign(1.0, x) if x == 0 else 0)
        else:
            key = x
        number = self._numbers.get((kind, key))
        if number is None:
            number = self._numbers[kind, key] = self._new("constant", (), kind, x, 0)
        return number

    def value(self, operation: str, operands: tuple[int, ...], kind: str) -> int:
        """The result of an operation at run time."""
        lost, lost_of = 0, self._lost
        if lost_of and not lost_of.keys().isdisjoint(operands):
            if kind[0] == "f" and operation != "select":
                for x in operands:
                    lost |= lost_of.get(x, 0)
            operands = tuple(map(self.base, operands))
        key = (operation, operands, kind)
        number = self._numbers.get(key)
        if number is not None:
            return self._losing(number, lost) if lost or number in lost_of else number
        shown = 0
        if kind[0] == "f":
            if operation == "select":
                shown = self._shown[operands[1]] & self._shown[operands[2]]
            else:
                for x in operands:
                    shown |= self._shown[x]
        number = self._numbers[key] = self._new(operation, operands, kind, None, shown)
        if lost:
            lost &= ~shown
            if lost:
                lost_of[number] = lost
        return number

    def _losing(self, x: int, lost: int) -> int:
        """The same number as x, from which just these entries have vanished."""
        x = self.base(x)
        lost &= ~self._shown[x]
        if lost == self._lost.get(x, 0):
            return x
        key = ("alias", x, lost)
        alias = self._numbers.get(key)
        if alias is None:
            known, shown = self.known[x], self._shown[x]
            alias = self._numbers[key] = self._new("alias", (x,), self.types[x], known, shown)
            if x in self._negatives:
                self._negatives[alias] = self._negatives[x]
        self._lost[alias] = lost
        return alias

    def base(self, x: int) -> int:
        """The scalar that an alias stands for, any other itself."""
        return self.operands[x][0] if self.operations[x] == "alias" else x

    def needed(self, x: int) -> int:
        """The entries of arguments that a scalar shows or should show."""
        return self._shown[x] | self._lost.get(x, 0)

    def lost(self, x: int) -> int:
        """The entries of arguments that have vanished from a scalar."""
        return self._lost.get(x, 0)

    def showing(self, x: int, entries: int) -> int:
        """The scalar, which should show these entries of arguments as well."""
        if self.types[x][0] != "f" or not entries & ~self.needed(x):
            return x
        return self._losing(x, entries | self.lost(x))

    def forget(self) -> dict[int, int]:
        """What has vanished so far, by scalar; from now on nothing has."""
        vanished = self._lost
        # An alias stays one: where it is an operand, what it stands for takes its place.
        self._lost = {x: 0 for x in vanished if self.operations[x] == "alias"}
        return vanished

    def _kept(self, result: int, *operands: int) -> int:
        entries = 0
        for x in operands:
            entries |= self.needed(x)
        return self.showing(result, entries) if entries else result

    def _computed(self, f: Callable, kind: str, *operands: int) -> int:
        with np.errstate(all="ignore"):
            given = [NUMPY[self.types[x]].type(self.known[x]) for x in operands]
            return self.constant(np.asarray(f(*given)).astype(NUMPY[kind]).item(), kind)

    # Operations

    def unary(self, name: str, x: int, kind: str) -> int:
        if self.known[x] is not None:
            result = self._computed(_UNARY[name], kind, x)
            return self._kept(result, x) if x in self._lost else result
        if name == "neg" and x in self._negatives:
            return self._opposite(x)
        return self.value(name, (x,), kind)

    def add(self, x: int, y: int, kind: str) -> int:
        a, b = self.known[x], self.known[y]
        if a is not None:
            if b is not None:
                return self._both(operator.add, kind, x, y)
            if a == 0:
                return self._kept(y, x) if x in self._lost else y
        elif b is not None and b == 0:
            return self._kept(x, y) if y in self._lost else x
        # A sign is carried on to where it costs nothing.
        if y in self._negatives:
            return self.sub(x, self._opposite(y), kind)
        if x in self._negatives:
            return self.sub(y, self._opposite(x), kind)
        return self.value("add", (x, y), kind)

    def sub(self, x: int, y: int, kind: str) -> int:
        a, b = self.known[x], self.known[y]
        if b is not None:
            if a is not None:
                return self._both(operator.sub, kind, x, y)
            if b == 0:
                return self._kept(x, y) if y in self._lost else x
        elif a is not None and a == 0:
            result = self.unary("neg", y, kind)
            return self._kept(result, x) if x in self._lost else result
        if y in self._negatives:
            return self.add(x, self._opposite(y), kind)
        return self.value("sub", (x, y), kind)

    def mul(self, x: int, y: int, kind: str) -> int:
        a, b = self.known[x], self.known[y]
        if a is None and b is not None:
            x, y, a, b = y, x, b, a
        if a is not None:
            if b is not None:
                return self._both(operator.mul, kind, x, y)
            if a == 0:
                return self._kept(self.constant(0.0 if kind[0] == "f" else 0, kind), x, y)
            if a == 1:
                return self._kept(y, x) if x in self._lost else y
            if a == -1:
                result = self.unary("neg", y, kind)
                return self._kept(result, x) if x in self._lost else result
        if y in self._negatives:
            return self.unary("neg", self.mul(x, self._opposite(y), kind), kind)
        if x in self._negatives:
            return self.unary("neg", self.mul(self._opposite(x), y, kind), kind)
        return self.value("mul", (x, y), kind)

    def div(self, x: int, y: int, kind: str) -> int:
        a, b = self.known[x], self.known[y]
        if kind[0] != "f":
            return self._whole("div", x, y, kind)
        if a is not None and b is not None:
            return self._both(np.divide, kind, x, y)
        if b is not None and b == 1:
            return self._kept(x, y) if y in self._lost else x
        if a is not None and a == 0:
            return self._kept(self.constant(0.0, kind), x, y)
        return self.value("div", (x, y), kind)

    def _whole(self, name: str, x: int, y: int, kind: str) -> int:
        """The quotient or rest of whole numbers, where the processor has none as well."""
        a, b = self.known[x], self.known[y]
        zero = self.constant(0, kind)
        if b == 0:
            return self._all_bits(kind) if name == "div" else x
        if b == 1 or (b == -1 and kind[0] == "i"):
            if name == "rem":
                return zero
            return x if b == 1 else self.sub(zero, x, kind)
        if a is not None and b is not None:
            quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            return self.constant(quotient if name == "div" else a - b * quotient, kind)
        if b is not None:
            return self.value(name, (x, y), kind)
        # The least number, divided by -1, is too large.
        bad = self.compare("eq", y, zero)
        if kind[0] == "i":
            opposite = self.compare("eq", y, self.constant(-1, kind))
            bad = self.binary("or", bad, opposite, "b1")
        found = self.value(name, (x, self.select(bad, y, self.constant(1, kind), kind)), kind)
        if kind[0] == "i":
            by_minus_one = self.sub(zero, x, kind) if name == "div" else zero
            found = self.select(opposite, found, by_minus_one, kind)
        by_zero = self._all_bits(kind) if name == "div" else x
        return self.select(self.compare("eq", y, zero), found, by_zero, kind)

    def _all_bits(self, kind: str) -> int:
        return self.constant(-1 if kind[0] == "i" else int(np.iinfo(NUMPY[kind]).max), kind)

    def _both(self, f: Callable, kind: str, x: int, y: int) -> int:
        if kind == "f64" and f in _AS_IN_PYTHON:
            result = self.constant(f(self.known[x], self.known[y]), kind)
        else:
            result = self._computed(f, kind, x, y)
        return self._kept(result, x, y) if x in self._lost or y in self._lost else result

    def binary(self, name: str, x: int, y: int, kind: str) -> int:
        if name in ("add", "sub", "mul", "div"):
            return getattr(self, name)(x, y, kind)
        a, b = self.known[x], self.known[y]
        if name == "rem" and kind[0] != "f":
            return self._whole("rem", x, y, kind)
        if a is not None and b is not None:
            return self._both(_BINARY[name], kind, x, y)
        if kind == "b1" and name in ("and", "or"):
            for known, other in ((a, y), (b, x)):
                if known is not None:
                    keeps = bool(known) == (name == "and")
                    return other if keeps else self.constant(bool(known), kind)
            if x == y:
                return x
        return self.value(name, (x, y), kind)

    def compare(self, name: str, x: int, y: int) -> int:
        if self.known[x] is not None and self.known[y] is not None:
            return self.constant(bool(_COMPARE[name](self.known[x], self.known[y])), "b1")
        return self.value(name, (x, y), "b1")

    def is_finite(self, x: int) -> int:
        if self.known[x] is not None:
            return self.constant(bool(np.isfinite(self.known[x])), "b1")
        kind = self.types[x]
        largest = self.constant(float(np.finfo(NUMPY[kind]).max), kind)
        return self.compare("le", self.unary("abs", x, kind), largest)

    def select(self, which: int, no: int, yes: int, kind: str) -> int:
        if self.known[which] is not None:
            return yes if self.known[which] else no
        if no == yes:
            return no
        if not self._lost or kind[0] != "f":
            return self.value("select", (which, yes, no), kind)
        needed = self.needed(yes) & self.needed(no)
        if self.base(no) == self.base(yes):
            return self._losing(no, needed)
        return self._losing(self.value("select", (which, yes, no), kind), needed)

    def convert(self, x: int, kind: str) -> int:
        if self.types[x] == kind:
            return x
        if self.known[x] is not None:
            known = self.known[x]
            if self.types[x][0] == "f" and kind[0] in "iu":
                # The nearest whole number of the type, as at run time.
                info = np.iinfo(NUMPY[kind])
                known = 0 if known != known else int(min(max(known, info.min), info.max))
            with np.errstate(all="ignore"):
                known = np.asarray(known).astype(NUMPY[kind]).item()
            result = self.constant(known, kind)
            return self._kept(result, x) if kind[0] == "f" and x in self._lost else result
        return self.value("convert", (x,), kind)

    def power(self, x: int, exponent: int, kind: str) -> int:
        result = one = self.constant(1.0 if kind[0] == "f" else 1, kind)
        square, left = x, abs(exponent)
        while left:
            if left & 1:
                result = self.mul(result, square, kind)
            left >>= 1
            if left:
                square = self.mul(square, square, kind)
        return result if exponent >= 0 else self.div(one, result, kind)

    def _opposite(self, x: int) -> int:
        """What x, one of the negatives, is the negative of."""
        return self._losing(self._negatives[x], self.lost(x))

    def repeat(self, loop: Loop, operands: Sequence[int]) -> list[int]:
        """The carried values at the end of a loop."""
        lost = [self.lost(x) for x in operands]
        shown = [self._shown[x] for x in operands]
        plain = tuple(self.base(x) for x in operands)
        key = ("while", plain, loop.condition.digest, loop.body.digest)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = self._new("while", plain, "b1", None, 0)
            self.loops[number] = loop
        sources = [loop.body.needed_arguments(x) for x in loop.body.results]
        ends = []
        for k, x in enumerate(loop.body.results):
            # What a carried value is computed from, over any number of turns.
            reached, new = {loop.fixed + k}, {loop.fixed + k}
            while new:
                new = {j for i in new if i >= loop.fixed for j in sources[i - loop.fixed]} - reached
                reached |= new
            item = self._numbers.get(("item", number, k))
            if item is None:
                again = loop.fixed + k in sources[k]
                item = self._new(
                    "item", (number, k), loop.body.types[x], None, shown[loop.fixed + k] * again
                )
                self._numbers["item", number, k] = item
            entries = functools.reduce(operator.or_, (lost[j] for j in reached), 0)
            ends.append(self.showing(item, entries))
        return ends

    def needed_arguments(self, x: int) -> set[int]:
        """The places of the arguments of floating point that a scalar shows or should show."""
        mask = self.needed(x)
        return {self.operands[entry][0] for k, entry in enumerate(self._entries) if mask >> k & 1}

    @functools.cached_property
    def digest(self) -> int:
        """The same for two finished programs that are the same."""
        loops = [(k, x.fixed, x.condition.digest, x.body.digest) for k, x in self.loops.items()]
        texts = map(repr, self.known)
        parts = self.operations, self.operands, self.types, texts, self.results, loops
        return hash(tuple(map(tuple, parts)))

    # What has vanished

    def finish(self, results: Sequence[int]) -> None:
        """Sets the results, which are not numbers where what has vanished from them is none.

        A derivative has hundreds of entries from which the same has vanished, and would spend an
        eighth of its time on them. So what has vanished from many is tested first, and a few
        arguments stop being numbers with it, which nothing else is computed from; with them do all
        results that show one of these.
        """
        results = list(results)
        lost = Counter(self.lost(x) for x in results)
        del lost[0]
        often = self._vanished_often(lost, results)
        if often:
            results = self._behind_spoilt(often, results)
        wrong: dict[int, int] = {}
        for mask in sorted({self.lost(x) for x in results} - {0}, key=int.bit_count):
            wrong[mask] = self._wrong(mask, wrong)
        self.results = [
            self._without(wrong[self.lost(x)], self.base(x)) if self.lost(x) else self.base(x)
            for x in results
        ]
        self._numbers = {}

    def _without(self, wrong: int, x: int) -> int:
        kind = self.types[x]
        return self.value("select", (wrong, self.constant(math.nan, kind), x), kind)

    def _vanished_often(self, lost: Counter[int], results: Sequence[int]) -> int:
        """The entries to be tested before all else, of sets that have vanished from many results.

        To test an entry takes two operations, which are not spared where no result shows it; every
        result from which something else has vanished takes one.
        """
        visible = functools.reduce(operator.or_, (self._shown[x] for x in results), 0)
        masks = sorted(lost, key=lambda mask: (mask & visible).bit_count() / lost[mask])
        chosen = itertools.accumulate(masks, operator.or_, initial=0)
        counts = (lost[mask] for mask in masks)
        left = itertools.accumulate(counts, operator.sub, initial=lost.total())
        cost = {m: 2 * (m & visible).bit_count() + n for m, n in zip(chosen, left, strict=True)}
        return min(cost, key=cost.__getitem__)

    def _behind_spoilt(self, entries: int, results: Sequence[int]) -> list[int]:
        """The results, computed from spoilt arguments: no numbers where one of the entries is none.

        The program is written once more, with that test behind the arguments.
        """
        spoilt = self._spoiling(entries, results)
        if not spoilt:
            return list(results)
        results_before = [(self.base(x), self.lost(x)) for x in results]
        used = self._used([x for x, _ in results_before])
        operations, operands, types = self.operations, self.operands, self.types
        known, shown, loops, before = self.known, self._shown, self.loops, self._entries
        self.operations, self.operands, self.types, self.known, self._shown = [], [], [], [], []
        self._lost, self._numbers, self._negatives, self._entries = {}, {}, {}, []
        arguments, self.arguments = self.arguments, []
        moved = {x: self.argument(types[x]) for x in arguments}
        wrong = self._wrong(entries, {})
        for k in spoilt:
            entry = before[k]
            moved[entry] = self._without(wrong, moved[entry])
            self._shown[moved[entry]] = entries | 1 << k
        rest = [k for k in used if operations[k] != "argument"]
        moved.update((k, place) for place, k in enumerate(rest, len(self.operations)))
        self.operations += [operations[k] for k in rest]
        self.operands += [
            (moved[operands[k][0]], operands[k][1])
            if operations[k] == "item"
            else tuple([moved[x] for x in operands[k]])
            for k in rest
        ]
        self.types += [types[k] for k in rest]
        self.known += [known[k] for k in rest]
        some = functools.reduce(operator.or_, (1 << k for k in spoilt))
        self._shown += [shown[k] | entries if shown[k] & some else shown[k] for k in rest]
        self.loops = {moved[k]: loop for k, loop in loops.items() if k in moved}
        return [self._losing(moved[x], lost) for x, lost in results_before]

    def _spoiling(self, entries: int, results: Sequence[int]) -> list[int]:
        """Few entries of arguments, one of which each result from which `entries` vanished shows.

        Where it shows any from which no result is computed that need not show all of `entries`.
        """
        apart = self._read([x for x in results if entries & ~self.needed(x)])
        masks = [self._shown[x] & ~apart for x in results if self.lost(x) & entries]
        size = len(self._entries) // 8 + 1
        text = b"".join(m.to_bytes(size, "little") for m in masks if m)
        packed = np.frombuffer(text, np.uint8).reshape(-1, size)
        shows = np.unpackbits(packed, axis=1, bitorder="little").astype(bool)
        counts, chosen = shows.sum(axis=0), []
        while len(shows):
            best = int(np.argmax(counts))
            chosen.append(best)
            covered = shows[:, best]
            counts -= shows[covered].sum(axis=0)
            shows = shows[~covered]
        return chosen

    def _read(self, results: Sequence[int]) -> int:
        """The entries of arguments that results are computed from, shown by them or not."""
        read = {x: 1 << k for k, x in enumerate(self._entries)}
        results = list(map(self.base, results))
        for k in self._used(results):
            if k in read:
                continue
            operands = self.operands[k]
            if self.operations[k] == "item":
                read[k] = read[operands[0]]
            elif self.operations[k] == "argument":
                read[k] = 0
            else:
                read[k] = functools.reduce(operator.or_, map(read.__getitem__, operands), 0)
        return functools.reduce(operator.or_, (read.get(x, 0) for x in results), 0)

    def _wrong(self, entries: int, parts: dict[int, int]) -> int:
        """Whether one of these entries of arguments is not a number, known of parts of them."""
        wrong = []
        for mask in sorted(parts, key=int.bit_count, reverse=True):
            if mask & entries == mask:
                wrong.append(parts[mask])
                entries &= ~mask
        kept = [x for k, x in enumerate(self._entries) if entries >> k & 1]
        wrong += [self.value("ne", (x, x), "b1") for x in kept]
        # In pairs: a row of operations as long as the entries are many would be deep.
        while len(wrong) > 1:
            rest = wrong[len(wrong) // 2 * 2 :]
            pairs = zip(wrong[::2], wrong[1::2], strict=False)
            wrong = [self.value("or", (x, y), "b1") for x, y in pairs] + rest
        return wrong[0]

    # What is used

    def used(self) -> list[int]:
        """The instructions that results are computed from, in order, without aliases."""
        return self._used(self.results)

    def _used(self, results: Sequence[int]) -> list[int]:
        used = bytearray(len(self.operations))
        for x in results:
            used[x] = 1
        operations, operands = self.operations, self.operands
        for k in range(len(used) - 1, -1, -1):
            if used[k] and operands[k]:
                operation = operations[k]
                if operation == "item":
                    used[operands[k][0]] = 1
                elif operation != "argument":
                    for x in operands[k]:
                        used[x] = 1
        return list(itertools.compress(range(len(used)), used))
