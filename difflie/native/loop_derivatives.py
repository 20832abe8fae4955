"""Loops that follow from a loop: of its tangents, of cotangents, of some of its results.

Of a loop s', y = body(c, s, x), with constants c, what is carried s, rows x and saved rows y:

    arguments      constants      carried   rows               results        saved rows
    loop           c              s         x                  s              y
    with states    c              s         x                  s              y, s
    of tangents    c, dc          ds        s, x, dx           ds             dy
    with tangents  c, dc          s, ds     x, dx              s, ds          y, dy
    transposed     c, s x known   ^s, ^dc   s, x, ^dy          ^ds, ^dc       ^dx

`d` stands for the tangents of what is active, `^d` for the cotangents of these. Of each of the
three kinds of arguments its own come first, then the tangents. What holds for all of them:

- The loop of tangents is linear in its tangents (`directions`), jointly. So jax transposes it,
  which reverses it: what it carried goes back, and cotangents of constants are summed up.
- It carries tangents only. States come in as rows, saved at the start of every iteration, and all
  else that an iteration needs is computed again: memory grows with what is carried, not with what
  is computed.
- `active` is closed under the loop: what an iteration makes of a carried tangent is carried as
  well.
- Tangents are taken on the program of a body, where it has one (`rules.tangents`); where it has
  none, they are traced by jax.
- The loop of some results (`needed`) has those results, and the same numbers in them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import jax

from .jaxprs import depending
from .loop import Loop
from .loop_body import Part, Passing, Tangents, Traced, Transposed, Wide, differentiable, whole
from .private import eval_jaxpr, within, without_dead_code


def activity(loop: Loop, varied: Sequence[bool]) -> tuple[list[bool], list[bool]]:
    """The arguments that vary with those given, in any iteration, and the results that do."""
    written = differentiable(loop.body)
    changing = written.varied if written else partial(depending, loop.body.closed().jaxpr)
    n, m = loop.consts, loop.consts + loop.carry
    varied = list(varied)
    while True:
        active_results = changing(varied)
        more = [v or c for v, c in zip(varied[n:m], active_results, strict=False)]
        if more == varied[n:m]:
            return varied, [*more, *active_results[loop.carry :]]
        varied[n:m] = more


def jvp(loop: Loop, active: Sequence[bool], active_results: Sequence[bool]) -> tuple[Loop, Loop]:
    """The loop that saves the states, and the loop of tangents, which takes them.

    Returns the loop that saves the states at the start of every iteration besides, and the loop of
    the tangents: its constants are those of this loop and their tangents, it carries the tangents
    of what this one carries, its rows are the states, the rows and their tangents.
    """
    if differentiable(loop.body):
        tangent_loop = _swept(loop, active, active_results)
    else:
        tangent_loop = _traced_tangents(loop, active, active_results)
    return _with_states(loop), loop.derived(
        tangent_loop, lambda loop: jvp(loop, active, active_results)[1]
    )


def _swept(loop: Loop, active: Sequence[bool], active_results: Sequence[bool]) -> Loop:
    """The loop of tangents, from the program of the body."""
    n = len(active)
    own, moving = loop.parts(range(n)), iter(range(n, n + sum(active)))
    tangents = [[next(moving) for is_active in part if is_active] for part in loop.parts(active)]
    order = [*own[0], *tangents[0], *tangents[1], *own[1], *own[2], *tangents[2]]
    rows, saved = _tangent_paces(loop, active, active_results)
    return dataclasses.replace(
        loop,
        body=Tangents(loop.body, active, active_results, order),
        consts=len(own[0]) + len(tangents[0]),
        carry=len(tangents[1]),
        rows=(*(1,) * loop.carry, *loop.rows, *rows),
        saved=tuple(saved),
        directions=tuple(i >= n for i in order),
    )


def _traced_tangents(loop: Loop, active: Sequence[bool], active_results: Sequence[bool]) -> Loop:
    """The loop of tangents, as jax traces the derivative of the body."""
    jaxpr, consts = _derivative(loop, active, active_results)
    own, tangents = _by_kind(loop, jaxpr.invars, active)
    kinds = own[0] + tangents[0], tangents[1], own[1] + own[2] + tangents[2]
    rows, saved = _tangent_paces(loop, active, active_results)
    rows = [*(1,) * loop.carry, *loop.rows, *rows]
    results = jaxpr.outvars[len(active_results) :]
    tangent_loop = loop.like(jaxpr, consts, kinds, results, rows, saved)
    own, tangents = own[0], [*own[1], *own[2]]
    is_tangent = [True] * len(jaxpr.invars)
    for start, count in ((0, len(own)), (tangent_loop.consts + tangent_loop.carry, len(tangents))):
        is_tangent[start : start + count] = [False] * count
    return dataclasses.replace(tangent_loop, directions=tuple(is_tangent))


def vmap_tangents(loop: Loop, count: int) -> Loop:
    """A loop of tangents for so many directions at once, which are a first axis of each tangent.

    What depends on the point alone is computed once for all of them.
    """
    if not isinstance(loop.body, Traced):
        wide = Wide(loop.body, loop.directions, count)
        made = dataclasses.replace(loop, body=wide, directions=())
        return loop.derived(made, lambda loop: vmap_tangents(loop, count))
    closed = loop.body.closed()
    axes = tuple(0 if d else None for d in loop.directions)

    def body(*args: Any) -> list[Any]:
        return eval_jaxpr(closed.jaxpr, closed.consts, *args)

    avals = [
        jax.ShapeDtypeStruct((count, *a.shape) if d else a.shape, a.dtype)
        for a, d in zip(loop.body.in_avals, loop.directions, strict=True)
    ]
    with within(loop.call is not None):
        wide = jax.make_jaxpr(jax.vmap(body, axes, 0, axis_size=count))(*avals)
    kinds = loop.parts(wide.jaxpr.invars)
    outvars = wide.jaxpr.outvars
    made = loop.like(wide.jaxpr, wide.consts, kinds, outvars, loop.rows, loop.saved)
    return loop.derived(made, lambda loop: vmap_tangents(loop, count))


def with_tangents(loop: Loop, active: Sequence[bool], active_results: Sequence[bool]) -> Loop:
    """This loop and that of the tangents as one: of each kind, first its own and then those."""
    jaxpr, consts = _derivative(loop, active, active_results)
    kinds = [x + y for x, y in zip(*_by_kind(loop, jaxpr.invars, active), strict=True)]
    rows, saved = _tangent_paces(loop, active, active_results)
    outs, own = jaxpr.outvars, len(active_results)
    middle = own + sum(active_results[: loop.carry])
    results = [*outs[: loop.carry], *outs[own:middle], *outs[loop.carry : own], *outs[middle:]]
    paces = [*loop.rows, *rows], [*loop.saved, *saved]
    made = loop.like(jaxpr, consts, kinds, results, *paces)
    return loop.derived(made, lambda loop: with_tangents(loop, active, active_results))


def _by_kind(
    loop: Loop, invars: Sequence[Any], active: Sequence[bool]
) -> tuple[list[list[Any]], list[list[Any]]]:
    """The arguments of a derivative by kind, those of the function and their tangents."""
    size = len(active)
    tangents = iter(invars[size:])
    own = [list(part) for part in loop.parts(invars[:size])]
    return own, [[next(tangents) for is_active in part if is_active] for part in loop.parts(active)]


def _tangent_paces(
    loop: Loop, active: Sequence[bool], active_results: Sequence[bool]
) -> tuple[list[int], list[int]]:
    """After how many iterations there is a row of each tangent."""
    rows = zip(loop.rows, loop.parts(active)[2], strict=True)
    saved = zip(loop.saved, active_results[loop.carry :], strict=True)
    return [e for e, is_active in rows if is_active], [e for e, is_active in saved if is_active]


def _with_states(loop: Loop) -> Loop:
    """The loop that also saves what it carries at the start of every iteration."""
    if differentiable(loop.body):
        states = range(loop.consts, loop.consts + loop.carry)
        saved = (*loop.saved, *(1,) * loop.carry)
        made = dataclasses.replace(loop, body=Passing(loop.body, states), saved=saved)
        return loop.derived(made, _with_states)
    closed = loop.body.closed()
    kinds, saved = loop.parts(closed.jaxpr.invars), (*loop.saved, *(1,) * loop.carry)
    results = [*closed.jaxpr.outvars, *kinds[1]]
    made = loop.like(closed.jaxpr, closed.consts, kinds, results, loop.rows, saved)
    return loop.derived(made, _with_states)


def transposed(loop: Loop, linear: Sequence[bool]) -> Loop:
    """The loop back, of cotangents."""
    body = Transposed(loop.body, loop.consts, loop.carry, linear)
    fixed, carried, sums, _ = body.counts
    paces = list(zip(loop.rows, loop.parts(linear)[2], strict=True))
    made = dataclasses.replace(
        loop,
        body=body,
        consts=fixed,
        carry=carried + sums,
        rows=(*(e for e, is_linear in paces if not is_linear), *loop.saved),
        saved=tuple(e for e, is_linear in paces if is_linear),
        reverse=not loop.reverse,
        directions=(),
    )
    return loop.derived(made, lambda loop: transposed(loop, linear))


def needed(loop: Loop, used: Sequence[bool]) -> tuple[Loop, list[bool], list[bool]]:
    """The loop of some results only; which results are left, and which arguments it needs.

    What is carried and matters to a result wanted stays a result.
    """
    # Loops stand inside of loops, and each is asked again for every one around it.
    if tuple(used) not in loop.reduced:
        loop.reduced[tuple(used)] = _without_unused(loop, used)
    return loop.reduced[tuple(used)]


def _without_unused(loop: Loop, wanted: Sequence[bool]) -> tuple[Loop, list[bool], list[bool]]:
    everything = loop, [True] * len(wanted), [True] * len(loop.body.in_avals)
    if isinstance(loop.body, Transposed):
        return everything  # of which jax asks for all that it does not know to be zero
    if isinstance(loop.body, Traced):
        smaller, used, keep = _reduced_trace(loop, wanted)
    else:
        smaller, used, keep = _reduced_program(loop, wanted)
        if all(used) and all(keep):
            return everything
    left = tuple(d for d, k in zip(loop.directions, keep, strict=False) if k)
    smaller = dataclasses.replace(
        smaller,
        rows=tuple(e for e, k in zip(loop.rows, loop.parts(keep)[2], strict=True) if k),
        saved=tuple(e for e, u in zip(loop.saved, used[loop.carry :], strict=True) if u),
        directions=left,
    )
    smaller = loop.derived(smaller, lambda loop: needed(loop, wanted)[0])
    smaller.reduced[(True,) * sum(used)] = smaller, [True] * sum(used), [True] * sum(keep)
    return smaller, used, keep


def _reduced_trace(loop: Loop, wanted: Sequence[bool]) -> tuple[Loop, list[bool], list[bool]]:
    """Of what has been traced, the equations that are left."""
    closed = loop.body.closed()

    @cache
    def left(used: tuple[bool, ...]) -> tuple[Any, list[bool]]:
        return without_dead_code(closed.jaxpr, used)

    used, keep = _closed_under_iterations(loop, wanted, lambda used: left(tuple(used))[1])
    jaxpr, _ = left(tuple(used))
    invars = loop.parts(list(zip(closed.jaxpr.invars, keep, strict=True)))
    kinds = [[v for v, is_kept in part if is_kept] for part in invars]
    return loop.like(jaxpr, closed.consts, kinds, jaxpr.outvars, (), ()), used, keep


def _reduced_program(loop: Loop, wanted: Sequence[bool]) -> tuple[Loop, list[bool], list[bool]]:
    """Of a program, the instructions that are left."""
    part = loop.body if isinstance(loop.body, Part) else whole(loop.body)
    used, keep = _closed_under_iterations(loop, wanted, part.reads)
    consts, carry, _ = (sum(kinds) for kinds in loop.parts(keep))
    body = part.part(keep, used)
    return dataclasses.replace(loop, body=body, consts=consts, carry=carry), used, keep


def _closed_under_iterations(
    loop: Loop, wanted: Sequence[bool], reads: Callable[[Sequence[bool]], list[bool]]
) -> tuple[list[bool], list[bool]]:
    """The results wanted and those carried that matter to them; the arguments that these read."""
    n, m = loop.consts, loop.consts + loop.carry
    used = list(wanted)
    while True:
        read = reads(used)
        more = [u or r for u, r in zip(used[: loop.carry], read[n:m], strict=True)]
        if more == used[: loop.carry]:
            return used, [r or (n <= i < m and used[i - n]) for i, r in enumerate(read)]
        used[: loop.carry] = more


def _derivative(
    loop: Loop, active: Sequence[bool], active_results: Sequence[bool]
) -> tuple[Any, Sequence[Any]]:
    """The jaxpr of a body, and its constants, of all results and the tangents of some.

    Its arguments are those of the body, and the tangents of those that are active.
    """
    closed, at = loop.body.closed(), [i for i, v in enumerate(active) if v]

    def both(*args: Any) -> list[Any]:
        points, directions = list(args[: len(active)]), list(args[len(active) :])

        def moved(*values: Any) -> list[Any]:
            values_now = list(points)
            for i, x in zip(at, values, strict=True):
                values_now[i] = x
            return eval_jaxpr(closed.jaxpr, closed.consts, *values_now)

        results, tangents = jax.jvp(moved, [points[i] for i in at], directions)
        return [*results, *(d for d, c in zip(tangents, active_results, strict=True) if c)]

    avals = closed.in_avals
    # What a derivative calls is marked as the function itself is.
    with within(loop.call is not None):
        derived = jax.make_jaxpr(both)(*avals, *(avals[i] for i in at))
    return derived.jaxpr, derived.consts
