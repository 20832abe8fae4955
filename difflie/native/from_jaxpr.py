"""The program of a jaxpr: arrays are arrays of the numbers of their entries.

What only moves entries about (slices, transpositions, gathers at known places) costs nothing at run
time; loops over known numbers of turns are written out, `while` becomes a loop of the program.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import factorisations
from .fingerprint import CALLS
from .indexing import gathered, scattered
from .jaxprs import nested
from .private import Literal, scan_sizes
from .program import BINARY, COMPARE, NUMPY, TYPES, UNARY, Loop, Program, Unsupported

# Arrays with more entries are no part of a program.
LARGEST = 20_000

Array = np.ndarray

_KINDS = {np.dtype(name): kind for name, kind in TYPES.items()}


def kind_of(dtype: Any) -> str:
    """The type of the scalars of an array."""
    kind = _KINDS.get(dtype)
    if kind is None:
        raise Unsupported(f"the type {dtype}")
    return kind


def arguments(program: Program, avals: Sequence[Any]) -> list[Array]:
    """New arguments of these shapes and types."""
    made = []
    for aval in avals:
        kind = kind_of(aval.dtype)
        if aval.size > LARGEST:
            raise Unsupported(f"an array of more than {LARGEST} entries")
        entries = [program.argument(kind) for _ in range(aval.size)]
        made.append(np.array(entries, np.int64).reshape(aval.shape))
    return made


def constants(program: Program, a: Any) -> Array:
    """A known array."""
    a = np.asarray(a)
    kind = kind_of(a.dtype)
    if a.size > LARGEST:
        raise Unsupported(f"an array of more than {LARGEST} entries")
    constant = program.constant
    entries = [constant(x, kind) for x in a.ravel().tolist()]
    return np.array(entries, np.int64).reshape(a.shape)


def write(
    program: Program, jaxpr: Any, consts: Sequence[Any], given: Sequence[Array]
) -> list[Array]:
    """Appends what a jaxpr computes; consts are arrays, given and the results scalars' numbers."""
    values: dict[Any, Array | int] = {}
    for v, c in zip(jaxpr.constvars, consts, strict=True):
        values[v] = constants(program, c)
    values.update(zip(jaxpr.invars, given, strict=True))

    def read(v: Any) -> Array:
        if v.__class__ is Literal:
            return constants(program, v.val)
        x = values[v]
        return np.array(x, np.int64) if x.__class__ is int else x  # pyright: ignore

    def scalar(v: Any) -> int:
        if v.__class__ is Literal:
            return program.constant(np.asarray(v.val).item(), kind_of(v.aval.dtype))
        x = values[v]
        return x if x.__class__ is int else x.item()  # pyright: ignore

    arithmetic = {name: getattr(program, name) for name in ("add", "sub", "mul", "div")}
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        if name in arithmetic and not equation.outvars[0].aval.shape:
            # Nine out of ten operations, which need no arrays.
            (result,) = equation.outvars
            operands = map(scalar, equation.invars)
            values[result] = arithmetic[name](*operands, kind_of(result.aval.dtype))
            continue
        rule = _RULES.get(name)
        if rule is None:
            raise Unsupported(f"the operation {name}")
        results = rule(program, equation, *map(read, equation.invars))
        for v, result in zip(equation.outvars, results, strict=True):
            if result.size > LARGEST:
                raise Unsupported(f"an array of more than {LARGEST} entries")
            if result.shape != v.aval.shape:
                result = np.broadcast_to(result, v.aval.shape)
            values[v] = result
    return [read(v) for v in jaxpr.outvars]


def write_closed(program: Program, closed: Any, given: Sequence[Array]) -> list[Array]:
    """The same for a closed jaxpr."""
    return write(program, closed.jaxpr, closed.consts, given)


# Arithmetic


def elementwise(f: Callable[..., int], *operands: Array) -> Array:
    """f, entry by entry."""
    first = operands[0]
    shape = first.shape
    for x in operands:
        if x.shape != shape:
            shape = np.broadcast_shapes(*(x.shape for x in operands))
            operands = tuple(np.broadcast_to(x, shape) for x in operands)
            break
    lists = [x.ravel().tolist() for x in operands]
    return np.array(list(map(f, *lists)), np.int64).reshape(shape)


