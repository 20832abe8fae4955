"""Loops that a program repeats instead of writing them out, and those that are transposed.

Of a loop that carries p, and linearly in tangents x, with constants c and linear constants w,

    p', x' = f(p, c), A(p, c) x + B(p, c) w

a program which is there to be transposed repeats p alone and keeps it at the start of every
iteration. Cotangents go back in a second loop, which chooses p by a counter:

    ^w += B^T ^x',  ^x = A^T ^x'
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from ..jaxprs import depending
from ..private import ClosedJaxpr, without_dead_code
from ..program import Program, Unsupported, While, finished
from ..program.transposition import transposed
from .arithmetic import choice
from .writing import Array, array_of, elementwise, flat, kind_of, like, write_closed

_COUNTER = jax.ShapeDtypeStruct((), np.int32)


def rolled(
    program: Program,
    body: Any,
    order: Sequence[int],
    fixed: Sequence[Array],
    carry: Sequence[Array],
    sliced: Sequence[Array],
) -> list[Array]:
    """A loop that carries on all it returns, repeated: its rows are chosen by a counter."""
    avals = [v.aval for v in body.jaxpr.outvars]
    n = len(fixed)
    counter = array_of(program.constant(0, "i32"), ())

    def unfinished(inner: Program, _: Sequence[Array], carried: Sequence[Array]) -> Array:
        more = inner.compare("lt", carried[0].item(), inner.constant(len(order), "i32"))
        return array_of(more, ())

    def iteration(inner: Program, consts: Sequence[Array], carried: Sequence[Array]) -> list[Array]:
        k, row_avals = carried[0].item(), [v.aval for v in body.jaxpr.invars[n + len(avals) :]]
        rows = [
            _at(inner, k, x[list(order)], a) for x, a in zip(consts[n:], row_avals, strict=True)
        ]
        after = write_closed(inner, body, [*consts[:n], *carried[1:], *rows])
        following = inner.add(k, inner.constant(1, "i32"), "i32")
        return [array_of(following, ()), *after]

    kinds, consts = [_COUNTER, *avals], [*fixed, *sliced]
    return repeated(program, consts, [counter, *carry], kinds, unfinished, iteration)[1:]


class _Split(NamedTuple):
    """Which of the carried arrays are linear, and which entries of the constants are."""

    carried: list[bool]
    fixed: list[Array]


def carried_linearly(
    program: Program,
    body: Any,
    fixed: Sequence[Array],
    carry: Sequence[Array],
    sliced: Sequence[Array],
) -> _Split | None:
    """What a loop is linear in, of a program that is there to be transposed; None if in nothing."""

    def linear(x: Array) -> Array:
        return np.array([program.is_linear(k) for k in x.ravel().tolist()], bool).reshape(x.shape)

    of_fixed, of_carry, of_rows = ([linear(x) for x in xs] for xs in (fixed, carry, sliced))
    if not any(x.any() for x in (*of_fixed, *of_carry, *of_rows)):
        return None
    carried = [bool(x.any()) for x in of_carry]
    while True:
        varied = [*(bool(x.any()) for x in of_fixed), *carried, *(bool(x.any()) for x in of_rows)]
        more = [a or b for a, b in zip(carried, depending(body.jaxpr, varied), strict=True)]
        if more == carried:
            return _Split(carried, of_fixed)
        carried = more


def rolled_linear(
    program: Program,
    body: Any,
    order: Sequence[int],
    fixed: Sequence[Array],
    carry: Sequence[Array],
    sliced: Sequence[Array],
    split: _Split,
) -> list[Array]:
    """Such a loop, of which only the transpose is known; its rows are not linear."""
    avals = [v.aval for v in body.jaxpr.outvars]
    own, moved = (_those(avals, split.carried, linear) for linear in (False, True))
    start, moved_start = (_those(carry, split.carried, linear) for linear in (False, True))
    zeros = [program.zero(kind_of(v.aval.dtype)) for v in body.jaxpr.invars[: len(fixed)]]
    known = [np.where(m, z, x) for x, m, z in zip(fixed, split.fixed, zeros, strict=True)]
    weights = [x[m] for x, m in zip(fixed, split.fixed, strict=True)]
    weight_avals = [
        jax.ShapeDtypeStruct(w.shape, v.aval.dtype)
        for w, v in zip(weights, body.jaxpr.invars, strict=False)
    ]
    rows = [x[list(order)] for x in sliced]
    row_avals = [v.aval for v in body.jaxpr.invars[len(fixed) + len(carry) :]]
    n = len(fixed)
    ends, states = _forward(program, body, split, known, start, rows, len(order))

    def unfinished(inner: Program, _: Sequence[Array], carried: Sequence[Array]) -> Array:
        return array_of(inner.compare("ge", carried[0].item(), inner.constant(0, "i32")), ())

    def iteration(inner: Program, consts: Sequence[Array], carried: Sequence[Array]) -> list[Array]:
        k, cotangents, sums = carried[0].item(), *_parts(carried[1:], len(moved))
        fixed_now, rows_now, states_now = _parts(consts, n, len(rows))
        rows_now = [_at(inner, k, x, a) for x, a in zip(rows_now, row_avals, strict=True)]
        states_now = iter([_at(inner, k, x, a) for x, a in zip(states_now, own, strict=True)])
        inputs = [_placeholders(inner, a) for a in (*moved, *weight_avals)]
        given = iter(inputs[: len(moved)])
        carried_now = [next(given if linear else states_now) for linear in split.carried]
        args = []
        for x, mask, w in zip(fixed_now, split.fixed, inputs[len(moved) :], strict=True):
            x = np.array(x)
            x[mask] = w
            args.append(x)
        results = write_closed(inner, body, [*args, *carried_now, *rows_now])
        results = [np.broadcast_to(x, a.shape) for x, a in zip(results, avals, strict=True)]
        outputs = flat(_those(results, split.carried, True))
        back = transposed(inner, flat(inputs), outputs, flat(cotangents))
        on_moved, on_weights = _parts(like(back, inputs), len(moved))

        def add(x: int, y: int) -> int:
            return inner.add(x, y, inner.types[x])

        totals = [elementwise(add, x, y) for x, y in zip(sums, on_weights, strict=True)]
        before = inner.add(k, inner.constant(-1, "i32"), "i32")
        return [array_of(before, ()), *on_moved, *totals]

    kinds = [kind_of(a.dtype) for a in moved for _ in range(a.size)]
    guard = program.guard

    def transpose(program: Program, cotangents: Sequence[int]) -> list[int]:
        zeros = [np.full(a.shape, program.zero(kind_of(a.dtype)), np.int64) for a in weight_avals]
        last = array_of(program.constant(len(order) - 1, "i32"), ())
        carried = [last, *like(cotangents, moved), *zeros]
        outside, program.guard = program.guard, guard
        consts = [*known, *rows, *states]
        every = [_COUNTER, *moved, *weight_avals]
        back = repeated(program, consts, carried, every, unfinished, iteration)
        program.guard = outside
        return flat(back[1:])

    operands = flat([*moved_start, *weights])
    results = program.solve(operands, flat([*known, *rows, *states]), kinds, transpose)
    linear_ends, ends = iter(like(results, moved)), iter(ends)
    return [next(linear_ends if linear else ends) for linear in split.carried]


def _forward(
    program: Program,
    body: Any,
    split: _Split,
    known: Sequence[Array],
    start: Sequence[Array],
    rows: Sequence[Array],
    length: int,
) -> tuple[list[Array], list[Array]]:
    """What is not linear at the end of a loop, and at the start of each iteration, by rows."""
    own = [not linear for linear in split.carried]
    jaxpr, read = without_dead_code(body.jaxpr, own)
    n, avals = len(known), _those([v.aval for v in body.jaxpr.outvars], own, True)
    if any(r and x for r, x in zip(read[n:], split.carried, strict=False)):
        raise Unsupported("what should be linear is not")
    reduced = ClosedJaxpr(jaxpr, body.consts)
    row_avals = [v.aval for v in body.jaxpr.invars[n + len(split.carried) :]]

    def unfinished(inner: Program, _: Sequence[Array], carried: Sequence[Array]) -> Array:
        return array_of(inner.compare("lt", carried[0].item(), inner.constant(length, "i32")), ())

    def iteration(inner: Program, consts: Sequence[Array], carried: Sequence[Array]) -> list[Array]:
        k, now, tables = carried[0].item(), *_parts(carried[1:], len(avals))
        kept = [_with_row(inner, k, *x) for x in zip(tables, now, avals, strict=True)]
        rows_now = [_at(inner, k, *x) for x in zip(consts[n:], row_avals, strict=True)]
        values, not_read = iter(now), np.zeros(0, np.int64)
        carried_now = [next(values) if is_own else not_read for is_own in own]
        args = [x for x, r in zip([*consts[:n], *carried_now, *rows_now], read, strict=True) if r]
        after = write_closed(inner, reduced, args)
        return [array_of(inner.add(k, inner.constant(1, "i32"), "i32"), ()), *after, *kept]

    tables = [np.full((length, *a.shape), program.zero(kind_of(a.dtype)), np.int64) for a in avals]
    shapes = [jax.ShapeDtypeStruct((length, *a.shape), a.dtype) for a in avals]
    counter = array_of(program.constant(0, "i32"), ())
    begun, every = [counter, *start, *tables], [_COUNTER, *avals, *shapes]
    _, *ends = repeated(program, [*known, *rows], begun, every, unfinished, iteration)
    return ends[: len(avals)], ends[len(avals) :]


def _at(inner: Program, k: int, rows: Array, aval: Any) -> Array:
    """The row of a place that is known at run time."""
    return elementwise(functools.partial(choice, inner, kind_of(aval.dtype), {}, k), *rows)


def _with_row(inner: Program, k: int, rows: Array, row: Array, aval: Any) -> Array:
    """The rows, with another one at such a place."""
    kind, stored = kind_of(aval.dtype), []
    for i, before in enumerate(rows):
        here = inner.compare("eq", k, inner.constant(i, "i32"))
        put = functools.partial(inner.select, here, kind=kind)
        stored.append(elementwise(put, before, row))
    return np.stack(stored)


def _placeholders(inner: Program, aval: Any) -> Array:
    kind = kind_of(aval.dtype)
    return array_of([inner.placeholder(kind) for _ in range(aval.size)], aval.shape)


def _those(items: Sequence[Any], which: Sequence[bool], wanted: bool) -> list[Any]:
    return [x for x, is_one in zip(items, which, strict=True) if is_one == wanted]


def _parts(items: Sequence[Any], *sizes: int) -> list[list[Any]]:
    """The first so many, the next so many, and the rest."""
    items, parts = list(items), []
    for size in sizes:
        parts.append(items[:size])
        items = items[size:]
    return [*parts, items]


def repeated(
    program: Program,
    consts: Sequence[Array],
    start: Sequence[Array],
    avals: Sequence[Any],
    unfinished: Callable[..., Array],
    iteration: Callable[..., list[Array]],
) -> list[Array]:
    """What is carried at the end of a loop: its condition and its body are programs inside.

    Both are written from an inner program, constants and what is carried. avals: of the latter.
    """
    # What is known is known inside, and what is given twice is one argument.
    guard = [] if program.guard is None else [program.guard]
    used = dict.fromkeys([*flat(consts), *guard])
    fixed = [k for k in used if program.known[k] is None]

    def inside() -> tuple[Program, list[Array], list[Array], list[int]]:
        """A new program: its constants, what it carries, and whether it may make iterations."""
        inner = Program(program.products, program.tables, most_written=program.most_written)
        inner.strict = program.strict
        place = {k: inner.argument(program.types[k]) for k in fixed}
        known = [k for k in flat(consts) if program.known[k] is not None]
        place |= {k: inner.constant(program.known[k], program.types[k]) for k in known}
        moved = [place[k] for k in flat(consts)]
        kinds = [kind_of(a.dtype) for a in avals for _ in range(a.size)]
        carried = like([inner.argument(kind) for kind in kinds], avals)
        return inner, like(moved, consts), carried, [place[k] for k in guard if k in place]

    condition, constants, carried, guards = inside()
    more = unfinished(condition, constants, carried)
    condition = finished(condition, [condition.all_of(more.item(), *guards)])
    body, constants, carried, _ = inside()
    after = iteration(body, constants, carried)
    after = [np.broadcast_to(x, a.shape) for x, a in zip(after, avals, strict=True)]
    body = finished(body, flat(after))
    ends = program.repeat(While(len(fixed), condition, body), [*fixed, *flat(start)])
    return like(ends, avals)
