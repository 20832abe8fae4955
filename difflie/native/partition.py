"""The partition of a function: what is large is left to XLA, native calls are what lies between.

All operations are put into groups, of XLA's and native ones in turn, and a group reads what groups
before it have made. Native ones wait as long as they can, so that a call hands on little but what
the next product reads: with a neural network as control the whole step is in the last group.

What is large is better no part of a program, which knows scalars only. In it a weight matrix of a
neural network is written out entry by entry, and in reverse mode every environment of a batch sums
its own cotangents of all of them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from .deferred_calls import Call, with_calls
from .jaxprs import is_literal, nested, variables
from .loop_body import Traced
from .private import ClosedJaxpr, eval_jaxpr, without_dead_code
from .program import MOST_INDICES
from .rules import LARGEST
from .strict_user_code import region_within

# Groups of fewer operations are no native calls. Measured on an arm under a network: with one call
# between two layers a gradient takes half as long again.
_FEW = 20

_CALLS = {"checkpoint", "closed_call", "core_call", "jit", "pjit", "remat2"}

Arrays = Sequence[Any]


def partition(closed: ClosedJaxpr, is_body: bool, run: Call) -> Callable[..., list[Any]] | None:
    """A function of several parts, of which `run` runs the native ones; None where one is better.

    is_body: whether its arguments change from iteration to iteration of a loop. Otherwise large
    ones may be weights.
    """
    stay = [not is_body and of_size(a.size) == Kind.WEIGHTS for a in closed.in_avals]
    arguments = [Kind.WEIGHTS if s else Kind.VARYING for s in stay]
    if not has_many(closed, arguments):
        return None
    split = _split(with_calls(closed, run), arguments, run)
    return functools.partial(eval_jaxpr, split.jaxpr, split.consts)


def _split(closed: ClosedJaxpr, arguments: Sequence[Kind], run: Call) -> ClosedJaxpr:
    opened = jax.make_jaxpr(lambda *args: _opened(closed, arguments, args, run))(*closed.in_avals)
    return jax.make_jaxpr(lambda *args: _in_groups(opened, arguments, args, run))(*closed.in_avals)


def _opened(closed: ClosedJaxpr, arguments: Sequence[Kind], args: Arrays, run: Call) -> list[Any]:
    """The results, with calls of functions that have something large opened.

    Other such functions, as the body of a loop or the branches of a condition, are split in place.
    """
    kinds, values = kinds_of(closed, arguments), _values(closed, args)

    def split(inner: Any, equation: Any) -> Any:
        if not isinstance(inner, ClosedJaxpr):
            return inner
        inner_arguments = given_inside(inner, equation, kinds)
        has_large = any(is_large(e, kinds_of(inner, inner_arguments)) for e in inner.jaxpr.eqns)
        return _split(inner, inner_arguments, run) if has_large else inner

    for e in closed.jaxpr.eqns:
        inside = functions(e) if is_large(e, kinds) else []
        if inside and (is_kernel(e) or e.primitive.name in _CALLS):
            read = _read(e.invars, values)
            read = [x[0] for x in read] if is_kernel(e) else read
            with region_within(e):
                results = _opened(inside[0], given_inside(inside[0], e, kinds), read, run)
            results = [y[None] for y in results] if is_kernel(e) else results
        else:
            if inside:
                params = jax.tree.map(functools.partial(split, equation=e), e.params)
                e = e.replace(params=params)
            reads = variables(e.invars)
            one = closed.jaxpr.replace(constvars=[], invars=reads, outvars=e.outvars, eqns=[e])
            results = eval_jaxpr(one, [], *_read(reads, values))
        values.update(zip(e.outvars, results, strict=True))
    return _read(closed.jaxpr.outvars, values)


def _values(closed: ClosedJaxpr, args: Arrays) -> dict[Any, Any]:
    names = *closed.jaxpr.constvars, *closed.jaxpr.invars
    return dict(zip(names, (*closed.consts, *args), strict=True))


def _read(atoms: Sequence[Any], values: dict[Any, Any]) -> list[Any]:
    # What is a number of Python's in a jaxpr would stay one.
    return [np.asarray(v.val, v.aval.dtype) if is_literal(v) else values[v] for v in atoms]


def _in_groups(
    closed: ClosedJaxpr, arguments: Sequence[Kind], args: Arrays, run: Call
) -> list[Any]:
    """The results, group after group."""
    jaxpr, kinds, values = closed.jaxpr, kinds_of(closed, arguments), _values(closed, args)
    known, others = [], []
    for e in jaxpr.eqns:
        (known if all(kinds[v] == Kind.KNOWN for v in e.outvars) else others).append(e)
    groups = [*_groups(others, jaxpr.outvars, kinds), ([], False)]
    for i, (equations, natively) in enumerate(groups):
        rest = [e for other, _ in groups[:i] + groups[i + 1 :] for e in other]
        read = {v for e in rest for v in variables(e.invars)}.union(variables(jaxpr.outvars))
        # What is known is so in every group that reads it; in the end it may be a result.
        made = [v for e in equations or known for v in e.outvars if v in read]
        part = _part(jaxpr, [*known, *equations], made, values)
        results = run(part, []) if natively else eval_jaxpr(part.jaxpr, part.consts)
        values.update(zip(made, results, strict=True))
    return _read(jaxpr.outvars, values)


def _part(
    jaxpr: Any, equations: Sequence[Any], results: Sequence[Any], values: dict[Any, Any]
) -> ClosedJaxpr:
    """Those of the operations that some results need, as a function without arguments."""
    made = {v for e in equations for v in e.outvars}
    reads = dict.fromkeys(v for e in equations for v in variables(e.invars) if v not in made)
    part = jaxpr.replace(constvars=[], invars=[*reads], outvars=[*results], eqns=[*equations])
    part, used = without_dead_code(part, [True] * len(results))
    constants = [values[v] for v, u in zip(reads, used, strict=True) if u]
    return ClosedJaxpr(part.replace(constvars=part.invars, invars=[]), constants)


def _groups(
    equations: Sequence[Any], results: Sequence[Any], kinds: dict[Any, Kind]
) -> list[tuple[list[Any], bool]]:
    """The operations in groups, in turn, and whether a group is a native call.

    Even ones are XLA's, and as early as they can; odd ones native ones, and as late as they can.
    """
    for_xla = large(equations, kinds)
    first: dict[Any, int] = {}
    for e, is_xla in zip(equations, for_xla, strict=True):
        group = max((first.get(v, 0) for v in variables(e.invars)), default=0)
        group += group % 2 == is_xla
        first.update(dict.fromkeys(e.outvars, group))
    end = max(first.values(), default=0) // 2 * 2 + 1
    groups: list[list[Any]] = [[] for _ in range(end + 1)]
    latest = dict.fromkeys(variables(results), end)
    for e, is_xla in zip(reversed(equations), reversed(for_xla), strict=True):
        group = min(latest.get(v, end) for v in e.outvars)
        group = first[e.outvars[0]] if is_xla else group - (group % 2 == 0)
        groups[group].insert(0, e)
        latest |= {v: min(latest.get(v, end), group) for v in variables(e.invars)}
    return [(g, i % 2 == 1 and _count(g) >= _FEW) for i, g in enumerate(groups) if g]


def _count(equations: Sequence[Any]) -> int:
    """How many operations these are, with those of functions inside."""
    return sum(1 + sum(_count(f.jaxpr.eqns) for f in functions(e)) for e in equations)


# Weights with more entries in all, each counted as often as it is used, are no part of a program.
# Measured on an arm under a network, in batches: with layers of 32 x 32 a gradient of semi-implicit
# Euler is faster as one program, with 48 x 48 it is not.
_MOST = 1500
# Where there are so many, smaller matrices are none either, down to this size.
_FEWEST = 256


class Kind(IntEnum):
    """What a value is: known at trace time, made of small or of large arrays that stay, or varying.

    To stay is not to change from iteration to iteration of a loop. What is made of several is the
    last.
    """

    KNOWN = 0
    FEW = 1
    WEIGHTS = 2
    VARYING = 3


def has_many(closed: ClosedJaxpr, arguments: Sequence[Kind]) -> bool:
    """Whether a function of such arguments is better no program."""
    return _entries(closed, arguments, {}) > _MOST


def kinds_of(closed: ClosedJaxpr, arguments: Sequence[Kind]) -> dict[Any, Kind]:
    """What all variables of a function of such arguments are."""
    jaxpr = closed.jaxpr
    kinds = dict(zip(jaxpr.invars, arguments, strict=True))
    for v, c in zip(jaxpr.constvars, closed.consts, strict=True):
        # Known zeros are left out of programs.
        known = not isinstance(c, Tracer) and np.count_nonzero(c) <= _MOST
        kinds[v] = Kind.KNOWN if known else of_size(v.aval.size)
    for e in jaxpr.eqns:
        kind = max((kinds[v] for v in variables(e.invars)), default=Kind.KNOWN)
        kinds.update(dict.fromkeys(e.outvars, kind))
    return kinds


def of_size(entries: int) -> Kind:
    """What an array is that stays."""
    return Kind.WEIGHTS if entries > _FEWEST else Kind.FEW


def is_kernel(equation: Any) -> bool:
    """Whether this is a native call of a function, its arguments and results with a leading one."""
    if equation.primitive.name != "native":
        return False
    loop, batch = equation.params["loop"], equation.params["batch"]
    return batch is None and loop.length == 1 and loop.consts == loop.carry == 0


def functions(equation: Any) -> list[ClosedJaxpr]:
    """The functions in an operation."""
    if is_kernel(equation):
        return [equation.params["loop"].body.closed()]
    return nested(equation.params)


def given_inside(inner: ClosedJaxpr, equation: Any, kinds: dict[Any, Kind]) -> list[Kind]:
    """What the arguments of a function in an operation are, the last ones of the operation."""
    outer = [Kind.KNOWN if is_literal(v) else kinds[v] for v in equation.invars]
    n = len(inner.jaxpr.invars)
    return [*[Kind.VARYING] * (n - len(outer)), *outer[max(0, len(outer) - n) :]]


def large(equations: Sequence[Any], kinds: dict[Any, Kind]) -> list[bool]:
    """Which operations are large, or share large arrays with such."""
    is_one = [is_large(e, kinds) for e in equations]

    def arrays(equation: Any) -> set[Any]:
        used = (*variables(equation.invars), *equation.outvars)
        return {v for v in used if _size(v) > (_FEWEST if kinds[v] == Kind.WEIGHTS else _MOST)}

    while True:
        shared = {v for e, x in zip(equations, is_one, strict=True) if x for v in arrays(e)}
        more = [x or bool(shared & arrays(e)) for e, x in zip(equations, is_one, strict=True)]
        if more == is_one:
            return is_one
        is_one = more


def is_large(equation: Any, kinds: dict[Any, Kind]) -> bool:
    """Whether an operation is, or has such operations inside."""
    return _large_entries(equation, kinds, {}) > 0


def _entries(closed: ClosedJaxpr, arguments: Sequence[Kind], found: dict[Any, int]) -> int:
    """The entries of all that is large in a function; found: of those that were looked at."""
    # A function is traced once for all its calls.
    key = id(closed.jaxpr), tuple(map(id, closed.consts)), tuple(arguments)
    if key not in found:
        kinds = kinds_of(closed, arguments)
        found[key] = sum(_large_entries(e, kinds, found) for e in closed.jaxpr.eqns)
    return found[key]


def _large_entries(equation: Any, kinds: dict[Any, Kind], found: dict[Any, int]) -> int:
    """The entries of the array that makes an operation large; 0 where it is not."""
    name, read = equation.primitive.name, equation.invars
    largest = max(map(_size, (*read, *equation.outvars)), default=0)
    if largest > LARGEST:
        return largest
    if name == "dot_general":
        return _matrix_entries(equation, kinds)
    if name in ("dynamic_slice", "gather"):
        dynamic = any(kinds[v] != Kind.KNOWN for v in variables(read[1:]))
        sizes = zip(read[0].aval.shape, equation.params["slice_sizes"], strict=True)
        places = max((n - size + 1 for n, size in sizes), default=1)
        return largest if dynamic and places > MOST_INDICES else 0
    body = equation.params["loop"].body if is_kernel(equation) else None
    if body is not None and not isinstance(body, Traced):
        # A derivative is not traced only to be looked at: it has the constants of the function that
        # it is of. That function was small with its arguments, or it would be no kernel.
        source = body.source()
        return _entries(source, [Kind.VARYING] * len(source.in_avals), found)
    inside = functions(equation)
    entries = sum(_entries(inner, given_inside(inner, equation, kinds), found) for inner in inside)
    # In a program such a loop is written out.
    return entries * equation.params["length"] if name == "scan" else entries


def _matrix_entries(equation: Any, kinds: dict[Any, Kind]) -> int:
    """The entries of the weights in a product, or of what it makes of two vectors."""
    (contracted, _), batches = equation.params["dimension_numbers"]
    made = _size(equation.outvars[0])
    if not contracted and made > _MOST:
        return made
    largest = 0
    for v, axes in zip(equation.invars, batches, strict=True):
        matrices = math.prod(v.aval.shape[i] for i in axes)
        if not is_literal(v) and kinds[v] == Kind.WEIGHTS and _size(v) > _FEWEST * matrices:
            largest = max(largest, _size(v))
    return largest


def _size(v: Any) -> int:
    return getattr(v.aval, "size", 0)