def _kind(equation: Any) -> str:
    return kind_of(equation.outvars[0].aval.dtype)


def _unary(program: Program, equation: Any, x: Array) -> list[Array]:
    name, kind = equation.primitive.name, _kind(equation)
    return [elementwise(lambda a: program.unary(name, a, kind), x)]


def _binary(name: str) -> Callable:
    def apply(program: Program, equation: Any, x: Array, y: Array) -> list[Array]:
        kind = _kind(equation)
        if name in ("add", "sub", "mul", "div"):
            f = getattr(program, name)
            return [elementwise(lambda a, b: f(a, b, kind), x, y)]
        return [elementwise(lambda a, b: program.binary(name, a, b, kind), x, y)]

    return apply


def _compare(program: Program, equation: Any, x: Array, y: Array) -> list[Array]:
    name = equation.primitive.name
    return [elementwise(lambda a, b: program.compare(name, a, b), x, y)]


def _convert(program: Program, equation: Any, x: Array, *_: Array) -> list[Array]:
    kind = _kind(equation)
    return [elementwise(lambda a: program.convert(a, kind), x)]


def _round(program: Program, equation: Any, x: Array) -> list[Array]:
    if int(equation.params["rounding_method"]) != 1:
        raise Unsupported("rounding half away from zero")
    return _unary(program, equation, x)


def _integer_pow(program: Program, equation: Any, x: Array) -> list[Array]:
    kind, y = _kind(equation), equation.params["y"]
    return [elementwise(lambda a: program.power(a, y, kind), x)]


def _pow(program: Program, equation: Any, x: Array, y: Array) -> list[Array]:
    kind = _kind(equation)
    y = elementwise(lambda a: program.convert(a, kind), y)
    return [elementwise(lambda a, b: program.binary("pow", a, b, kind), x, y)]


def _square(program: Program, equation: Any, x: Array) -> list[Array]:
    kind = _kind(equation)
    return [elementwise(lambda a: program.mul(a, a, kind), x)]


def _one_minus_square(program: Program, equation: Any, x: Array) -> list[Array]:
    """(1 + x) (1 - x), as jax from 0.12 has it."""
    kind = _kind(equation)
    one = program.constant(1.0, kind)

    def scalar(a: int) -> int:
        return program.mul(program.add(one, a, kind), program.sub(one, a, kind), kind)

    return [elementwise(scalar, x)]


def _log2(program: Program, equation: Any, x: Array) -> list[Array]:
    kind = _kind(equation)
    by = program.constant(1 / math.log(2), kind)
    return [elementwise(lambda a: program.mul(program.unary("log", a, kind), by, kind), x)]


def _polynomial(program: Program, equation: Any, x: Array, *coefficients: Array) -> list[Array]:
    """By Horner's rule; the coefficient of the lowest power comes first."""
    kind = _kind(equation)

    def turn(total: int, a: int, c: int) -> int:
        return program.add(program.mul(total, a, kind), c, kind)

    total = np.broadcast_to(coefficients[-1], equation.outvars[0].aval.shape)
    for c in coefficients[-2::-1]:
        total = elementwise(turn, total, x, c)
    return [total]


def _rsqrt(program: Program, equation: Any, x: Array) -> list[Array]:
    kind = _kind(equation)
    one = program.constant(1.0, kind)
    return [elementwise(lambda a: program.div(one, program.unary("sqrt", a, kind), kind), x)]


def _select(program: Program, equation: Any, which: Array, *cases: Array) -> list[Array]:
    kind = _kind(equation)
    if not which.size or program.types[which.flat[0]] == "b1":
        return [elementwise(lambda w, n, y: program.select(w, n, y, kind), which, *cases)]
    return [_chosen(program, which, cases, kind)]


def _chosen(program: Program, which: Array, cases: Sequence[Array], kind: str) -> Array:
    """The entries of the case of this number; of the nearest where there is none."""
    found = cases[-1]
    for k in range(len(cases) - 2, -1, -1):
        is_k = elementwise(lambda w, k=k: _at_most(program, w, k), which)
        found = elementwise(lambda w, n, y: program.select(w, n, y, kind), is_k, found, cases[k])
    return found


