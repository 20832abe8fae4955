"""Functions within functions: calls, loops, branches, linear systems."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from ..fingerprint import CALLS
from ..jaxprs import nested
from ..private import ClosedJaxpr, scan_sizes, within
from ..program import Program, Unsupported
from ..strict_user_code import has_strict
from .arithmetic import choice
from .indexing import is_at
from .repeated import carried_linearly, repeated, rolled, rolled_linear
from .writing import (
    PLAIN,
    REGIONS,
    RULES,
    Array,
    array_of,
    elementwise,
    flat,
    kind_of,
    like,
    write_closed,
)


def _call(program: Program, equation: Any, *xs: Array) -> list[Array]:
    return write_closed(program, nested(equation.params)[0], xs)


def _native(program: Program, equation: Any, *xs: Array) -> list[Array]:
    loop, batch = equation.params["loop"], equation.params["batch"]
    if batch is None:
        return loop.write(program, xs)
    if batch == 0:
        return [np.zeros(v.aval.shape, np.int64) for v in equation.outvars]
    batched_args = equation.params["batched_args"]
    rows = [
        loop.write(program, [x[b] if a else x for x, a in zip(xs, batched_args, strict=True)])
        for b in range(batch)
    ]
    return [np.stack(row) for row in zip(*rows, strict=True)]


# A loop of more entries is repeated where it is transposed, too. Its states are computed twice:
# gradients of robots by RKMK4 would take 1.6 times as long.
_MOST_TRANSPOSED = 1_000_000


def _scan(program: Program, equation: Any, *xs: Array) -> list[Array]:
    """A loop that is written out, unless that is long."""
    params = equation.params
    (body,) = nested(params)
    n_consts, n_carry = scan_sizes(params)
    fixed, carry = xs[:n_consts], xs[n_consts : n_consts + n_carry]
    sliced, backwards = xs[n_consts + n_carry :], slice(None, None, -1 if params["reverse"] else 1)
    avals = [v.aval for v in body.jaxpr.outvars]
    order = range(params["length"])[backwards]
    if not program.differentiable and _is_long(program, equation):
        split = carried_linearly(program, body, fixed, carry, sliced)
        if split is None:
            return rolled(program, body, order, fixed, carry, sliced)
        # A loop in a branch is skipped where it is repeated, as attempts that are not needed.
        is_repeated = _written_out(equation) > _MOST_TRANSPOSED or program.guard is not None
        if is_repeated and not any(map(program.is_linear, flat(sliced))):
            return rolled_linear(program, body, order, fixed, carry, sliced, split)
    saved = []
    for i in order:
        results = write_closed(program, body, [*fixed, *carry, *(x[i] for x in sliced)])
        results = [np.broadcast_to(r, a.shape) for r, a in zip(results, avals, strict=True)]
        carry = results[:n_carry]
        saved.append(results[n_carry:])
    if not saved:
        return [*carry, *(np.zeros((0, *a.shape), np.int64) for a in avals[n_carry:])]
    return [*carry, *(np.stack(rows) for rows in zip(*saved[backwards], strict=True))]


def _is_long(program: Program, equation: Any) -> bool:
    """Whether a loop carries on all it returns, and is too long to be written out."""
    (body,) = nested(equation.params)
    carries_all = len(body.jaxpr.outvars) == scan_sizes(equation.params)[1]
    return carries_all and _written_out(equation) > program.most_written


def _written_out(equation: Any) -> int:
    """About how many scalars the operations of a loop make."""
    (body,) = nested(equation.params)
    length = equation.params["length"]
    return length * _entries(body.jaxpr) if length > 1 else 0


def _entries(jaxpr: Any) -> int:
    """About how many scalars the operations make."""
    count = 0
    for e in jaxpr.eqns:
        is_native = e.primitive.name == "native"
        inside = [e.params["loop"].body.closed()] if is_native else nested(e.params)
        length = e.params["loop"].length if is_native else e.params.get("length", 1)
        entries = length * sum(_entries(f.jaxpr) for f in inside)
        count += entries or sum(v.aval.size for v in e.outvars)
    return count


def _while(program: Program, equation: Any, *xs: Array) -> list[Array]:
    params = equation.params
    n_cond, n_body = params["cond_nconsts"], params["body_nconsts"]
    consts, start = xs[: n_cond + n_body], xs[n_cond + n_body :]
    avals = [v.aval for v in params["body_jaxpr"].jaxpr.outvars]

    def going(inner: Program, consts: Sequence[Array], carried: Sequence[Array]) -> Array:
        (more,) = write_closed(inner, params["cond_jaxpr"], [*consts[:n_cond], *carried])
        return more

    def unfinished(inner: Program, consts: Sequence[Array], carried: Sequence[Array]) -> Array:
        more = going(inner, consts, carried)
        either = functools.partial(inner.binary, "or", kind="b1")
        none = inner.constant(False, "b1")
        return array_of(functools.reduce(either, more.ravel().tolist(), none), ())

    def iteration(inner: Program, consts: Sequence[Array], carried: Sequence[Array]) -> list[Array]:
        results = write_closed(inner, params["body_jaxpr"], [*consts[n_cond:], *carried])
        if not params["cond_jaxpr"].out_avals[0].shape:
            return results
        # Of a batch, each with an end of its own, those that have ended stay as they are.
        more = going(inner, consts, carried)
        return [
            _where_going(inner, more, old, np.broadcast_to(new, a.shape), kind_of(a.dtype))
            for old, new, a in zip(carried, results, avals, strict=True)
        ]

    return repeated(program, consts, start, avals, unfinished, iteration)


def _where_going(program: Program, going: Array, old: Array, new: Array, kind: str) -> Array:
    """The new entries where those of a batch go on, the old ones elsewhere."""
    going = going.reshape(going.shape + (1,) * (old.ndim - going.ndim))
    return elementwise(lambda g, x, y: program.select(g, x, y, kind), going, old, new)


def _cond(program: Program, equation: Any, which: Array, *xs: Array) -> list[Array]:
    branches = equation.params["branches"]
    last, known = len(branches) - 1, program.known[which.item()]
    if known is not None:
        return write_closed(program, branches[min(max(int(known), 0), last)], xs)
    results, outer = [], program.guard
    # What comes back from a branch that is not taken is 0, also from a slope that is infinite.
    gated = any(has_strict(b.jaxpr, program.strict) for b in branches)
    for i, branch in enumerate(branches):
        here = is_at(program, which.item(), i, last)
        program.guard = here if outer is None else program.all_of(here, outer)
        given = [_gated(program, here, x) for x in xs] if gated else xs
        results.append(write_closed(program, branch, given))
    program.guard = outer
    chosen = []
    for v, cases in zip(equation.outvars, zip(*results, strict=True), strict=True):
        cases = [np.broadcast_to(c, v.aval.shape) for c in cases]
        f = functools.partial(choice, program, kind_of(v.aval.dtype), {}, which.item())
        chosen.append(elementwise(f, *cases))
    return chosen


def _platform_index(program: Program, equation: Any) -> list[Array]:
    """The branch that platforms take which have programs, if it is the same for all of them."""
    platforms = equation.params["platforms"]
    if None not in platforms or any({"cpu", "cuda"} & set(names or ()) for names in platforms):
        raise Unsupported("what depends on the platform")
    return [array_of(program.constant(platforms.index(None), "i32"), ())]


def _gated(program: Program, here: int, x: Array) -> Array:
    """The entries, of which those that are transposed are 0 where a truth does not hold."""

    def entry(k: int) -> int:
        kind = program.types[k]
        return program.select(here, program.zero(kind), k, kind) if program.is_linear(k) else k

    return elementwise(entry, x)


def _linear_solve(program: Program, equation: Any, *xs: Array) -> list[Array]:
    params = equation.params
    lengths, jaxprs = params["const_lengths"], params["jaxprs"]
    first = lengths.matvec + lengths.vecmat
    middle, last = first + lengths.solve, first + lengths.solve + lengths.transpose_solve
    right, back = xs[last:], jaxprs.transpose_solve
    if len(equation.outvars) != len(right):
        raise Unsupported("what the solver of a linear system returns besides the solution")
    coefficients = xs[:last]
    if back is None or not any(map(program.is_linear, flat(right))):
        return write_closed(program, jaxprs.solve, [*xs[first:middle], *right])

    def transpose(program: Program, cotangents: Sequence[int]) -> list[int]:
        if program.differentiable:
            operands = [*coefficients, *like(cotangents, right)]
            return flat(write_closed(program, _transposed_system(equation), operands))
        operands = [*xs[middle:last], *like(cotangents, right)]
        return flat(write_closed(program, back, operands))

    numbers = flat(right)
    kinds = [program.types[x] for x in numbers]
    return like(program.solve(numbers, [], kinds, transpose), right)


def _transposed_system(equation: Any) -> ClosedJaxpr:
    """The transposed system as an operation of jax, which knows its derivative."""
    avals = [v.aval for v in equation.invars]
    n = len(avals) - len(equation.outvars)

    def back(*args: Any) -> Any:
        def solution(*right: Any) -> Any:
            return equation.primitive.bind(*args[:n], *right, **equation.params)

        return jax.linear_transpose(solution, *avals[n:])(list(args[n:]))

    with within(True):
        return jax.make_jaxpr(back)(*avals)


RULES |= {
    **dict.fromkeys(CALLS, _call),
    "cond": _cond,
    "custom_linear_solve": _linear_solve,
    "native": _native,
    "platform_index": _platform_index,
    "scan": _scan,
    "while": _while,
}
# A function with a derivative of its own is none that is called only.
PLAIN |= {x for x in CALLS if "custom" not in x} | {"native", "scan"}
REGIONS["scan"] = _is_long
