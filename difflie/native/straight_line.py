"""Straight-line programs: a traced function on small arrays, written out scalar by scalar.

Every entry of every array becomes a value of its own, every loop is unrolled, and what is known at
trace time is computed at once. In particular the zeros and ones that come from structure (the
pattern of a screw, the world at rest, the placement of the dofs within a joint) vanish together
with all that they are multiplied with; 0 x is 0 here even where x should turn out to be infinite.
What vanishes takes no argument with it that is not a number: each scalar knows which entries of the
arguments it must show besides those it is computed from, and results are not numbers where one of
these is none.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .jaxprs import is_literal, nested, scan_sizes


class Unsupported(Exception):
    """The function cannot be written as a straight-line program; the message says why."""


class Value:
    """A number that is known at run time only.

    lost: the entries of arguments, as bits, that have vanished from it; see `Program.results`.
    """

    __slots__ = ("dtype", "lost", "number")

    def __init__(self, number: int, dtype: np.dtype, lost: int = 0):
        self.number = number
        self.dtype = dtype
        self.lost = lost


class Known(float):
    """A number that is known at trace time, and what has vanished from it, as in `Value`."""

    lost = 0


Scalar = Value | float | int | bool

# Longer programs, and those of larger arrays, take minutes to compile.
_LONGEST = 60_000
_LARGEST = 10_000
# XLA follows the operands of a fusion recursively, and its stack ends at about 6000 in a row.
_DEEPEST = 2_000

_UNARY = {
    "abs": ("abs", np.abs),
    "ceil": ("ceil", np.ceil),
    "cos": ("cosine", np.cos),
    "exp": ("exponential", np.exp),
    "expm1": ("exponential_minus_one", np.expm1),
    "floor": ("floor", np.floor),
    "log": ("log", np.log),
    "log1p": ("log_plus_one", np.log1p),
    "neg": ("negate", np.negative),
    "not": ("not", np.invert),
    "round": ("round_nearest_even", np.rint),
    "rsqrt": ("rsqrt", lambda x: 1 / np.sqrt(x)),
    "sign": ("sign", np.sign),
    "sin": ("sine", np.sin),
    "sqrt": ("sqrt", np.sqrt),
    "tanh": ("tanh", np.tanh),
}
_BINARY = {
    "add": ("add", np.add),
    "add_any": ("add", np.add),
    "and": ("and", np.bitwise_and),
    "atan2": ("atan2", np.arctan2),
    "div": ("divide", np.divide),
    "max": ("maximum", np.maximum),
    "min": ("minimum", np.minimum),
    "mul": ("multiply", np.multiply),
    "or": ("or", np.bitwise_or),
    "pow": ("power", np.power),
    "sub": ("subtract", np.subtract),
}
_COMPARE = {
    "eq": operator.eq,
    "ge": operator.ge,
    "gt": operator.gt,
    "le": operator.le,
    "lt": operator.lt,
    "ne": operator.ne,
}
TYPES = {"float64": "f64", "float32": "f32", "int64": "i64", "int32": "i32", "bool": "i1"}


class Program:
    """The instructions of a straight-line program, in order, each distinct one once."""

    def __init__(self) -> None:
        self.instructions: list[tuple[str, tuple[Any, ...], np.dtype]] = []
        self._known: dict[Any, Value] = {}
        self._depths: list[int] = []
        # The entries of arguments, as bits, that every instruction shows; and which entries.
        self._shown: list[int] = []
        self._entries: list[Value] = []

    def value(self, operation: str, operands: tuple[Scalar, ...], dtype: np.dtype) -> Value:
        key = (
            operation,
            dtype,
            # By their digits: 0.0 and -0.0 are equal, but not the same.
            *(x.number if isinstance(x, Value) else repr(x) for x in operands),
        )
        known = self._known.get(key)
        if known is None:
            if len(self.instructions) >= _LONGEST:
                raise Unsupported(f"more than {_LONGEST} instructions")
            before = [self._depths[x.number] for x in operands if isinstance(x, Value)]
            self._depths.append(1 + max(before, default=0))
            if self._depths[-1] > _DEEPEST:
                raise Unsupported(f"more than {_DEEPEST} operations one upon the other")
            known = self._known[key] = Value(len(self.instructions), dtype)
            self.instructions.append((operation, operands, dtype))
            self._shown.append(self._of(operation, operands) if dtype.kind == "f" else 0)
        if operation == "select" or dtype.kind != "f":
            return known
        lost = 0
        for x in operands:
            if isinstance(x, Value | Known):
                lost |= x.lost
        lost &= ~self._shown[known.number]
        return Value(known.number, dtype, lost) if lost else known

    def argument(self, index: int, entry: int, dtype: np.dtype) -> Value:
        value = self.value("argument", (index, entry), dtype)
        if dtype.kind == "f" and not self._shown[value.number]:
            self._shown[value.number] = 1 << len(self._entries)
            self._entries.append(value)
        return value

    def _of(self, operation: str, operands: tuple[Any, ...]) -> int:
        """The entries of arguments that the result of an operation shows if all is well."""
        if operation == "argument":
            return 0
        masks = [self._shown[x.number] if isinstance(x, Value) else 0 for x in operands]
        if operation == "select":
            return masks[1] & masks[2]
        return functools.reduce(operator.or_, masks)

    def _needed(self, x: Scalar) -> int:
        """The entries of arguments that a scalar shows or should show."""
        if isinstance(x, Value):
            return self._shown[x.number] | x.lost
        return x.lost if isinstance(x, Known) else 0

    def _showing(self, x: Scalar, entries: int) -> Scalar:
        """The scalar, which should show these entries of arguments as well."""
        lost = entries & ~self._needed(x)
        if not lost:
            return x
        if isinstance(x, Value):
            return Value(x.number, x.dtype, x.lost | lost)
        known = Known(x)
        known.lost = lost | self._needed(x)
        return known

    def results(self, found: Sequence[np.ndarray], dtypes: Sequence[np.dtype]) -> list[np.ndarray]:
        """The results, not numbers where what has vanished from them is none.

        A derivative has hundreds of entries from which the same has vanished, and would spend an
        eighth of its time on them. So what has vanished from many is tested first, and a few
        arguments stop being numbers with it, which nothing else is computed from; with them do all
        results that show one of these.
        """
        lost = Counter(_lost(x) for entries in found for x in entries.flat)
        del lost[0]
        often = self._vanished_often(lost, found)
        if often:
            found = self._behind_spoilt(often, found)
        left = {_lost(x) for entries in found for x in entries.flat} - {0}
        wrong: dict[int, Scalar] = {}
        for mask in sorted(left, key=int.bit_count):
            wrong[mask] = self._wrong(mask, wrong)

        def shown(x: Scalar, dtype: np.dtype) -> Scalar:
            vanished = _lost(x)
            return x if not vanished else self._without(wrong[vanished], x, dtype)

        return [
            _elementwise(functools.partial(shown, dtype=dtype), entries)
            for entries, dtype in zip(found, dtypes, strict=True)
        ]

    def _without(self, wrong: Scalar, x: Scalar, dtype: np.dtype) -> Value:
        return self.value("select", (wrong, float("nan"), x), dtype)

    def _vanished_often(self, lost: Counter[int], found: Sequence[np.ndarray]) -> int:
        """The entries to be tested before all else, of sets that have vanished from many results.

        To test an entry takes two operations, which are not spared where no result shows it; every
        result from which something else has vanished takes one.
        """
        results = (x for array in found for x in array.flat if isinstance(x, Value))
        visible = functools.reduce(operator.or_, (self._shown[x.number] for x in results), 0)
        masks = sorted(lost, key=lambda mask: (mask & visible).bit_count() / lost[mask])
        chosen = itertools.accumulate(masks, operator.or_, initial=0)
        counts = (lost[mask] for mask in masks)
        left = itertools.accumulate(counts, operator.sub, initial=lost.total())
        cost = {m: 2 * (m & visible).bit_count() + n for m, n in zip(chosen, left, strict=True)}
        return min(cost, key=cost.__getitem__)

    def _behind_spoilt(self, entries: int, found: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The results, computed from spoilt arguments: no numbers where one of the entries is none.

        The program is written once more, with that test behind the arguments, which come first.
        """
        spoilt = self._spoiling(entries, found)
        if not spoilt:
            return list(found)
        before, shown = self.instructions, self._shown
        first = sum(operation == "argument" for operation, *_ in before)
        self.instructions, self._shown = before[:first], shown[:first]
        self._depths, self._known = self._depths[:first], {}
        moved = [Value(k, dtype) for k, (*_, dtype) in enumerate(self.instructions)]
        wrong = self._wrong(entries, {})
        for k in spoilt:
            entry = self._entries[k]
            moved[entry.number] = self._without(wrong, entry, entry.dtype)
            self._shown[moved[entry.number].number] = entries | 1 << k
        for operation, operands, dtype in before[first:]:
            read = tuple(moved[x.number] if isinstance(x, Value) else x for x in operands)
            moved.append(self.value(operation, read, dtype))

        def again(x: Scalar) -> Scalar:
            if not isinstance(x, Value):
                return x
            number = moved[x.number].number
            return Value(number, x.dtype, x.lost & ~self._shown[number])

        return [_elementwise(again, array) for array in found]

    def _spoiling(self, entries: int, found: Sequence[np.ndarray]) -> list[int]:
        """Few entries of arguments, one of which each result from which `entries` vanished shows.

        Where it shows any from which no result is computed that need not show all of `entries`.
        """
        results = [x for array in found for x in array.flat if isinstance(x, Value)]
        apart = self._read([x for x in results if entries & ~self._needed(x)])
        masks = [self._shown[x.number] & ~apart for x in results if x.lost & entries]
        chosen = []
        while masks := [m for m in masks if m]:
            counts = [sum(m >> k & 1 for m in masks) for k in range(len(self._entries))]
            best = int(np.argmax(counts))
            chosen.append(best)
            masks = [m for m in masks if not m >> best & 1]
        return chosen

    def _read(self, results: Sequence[Value]) -> int:
        """The entries of arguments that results are computed from, shown by them or not."""
        entries = {x.number: 1 << k for k, x in enumerate(self._entries)}
        read: list[int] = []
        for k, (_, operands, _) in enumerate(self.instructions):
            masks = (read[x.number] for x in operands if isinstance(x, Value))
            read.append(functools.reduce(operator.or_, masks, entries.get(k, 0)))
        return functools.reduce(operator.or_, (read[x.number] for x in results), 0)

    def _wrong(self, entries: int, parts: dict[int, Scalar]) -> Scalar:
        """Whether one of these entries of arguments is not a number, known of parts of them."""
        wrong = []
        for mask in sorted(parts, key=int.bit_count, reverse=True):
            if mask & entries == mask:
                wrong.append(parts[mask])
                entries &= ~mask
        kept = [x for k, x in enumerate(self._entries) if entries >> k & 1]
        wrong += [self.compare("ne", x, x) for x in kept]
        # In pairs: a row of operations as long as the entries are many would be deep.
        while len(wrong) > 1:
            rest = wrong[len(wrong) // 2 * 2 :]
            pairs = zip(wrong[::2], wrong[1::2], strict=False)
            wrong = [self.binary("or", x, y, np.dtype(bool)) for x, y in pairs] + rest
        return wrong[0]

    def unary(self, name: str, x: Scalar, dtype: np.dtype) -> Scalar:
        operation, known = _UNARY[name]
        if not isinstance(x, Value):
            return self._showing(_computed(known, dtype, x), self._needed(x))
        if operation == "negate":
            opposite = self._opposite(x)
            if opposite is not None:
                return self._showing(opposite, x.lost)
        return self.value(operation, (x,), dtype)

    def binary(self, name: str, x: Scalar, y: Scalar, dtype: np.dtype) -> Scalar:
        folded = self._folded(name, x, y, dtype)
        if folded is None:
            return self.value(_BINARY[name][0], (x, y), dtype)
        if dtype.kind != "f":
            return folded
        return self._showing(folded, self._needed(x) | self._needed(y))

    def _folded(self, name: str, x: Scalar, y: Scalar, dtype: np.dtype) -> Scalar | None:
        """The result of an operation where it is known or that of a simpler one, else None."""
        operation, known = _BINARY[name]
        if not isinstance(x, Value) and not isinstance(y, Value):
            return _computed(known, dtype, x, y)
        if operation == "add":
            if _is(x, 0):
                return y
            if _is(y, 0):
                return x
            # A sign is carried on to where it costs nothing.
            for a, b in ((x, y), (y, x)):
                opposite = self._opposite(b)
                if opposite is not None:
                    return self.binary("sub", a, opposite, dtype)
        elif operation == "subtract":
            if _is(y, 0):
                return x
            if _is(x, 0):
                return self.unary("neg", y, dtype)
            opposite = self._opposite(y)
            if opposite is not None:
                return self.binary("add", x, opposite, dtype)
        elif operation == "multiply":
            if _is(x, 0) or _is(y, 0):
                return 0.0 if dtype.kind == "f" else 0
            for a, b in ((x, y), (y, x)):
                if _is(a, 1):
                    return b
                if _is(a, -1):
                    return self.unary("neg", b, dtype)
                opposite = self._opposite(b)
                if opposite is not None:
                    return self.unary("neg", self.binary("mul", a, opposite, dtype), dtype)
        elif operation == "divide":
            if _is(y, 1):
                return x
            if _is(x, 0):
                return 0.0 if dtype.kind == "f" else 0
        elif operation in ("and", "or") and dtype.kind == "b":
            for a, b in ((x, y), (y, x)):
                if not isinstance(a, Value):
                    return b if bool(a) == (operation == "and") else bool(a)
        return None

    def compare(self, name: str, x: Scalar, y: Scalar) -> Scalar:
        if not isinstance(x, Value) and not isinstance(y, Value):
            return bool(_COMPARE[name](x, y))
        return self.value(f"compare {name.upper()}", (x, y), np.dtype(bool))

    def is_finite(self, x: Scalar) -> Scalar:
        if not isinstance(x, Value):
            return bool(np.isfinite(x))
        return self.compare("le", self.unary("abs", x, x.dtype), float(np.finfo(x.dtype).max))

    def select(self, which: Scalar, no: Scalar, yes: Scalar, dtype: np.dtype) -> Scalar:
        if not isinstance(which, Value):
            return yes if which else no
        if no is yes or (not isinstance(no, Value) and not isinstance(yes, Value) and no == yes):
            return no
        result = self.value("select", (which, yes, no), dtype)
        return self._showing(result, self._needed(yes) & self._needed(no))

    def convert(self, x: Scalar, dtype: np.dtype) -> Scalar:
        if not isinstance(x, Value):
            result = np.asarray(x).astype(dtype).item()
        else:
            result = x if x.dtype == dtype else self.value("convert", (x,), dtype)
        return result if dtype.kind != "f" else self._showing(result, self._needed(x))

    def power(self, x: Scalar, exponent: int, dtype: np.dtype) -> Scalar:
        result: Scalar = 1.0 if dtype.kind == "f" else 1
        square, left = x, abs(exponent)
        while left:
            if left & 1:
                result = self.binary("mul", result, square, dtype)
            left >>= 1
            if left:
                square = self.binary("mul", square, square, dtype)
        return result if exponent >= 0 else self.binary("div", 1.0, result, dtype)

    def _opposite(self, x: Scalar) -> Scalar | None:
        """What x is the negative of, if it is written so."""
        if isinstance(x, Value) and self.instructions[x.number][0] == "negate":
            return self.instructions[x.number][1][0]
        return None


def _lost(x: Scalar) -> int:
    return x.lost if isinstance(x, Value | Known) else 0


def _is(x: Scalar, number: int) -> bool:
    return not isinstance(x, Value) and x == number


def _computed(f: Callable, dtype: np.dtype, *operands: Scalar) -> Scalar:
    with np.errstate(all="ignore"):
        arguments = [np.asarray(x).astype(dtype) for x in operands]
        return np.asarray(f(*arguments)).astype(dtype).item()


def written_out(jaxpr: Any, consts: Sequence[Any]) -> tuple[Program, list[np.ndarray]]:
    """The program of a jaxpr, and the entries of its results: arrays of scalars."""
    program = Program()
    arguments = []
    for i, v in enumerate(jaxpr.invars):
        entries = [program.argument(i, k, v.aval.dtype) for k in range(v.aval.size)]
        arguments.append(_array(entries, v.aval.shape))
    found = _run(program, jaxpr, [_constant(c) for c in consts], arguments)
    kinds = [v.aval.dtype for v in jaxpr.outvars]
    return program, program.results(found, kinds)


def _run(program: Program, jaxpr: Any, consts: list, arguments: list) -> list[np.ndarray]:
    values: dict[Any, np.ndarray] = dict(zip(jaxpr.constvars, consts, strict=True))
    values.update(zip(jaxpr.invars, arguments, strict=True))

    def read(v: Any) -> np.ndarray:
        return _constant(v.val) if is_literal(v) else values[v]

    for equation in jaxpr.eqns:
        if any(v.aval.size > _LARGEST for v in equation.outvars):
            raise Unsupported(f"an array of more than {_LARGEST} entries")
        operands = [read(v) for v in equation.invars]
        results = _apply(program, equation, operands)
        for v, result in zip(equation.outvars, results, strict=True):
            if result.shape != v.aval.shape:
                result = np.broadcast_to(result, v.aval.shape)
            values[v] = result
    return [read(v) for v in jaxpr.outvars]


def _apply(program: Program, equation: Any, operands: list[np.ndarray]) -> list[np.ndarray]:
    name, params = equation.primitive.name, equation.params
    dtype = equation.outvars[0].aval.dtype
    if name == "round" and int(params["rounding_method"]) != 1:
        raise Unsupported("rounding half away from zero")
    if name in _UNARY:
        return [_elementwise(lambda x: program.unary(name, x, dtype), *operands)]
    if name in _BINARY:
        return [_elementwise(lambda x, y: program.binary(name, x, y, dtype), *operands)]
    if name == "is_finite":
        return [_elementwise(program.is_finite, *operands)]
    if name in _COMPARE:
        return [_elementwise(lambda x, y: program.compare(name, x, y), *operands)]
    if name in _STRUCTURAL:
        return [_STRUCTURAL[name](params, *operands)]
    if name in _ARITHMETIC:
        return [_ARITHMETIC[name](program, dtype, params, *operands)]
    if name == "scan":
        return _scan(program, params, operands)
    if name == "custom_linear_solve":
        return _linear_solve(program, params, operands)
    if name in _IDENTITIES:
        return operands
    if name == "unstack":
        rows = np.moveaxis(operands[0], params["axis"], 0)
        return [_part(rows, i) for i in range(len(rows))]
    if name == "split":
        ends = np.cumsum(params["sizes"])[:-1]
        return np.split(operands[0], ends, params["axis"])
    if name in _CALLS:
        inner = next(iter(nested(params)))
        return _run(program, inner.jaxpr, [_constant(c) for c in inner.consts], operands)
    raise Unsupported(f"the operation {name}")


def _scan(program: Program, params: dict, operands: list[np.ndarray]) -> list[np.ndarray]:
    (body,) = nested(params)
    n_consts, n_carry = scan_sizes(params)
    fixed, carry = operands[:n_consts], operands[n_consts : n_consts + n_carry]
    sliced = operands[n_consts + n_carry :]
    consts = [_constant(c) for c in body.consts]
    turns = range(params["length"])
    stacked = []
    for i in reversed(turns) if params["reverse"] else turns:
        rows = [_part(x, i) for x in sliced]
        results = _run(program, body.jaxpr, consts, [*fixed, *carry, *rows])
        carry = results[:n_carry]
        stacked.append(results[n_carry:])
    if params["reverse"]:
        stacked.reverse()
    if not stacked:
        shapes = [v.aval.shape for v in body.jaxpr.outvars[n_carry:]]
        return [*carry, *(_array([], (0, *shape)) for shape in shapes)]
    return [*carry, *(_stack(list(rows), 0) for rows in zip(*stacked, strict=True))]


def _linear_solve(program: Program, params: dict, operands: list[np.ndarray]) -> list[np.ndarray]:
    lengths, solve = params["const_lengths"], params["jaxprs"].solve
    first = lengths.matvec + lengths.vecmat
    consts = operands[first : first + lengths.solve]
    right = operands[first + lengths.solve + lengths.transpose_solve :]
    return _run(program, solve.jaxpr, [_constant(c) for c in solve.consts], [*consts, *right])


def _array(entries: Sequence[Scalar], shape: tuple[int, ...]) -> np.ndarray:
    array = np.empty(len(entries), object)
    array[:] = entries
    return array.reshape(shape)


def _constant(a: Any) -> np.ndarray:
    a = np.asarray(a)
    if str(a.dtype) not in TYPES:
        raise Unsupported(f"the type {a.dtype}")
    return _array(a.ravel().tolist(), a.shape)


def _part(a: np.ndarray, index: Any) -> np.ndarray:
    """a[index], an array even where it is one entry."""
    part = a[index]
    return part if isinstance(part, np.ndarray) else _array([part], ())


def _elementwise(f: Callable[..., Scalar], *operands: np.ndarray) -> np.ndarray:
    shape = np.broadcast_shapes(*(x.shape for x in operands))
    flat = [(x if x.shape == shape else np.broadcast_to(x, shape)).ravel() for x in operands]
    return _array([f(*entries) for entries in zip(*flat, strict=True)], shape)


def _stack(parts: list[np.ndarray], axis: int) -> np.ndarray:
    return np.concatenate([np.expand_dims(p, axis) for p in parts], axis)


def _broadcast(params: dict, x: np.ndarray, *_: np.ndarray) -> np.ndarray:
    shape, places = params["shape"], params["broadcast_dimensions"]
    spread = [1] * len(shape)
    for size, place in zip(x.shape, places, strict=True):
        spread[place] = size
    return np.broadcast_to(x.reshape(spread), shape)


def _slice(params: dict, x: np.ndarray) -> np.ndarray:
    steps = params["strides"] or (1,) * x.ndim
    limits = zip(params["start_indices"], params["limit_indices"], steps, strict=True)
    return _part(x, tuple(slice(*each) for each in limits))


def _starts(x: np.ndarray, sizes: Sequence[int], starts: Sequence[np.ndarray]) -> tuple:
    windows = []
    for size, length, start in zip(x.shape, sizes, starts, strict=True):
        first = start.item()
        if isinstance(first, Value):
            raise Unsupported("an index that is known at run time only")
        first = min(max(int(first), 0), size - length)
        windows.append(slice(first, first + length))
    return tuple(windows)


def _dynamic_slice(params: dict, x: np.ndarray, *starts: np.ndarray) -> np.ndarray:
    return _part(x, _starts(x, params["slice_sizes"], starts))


def _update(params: dict, x: np.ndarray, new: np.ndarray, *starts: np.ndarray) -> np.ndarray:
    changed = x.copy()
    changed[_starts(x, new.shape, starts)] = new
    return changed


def _iota(params: dict) -> np.ndarray:
    shape, along = params["shape"], params["dimension"]
    counts = np.arange(shape[along]).astype(params["dtype"])
    spread = counts.reshape([-1 if i == along else 1 for i in range(len(shape))])
    return _constant(np.broadcast_to(spread, shape))


def _pad(params: dict, x: np.ndarray, filler: np.ndarray) -> np.ndarray:
    config = params["padding_config"]
    if any(low < 0 or high < 0 for low, high, _ in config):
        raise Unsupported("negative padding")
    shape = [
        low + high + size + max(size - 1, 0) * inside
        for size, (low, high, inside) in zip(x.shape, config, strict=True)
    ]
    padded = np.full(shape, filler.item(), object)
    places = [
        slice(low, low + size + max(size - 1, 0) * inside, inside + 1)
        for size, (low, _, inside) in zip(x.shape, config, strict=True)
    ]
    padded[tuple(places)] = x
    return padded


_STRUCTURAL: dict[str, Callable[..., np.ndarray]] = {
    "broadcast_in_dim": _broadcast,
    "concatenate": lambda params, *xs: np.concatenate(xs, params["dimension"]),
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _update,
    "iota": _iota,
    "pad": _pad,
    "reshape": lambda params, x, *_: x.reshape(params["new_sizes"]),
    "rev": lambda params, x: np.flip(x, params["dimensions"]),
    "slice": _slice,
    "squeeze": lambda params, x: _part(
        x, tuple(0 if i in params["dimensions"] else slice(None) for i in range(x.ndim))
    ),
    "stack": lambda params, *xs: _stack(list(xs), params.get("axis", 0)),
    "transpose": lambda params, x: np.transpose(x, params["permutation"]),
}


def _select(program, dtype, params, which, *cases):
    if len(cases) != 2:
        raise Unsupported("a choice among more than two")
    return _elementwise(lambda w, no, yes: program.select(w, no, yes, dtype), which, *cases)


def _clamp(program, dtype, params, low, x, high):
    def between(low: Scalar, x: Scalar, high: Scalar) -> Scalar:
        return program.binary("min", program.binary("max", x, low, dtype), high, dtype)

    return _elementwise(between, low, x, high)


def _reduction(name: str) -> Callable:
    def reduce(program, dtype, params, x):
        axes = tuple(params["axes"])
        kept = [i for i in range(x.ndim) if i not in axes]
        shape = tuple(x.shape[i] for i in kept)
        if x.size == 0:
            raise Unsupported("the reduction of nothing")
        rows = np.transpose(x, [*kept, *axes]).reshape((*shape, -1))
        total = _part(rows, (..., 0))
        for k in range(1, rows.shape[-1]):
            total = _elementwise(
                lambda x, y: program.binary(name, x, y, dtype), total, _part(rows, (..., k))
            )
        return total

    return reduce


_ARITHMETIC: dict[str, Callable[..., np.ndarray]] = {
    "clamp": _clamp,
    "convert_element_type": lambda program, dtype, params, x: _elementwise(
        lambda x: program.convert(x, dtype), x
    ),
    "integer_pow": lambda program, dtype, params, x: _elementwise(
        lambda x: program.power(x, params["y"], dtype), x
    ),
    "reduce_and": _reduction("and"),
    "reduce_max": _reduction("max"),
    "reduce_min": _reduction("min"),
    "reduce_or": _reduction("or"),
    "reduce_sum": _reduction("add"),
    "select_n": _select,
    "square": lambda program, dtype, params, x: _elementwise(
        lambda x: program.binary("mul", x, x, dtype), x
    ),
}
_IDENTITIES = frozenset("copy native_border native_tag optimization_barrier stop_gradient".split())
_CALLS = frozenset("checkpoint closed_call custom_jvp_call jit native_kernel pjit remat2".split())