def _at_most(program: Program, x: int, k: int) -> int:
    if program.types[x] == "b1":
        return program.unary("not", x, "b1") if k == 0 else program.constant(True, "b1")
    return program.compare("le", x, program.constant(k, program.types[x]))


def _clamp(program: Program, equation: Any, low: Array, x: Array, high: Array) -> list[Array]:
    kind = _kind(equation)

    def between(low: int, x: int, high: int) -> int:
        return program.binary("min", program.binary("max", x, low, kind), high, kind)

    return [elementwise(between, low, x, high)]


def _reduction(name: str) -> Callable:
    def reduce(program: Program, equation: Any, x: Array) -> list[Array]:
        kind = _kind(equation)
        axes = tuple(equation.params["axes"])
        kept = [i for i in range(x.ndim) if i not in axes]
        shape = tuple(x.shape[i] for i in kept)
        count = math.prod(x.shape[i] for i in axes)
        rows = np.transpose(x, [*kept, *axes]).reshape((*shape, count))
        if rows.shape[-1] == 0:
            if name != "add":
                raise Unsupported("the reduction of nothing")
            zero = program.constant(0.0 if kind[0] == "f" else 0, kind)
            return [np.full(shape, zero, np.int64)]
        f = functools.partial(_reduced, program, name, kind)
        return [np.apply_along_axis(f, -1, rows) if rows.size else rows[..., 0]]

    return reduce


def _reduced(program: Program, name: str, kind: str, entries: Any) -> int:
    total, *rest = entries.tolist()
    for x in rest:
        total = program.binary(name, total, x, kind)
    return total


def _cumulative(name: str) -> Callable:
    def apply(program: Program, equation: Any, x: Array) -> list[Array]:
        kind, axis = _kind(equation), equation.params["axis"]
        rows = np.moveaxis(x, axis, 0)
        rows = rows[::-1] if equation.params["reverse"] else rows
        f = functools.partial(elementwise, lambda a, b: program.binary(name, a, b, kind))
        sums = np.stack(list(itertools.accumulate(rows, f))) if len(rows) else rows
        sums = sums[::-1] if equation.params["reverse"] else sums
        return [np.moveaxis(sums, 0, axis)]

    return apply


def _arg_best(name: str) -> Callable:
    def apply(program: Program, equation: Any, x: Array) -> list[Array]:
        kind = _kind(equation)
        (axis,) = equation.params["axes"]

        def best(entries: Any) -> int:
            first, *rest = entries.tolist()
            at = program.constant(0, kind)
            for k, y in enumerate(rest, 1):
                # What is not a number comes first, as in NumPy.
                better = program.compare("gt" if name == "argmax" else "lt", y, first)
                if program.types[y][0] == "f":
                    nan = program.compare("ne", y, y)
                    fine = program.compare("eq", first, first)
                    better = program.binary("or", better, nan, "b1")
                    better = program.binary("and", better, fine, "b1")
                first = program.select(better, first, y, program.types[y])
                at = program.select(better, at, program.constant(k, kind), kind)
            return at

        return [np.apply_along_axis(best, axis, x)]

    return apply


def _dot(program: Program, equation: Any, x: Array, y: Array) -> list[Array]:
    kind = _kind(equation)
    if any(program.types[a.flat[0]] != kind for a in (x, y) if a.size):
        raise Unsupported("a product of mixed types")
    (cx, cy), (bx, by) = equation.params["dimension_numbers"]
    rest_x = [i for i in range(x.ndim) if i not in (*cx, *bx)]
    rest_y = [i for i in range(y.ndim) if i not in (*cy, *by)]
    batch = [x.shape[i] for i in bx]
    n = math.prod(x.shape[i] for i in cx)
    shape = (*batch, *(x.shape[i] for i in rest_x), *(y.shape[i] for i in rest_y))
    count = math.prod(batch)
    rows, columns = math.prod(x.shape[i] for i in rest_x), math.prod(y.shape[i] for i in rest_y)
    left = np.transpose(x, (*bx, *rest_x, *cx)).reshape((count, rows, n))
    right = np.transpose(y, (*by, *rest_y, *cy)).reshape((count, columns, n))
    zero = program.constant(0.0 if kind[0] == "f" else 0, kind)
    entries = []
    for one, two in zip(left.tolist(), right.tolist(), strict=True):
        for row, column in itertools.product(one, two):
            total = zero
            for a, b in zip(row, column, strict=True):
                total = program.add(total, program.mul(a, b, kind), kind)
            entries.append(total)
    return [np.array(entries, np.int64).reshape(shape)]


# Places


def _structural(f: Callable) -> Callable:
    return lambda program, equation, *xs: [f(equation.params, *xs)]


def _broadcast(params: dict, x: Array, *_: Array) -> Array:
    shape, places = params["shape"], params["broadcast_dimensions"]
    spread = [1] * len(shape)
    for size, place in zip(x.shape, places, strict=True):
        spread[place] = size
    return np.broadcast_to(x.reshape(spread), shape)


def _slice(params: dict, x: Array) -> Array:
    steps = params["strides"] or (1,) * x.ndim
    limits = zip(params["start_indices"], params["limit_indices"], steps, strict=True)
    return x[tuple(slice(*each) for each in limits)]


def _reshape(params: dict, x: Array, *_: Array) -> Array:
    order = params.get("dimensions")
    return (x if order is None else np.transpose(x, order)).reshape(params["new_sizes"])


def _squeeze(params: dict, x: Array) -> Array:
    return np.squeeze(x, tuple(params["dimensions"]))


def _iota(program: Program, equation: Any, *_: Array) -> list[Array]:
    params = equation.params
    shape, along = params["shape"], params["dimension"]
    counts = np.arange(shape[along]).astype(params["dtype"])
    spread = counts.reshape([-1 if i == along else 1 for i in range(len(shape))])
    return [constants(program, np.broadcast_to(spread, shape))]


def _pad(program: Program, equation: Any, x: Array, filler: Array) -> list[Array]:
    config = equation.params["padding_config"]
    # Zeros that stand for places: what is cut off first is cut with them.
    places = [(max(low, 0), max(high, 0), inside) for low, high, inside in config]
    shape = [
        low + high + size + max(size - 1, 0) * inside
        for size, (low, high, inside) in zip(x.shape, places, strict=True)
    ]
    padded = np.full(shape, filler.item(), np.int64)
    at = [
        slice(low, low + size + max(size - 1, 0) * inside, inside + 1)
        for size, (low, _, inside) in zip(x.shape, places, strict=True)
    ]
    padded[tuple(at)] = x
    cut = [
        slice(-min(low, 0), size + min(high, 0))
        for size, (low, high, _) in zip(shape, config, strict=True)
    ]
    return [padded[tuple(cut)]]


def _known_or_none(program: Program, x: Array) -> Array | None:
    known = [program.known[k] for k in x.ravel().tolist()]
    if any(k is None for k in known):
        return None
    return np.array(known, np.int64).reshape(x.shape)


def _is_at(program: Program, start: int, k: int, last: int) -> int:
    """Whether a start, clamped to 0..last, is k."""
    kind = program.types[start]
    here = program.constant(k, kind)
    if last == 0:
        return program.constant(True, "b1")
    if k == 0:
        return program.compare("le", start, here)
    return program.compare("ge" if k == last else "eq", start, here)


def _dynamic_slice(program: Program, equation: Any, x: Array, *starts: Array) -> list[Array]:
    kind, sizes = _kind(equation), equation.params["slice_sizes"]
    for axis, (size, start) in enumerate(zip(sizes, starts, strict=True)):
        x = _window(program, kind, x, axis, size, start.item())
    return [x]


def _window(program: Program, kind: str, x: Array, axis: int, size: int, start: int) -> Array:
    last = x.shape[axis] - size
    rows = np.moveaxis(x, axis, 0)
    known = program.known[start]
    if known is not None:
        first = min(max(int(known), 0), last)
        return np.moveaxis(rows[first : first + size], 0, axis)
    _one_of(last + 1)
    found = rows[last : last + size]
    for k in range(last - 1, -1, -1):
        here = np.array(_up_to(program, start, k))
        found = elementwise(
            lambda w, n, y: program.select(w, n, y, kind),
            np.broadcast_to(here, found.shape),
            found,
            rows[k : k + size],
        )
    return np.moveaxis(found, 0, axis)


# To choose among more places at run time takes too many comparisons.
MOST_PLACES = 256


def _one_of(places: int) -> None:
    if places > MOST_PLACES:
        raise Unsupported(f"one of {places} places, known at run time only")


def _up_to(program: Program, start: int, k: int) -> int:
    return program.compare("le", start, program.constant(k, program.types[start]))


def _update(program: Program, equation: Any, x: Array, new: Array, *starts: Array) -> list[Array]:
    kind = _kind(equation)
    found = x.copy()
    last = [n - m for n, m in zip(x.shape, new.shape, strict=True)]
    first = [program.known[s.item()] for s in starts]
    ranges = [
        range(n + 1) if f is None else [min(max(int(f), 0), n)]
        for f, n in zip(first, last, strict=True)
    ]
    _one_of(math.prod(map(len, ranges)))
    for at in itertools.product(*ranges):
        window = tuple(slice(a, a + m) for a, m in zip(at, new.shape, strict=True))
        here = program.constant(True, "b1")
        for start, a, n, f in zip(starts, at, last, first, strict=True):
            if f is None:
                is_at = _is_at(program, start.item(), a, n)
                here = program.binary("and", here, is_at, "b1")
        found[window] = elementwise(
            lambda w, n, y: program.select(w, n, y, kind),
            np.broadcast_to(np.array(here), new.shape),
            found[window],
            new,
        )
    return [found]


def _gather(program: Program, equation: Any, x: Array, indices: Array) -> list[Array]:
    params, kind = equation.params, _kind(equation)
    known = _known_or_none(program, indices)
    if known is None:
        return [_gather_somewhere(program, kind, x, indices, params)]
    places = gathered(params, x.shape, known)
    flat = np.append(x.ravel(), _filler(program, params["fill_value"], kind))
    return [flat[places]]


def _filler(program: Program, given: Any, kind: str) -> int:
    """What a gather takes from outside."""
    if given is not None:
        return program.constant(np.asarray(given).astype(NUMPY[kind]).item(), kind)
    if kind[0] == "f":
        return program.constant(float("nan"), kind)
    if kind == "b1":
        return program.constant(True, kind)
    info = np.iinfo(NUMPY[kind])
    return program.constant(int(info.min if kind[0] == "i" else info.max), kind)


def _gather_somewhere(program: Program, kind: str, x: Array, indices: Array, params: dict) -> Array:
    """A gather of rows x[i] at places known at run time only, clamped."""
    numbers = params["dimension_numbers"]
    sizes = params["slice_sizes"]
    mapped = numbers.start_index_map
    simple = not numbers.operand_batching_dims and indices.shape[-1] == len(mapped)
    if not simple or int(np.prod(indices.shape[:-1])) > 64:
        raise Unsupported("a gather at places known at run time only")
    if "FILL" in str(params["mode"]) and "CLIP" not in str(params["mode"]):
        raise Unsupported("a gather that fills, at places known at run time only")
    batch = indices.shape[:-1]
    pieces = []
    for at in indices.reshape((-1, len(mapped))).tolist():
        piece = x
        for axis, size in enumerate(sizes):
            zero = program.constant(0, "i32")
            start = at[mapped.index(axis)] if axis in mapped else zero
            piece = _window(program, kind, piece, axis, size, start)
        pieces.append(np.squeeze(piece, tuple(numbers.collapsed_slice_dims)))
    stacked = np.stack(pieces).reshape((*batch, *pieces[0].shape))
    # The axes of the batch stand where no axis of a slice does.
    offsets = numbers.offset_dims
    rank = len(batch) + len(offsets)
    order = iter(range(len(batch)))
    inner = iter(range(len(batch), rank))
    axes = [next(inner) if i in offsets else next(order) for i in range(rank)]
    return np.transpose(stacked, axes)


def _scatter(name: str) -> Callable:
    def apply(program: Program, equation: Any, x: Array, at: Array, new: Array) -> list[Array]:
        params, kind = equation.params, _kind(equation)
        known = _known_or_none(program, at)
        if known is None:
            return [_scatter_somewhere(program, kind, name, x, at, new, params)]
        places = scattered(params, x.shape, known, new.shape).ravel().tolist()
        found = x.ravel().tolist()
        for place, y in zip(places, new.ravel().tolist(), strict=True):
            if place >= 0:
                found[place] = _put(program, name, found[place], y, kind)
        return [np.array(found, np.int64).reshape(x.shape)]

    return apply


def _put(program: Program, name: str, old: int, new: int, kind: str) -> int:
    return new if name == "set" else program.binary(name, old, new, kind)


def _scatter_somewhere(
    program: Program, kind: str, name: str, x: Array, at: Array, new: Array, params: dict
) -> Array:
    """A scatter of one slice at a place known at run time only; outside, nothing is changed."""
    numbers = params["dimension_numbers"]
    if at.ndim != 1 or numbers.operand_batching_dims:
        raise Unsupported("a scatter at places known at run time only")
    window = np.expand_dims(new, tuple(numbers.inserted_window_dims))
    starts = dict(zip(numbers.scatter_dims_to_operand_dims, at.tolist(), strict=True))
    last = [n - m for n, m in zip(x.shape, window.shape, strict=True)]
    found = x.copy()
    clips = "CLIP" in str(params["mode"])
    _one_of(math.prod(n + 1 for k, n in enumerate(last) if k in starts))
    for corner in itertools.product(
        *(range(n + 1 if k in starts else 1) for k, n in enumerate(last))
    ):
        here = program.constant(True, "b1")
        for axis, start in starts.items():
            if clips:
                is_at = _is_at(program, start, corner[axis], last[axis])
            else:
                place = program.constant(corner[axis], program.types[start])
                is_at = program.compare("eq", start, place)
            here = program.binary("and", here, is_at, "b1")
        part = tuple(slice(a, a + m) for a, m in zip(corner, window.shape, strict=True))

        def changed(w: int, old: int, y: int) -> int:
            return program.select(w, old, _put(program, name, old, y, kind), kind)

        here = np.broadcast_to(np.array(here), window.shape)
        found[part] = elementwise(changed, here, found[part], window)
    return found


def _split(program: Program, equation: Any, x: Array) -> list[Array]:
    ends = np.cumsum(equation.params["sizes"])[:-1]
    return np.split(x, ends, equation.params["axis"])


def _unstack(program: Program, equation: Any, x: Array) -> list[Array]:
    return list(np.moveaxis(x, equation.params["axis"], 0))


# Functions within functions


def _identity(program: Program, equation: Any, *xs: Array) -> list[Array]:
    return list(xs)


def _call(program: Program, equation: Any, *xs: Array) -> list[Array]:
    return write_closed(program, next(iter(nested(equation.params))), xs)


def _native(program: Program, equation: Any, *xs: Array) -> list[Array]:
    loop, batch = equation.params["how"], equation.params["batch"]
    if batch is None:
        return loop.write(program, xs)
    along = equation.params["along"]
    rows = [
        loop.write(program, [x[b] if a else x for x, a in zip(xs, along, strict=True)])
        for b in range(batch)
    ]
    return [np.stack(row) for row in zip(*rows, strict=True)]


def _cholesky(program: Program, equation: Any, x: Array) -> list[Array]:
    return [factorisations.cholesky(program, _kind(equation), x)]


def _lu(program: Program, equation: Any, x: Array) -> list[Array]:
    return list(factorisations.lu(program, _kind(equation), x))


def _permutation(program: Program, equation: Any, pivots: Array) -> list[Array]:
    return [factorisations.permutation(program, pivots, equation.params["permutation_size"])]


def _triangular(program: Program, equation: Any, a: Array, b: Array) -> list[Array]:
    params = equation.params
    return [factorisations.triangular_solve(program, _kind(equation), params, a, b)]


def _sort(program: Program, equation: Any, *xs: Array) -> list[Array]:
    return factorisations.sort(program, equation.params, *xs) if xs[0].size else list(xs)


def _scan(program: Program, equation: Any, *xs: Array) -> list[Array]:
    params = equation.params
    (body,) = nested(params)
    n_consts, n_carry = scan_sizes(params)
    fixed, carry = xs[:n_consts], list(xs[n_consts : n_consts + n_carry])
    sliced, turns = xs[n_consts + n_carry :], range(params["length"])
    stacked = []
    for i in reversed(turns) if params["reverse"] else turns:
        results = write_closed(program, body, [*fixed, *carry, *(x[i] for x in sliced)])
        avals = body.jaxpr.outvars
        carry = results[:n_carry]
        stacked.append(
            [np.broadcast_to(r, v.aval.shape) for r, v in zip(results, avals, strict=True)][
                n_carry:
            ]
        )
    if params["reverse"]:
        stacked.reverse()
    if not stacked:
        shapes = [v.aval.shape for v in body.jaxpr.outvars[n_carry:]]
        return [*carry, *(np.zeros((0, *shape), np.int64) for shape in shapes)]
    return [*carry, *(np.stack(rows) for rows in zip(*stacked, strict=True))]


def _while(program: Program, equation: Any, *xs: Array) -> list[Array]:
    params = equation.params
    n_cond, n_body = params["cond_nconsts"], params["body_nconsts"]
    consts, start = xs[: n_cond + n_body], xs[n_cond + n_body :]
    kinds = [kind_of(v.aval.dtype) for v in params["body_jaxpr"].jaxpr.outvars]
    shapes = [v.aval.shape for v in params["body_jaxpr"].jaxpr.outvars]
    flat = [k for x in consts for k in x.ravel().tolist()]
    # What is known is known inside, and what is given twice is one argument.
    guard = [k for k in (program.guard,) if k is not None and program.known[k] is None]
    fixed = [k for k in dict.fromkeys([*flat, *guard]) if program.known[k] is None]
    guards = []

    def inside() -> tuple[Program, list[Array], list[Array]]:
        inner = Program()
        place = {k: inner.argument(program.types[k]) for k in fixed}
        for k in flat:
            if program.known[k] is not None:
                place[k] = inner.constant(program.known[k], program.types[k])
        carried = [
            np.array([inner.argument(kind) for _ in range(int(np.prod(shape)))], np.int64)
            for kind, shape in zip(kinds, shapes, strict=True)
        ]
        carried = [c.reshape(s) for c, s in zip(carried, shapes, strict=True)]
        guards[:] = [place[k] for k in guard]
        moved = [np.array([place[k] for k in x.ravel().tolist()], np.int64) for x in consts]
        return inner, [m.reshape(x.shape) for m, x in zip(moved, consts, strict=True)], carried

    condition, given, carried = inside()
    (more,) = write_closed(condition, params["cond_jaxpr"], [*given[:n_cond], *carried])
    if more.shape:
        raise Unsupported("a loop that ends at another time for each entry")
    more = more.item()
    for k in guards:
        more = condition.binary("and", more, k, "b1")
    condition.finish([more])
    body, given, carried = inside()
    after = write_closed(body, params["body_jaxpr"], [*given[n_cond:], *carried])
    after = [np.broadcast_to(a, s) for a, s in zip(after, shapes, strict=True)]
    body.finish([k for a in after for k in a.ravel().tolist()])
    entries = [k for x in start for k in x.ravel().tolist()]
    ends = iter(program.repeat(Loop(len(fixed), condition, body), [*fixed, *entries]))
    found = [[next(ends) for _ in range(int(np.prod(shape)))] for shape in shapes]
    return [np.array(f, np.int64).reshape(s) for f, s in zip(found, shapes, strict=True)]


def _cond(program: Program, equation: Any, which: Array, *xs: Array) -> list[Array]:
    branches = equation.params["branches"]
    known = program.known[which.item()]
    if known is not None:
        chosen = branches[min(max(int(known), 0), len(branches) - 1)]
        return write_closed(program, chosen, xs)
    found, outer = [], program.guard
    for i, branch in enumerate(branches):
        program.guard = _is_at(program, which.item(), i, len(branches) - 1)
        if outer is not None:
            program.guard = program.binary("and", program.guard, outer, "b1")
        found.append(write_closed(program, branch, xs))
    program.guard = outer
    chosen = []
    for v, cases in zip(equation.outvars, zip(*found, strict=True), strict=True):
        cases = [np.broadcast_to(c, v.aval.shape) for c in cases]
        where = np.broadcast_to(which, v.aval.shape)
        chosen.append(
            _chosen(program, where, cases, kind_of(v.aval.dtype)) if v.aval.size else cases[0]
        )
    return chosen


def _linear_solve(program: Program, equation: Any, *xs: Array) -> list[Array]:
    params = equation.params
    lengths, solve = params["const_lengths"], params["jaxprs"].solve
    first = lengths.matvec + lengths.vecmat
    consts = xs[first : first + lengths.solve]
    right = xs[first + lengths.solve + lengths.transpose_solve :]
    back = params["jaxprs"].transpose_solve
    entries = [k for x in right for k in x.ravel().tolist()]
    if back is None or not any(map(program.is_linear, entries)):
        return write_closed(program, solve, [*consts, *right])
    given = xs[first + lengths.solve :][: lengths.transpose_solve]

    def transpose(program: Program, cotangents: list[int]) -> list[int]:
        found = write_closed(program, back, [*given, *_like(cotangents, right)])
        return [k for x in found for k in x.ravel().tolist()]

    return _like(program.solve(entries, transpose), right)


def _like(entries: list[int], arrays: Sequence[Array]) -> list[Array]:
    """The entries of several arrays in the shapes of others."""
    ends = np.cumsum([x.size for x in arrays])[:-1]
    parts = np.split(np.array(entries, np.int64), ends)
    return [part.reshape(x.shape) for part, x in zip(parts, arrays, strict=True)]


_RULES: dict[str, Callable[..., list[Array]]] = {
    **dict.fromkeys(sorted(UNARY), _unary),
    **{name: _binary(name) for name in sorted(BINARY)},
    **dict.fromkeys(sorted(COMPARE), _compare),
    **dict.fromkeys(
        "copy copy_p native_border optimization_barrier stop_gradient".split(), _identity
    ),
    **dict.fromkeys(sorted(CALLS), _call),
    "add_any": _binary("add"),
    "argmax": _arg_best("argmax"),
    "argmin": _arg_best("argmin"),
    "broadcast_in_dim": _structural(_broadcast),
    "cholesky": _cholesky,
    "clamp": _clamp,
    "concatenate": _structural(lambda params, *xs: np.concatenate(xs, params["dimension"])),
    "cond": _cond,
    "convert_element_type": _convert,
    "cummax": _cumulative("max"),
    "cummin": _cumulative("min"),
    "cumprod": _cumulative("mul"),
    "cumsum": _cumulative("add"),
    "custom_linear_solve": _linear_solve,
    "dot_general": _dot,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _update,
    "gather": _gather,
    "integer_pow": _integer_pow,
    "iota": _iota,
    "is_finite": lambda program, equation, x: [elementwise(program.is_finite, x)],
    "log2": _log2,
    "lu": _lu,
    "lu_pivots_to_permutation": _permutation,
    "native": _native,
    "one_minus_square": _one_minus_square,
    "pad": _pad,
    "polynomial": _polynomial,
    "pow": _pow,
    "reduce_and": _reduction("and"),
    "reduce_max": _reduction("max"),
    "reduce_min": _reduction("min"),
    "reduce_or": _reduction("or"),
    "reduce_prod": _reduction("mul"),
    "reduce_sum": _reduction("add"),
    "reshape": _structural(_reshape),
    "rev": _structural(lambda params, x: np.flip(x, params["dimensions"])),
    "round": _round,
    "rsqrt": _rsqrt,
    "scan": _scan,
    "scatter": _scatter("set"),
    "scatter-add": _scatter("add"),
    "scatter_add": _scatter("add"),
    "scatter-mul": _scatter("mul"),
    "scatter_mul": _scatter("mul"),
    "select_n": _select,
    "slice": _structural(_slice),
    "sort": _sort,
    "split": _split,
    "square": _square,
    "squeeze": _structural(_squeeze),
    "stack": _structural(lambda params, *xs: np.stack(xs, params.get("axis", 0))),
    "triangular_solve": _triangular,
    "tile": _structural(lambda params, x: np.tile(x, params["reps"])),
    "transpose": _structural(lambda params, x: np.transpose(x, params["permutation"])),
    "unstack": _unstack,
    "while": _while,
}
