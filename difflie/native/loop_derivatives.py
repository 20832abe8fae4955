"""Loops that follow from a loop: of its changes, of cotangents, of some of its results.

Of a loop s', y = body(c, s, x), with constants c, what is carried s, rows x and saved rows y:

    arguments      constants      carried   rows               results        saved rows
    loop           c              s         x                  s              y
    with states    c              s         x                  s              y, s
    of changes     c, dc          ds        s, x, dx           ds             dy
    together       c, dc          s, ds     x, dx              s, ds          y, dy
    transposed     c, s x known   ^s, ^dc   s, x, ^dy          ^ds, ^dc       ^dx

`d` stands for those changes that move (`moving`), `^d` for the cotangents of these. Of each of the
three kinds of arguments its own come first, then the changes. What holds for all of them:

- The loop of changes is linear in its changes (`directions`), jointly. So jax transposes it, which
  turns it round: what it carried goes back, and cotangents of constants are summed up.
- It carries changes only. States come in as rows, saved at the start of every iteration, and all
  else that an iteration needs is computed again: memory grows with what is carried, not with what
  is computed.
- `moving` is closed under the loop: what an iteration makes of a carried change is carried as well.
- The loop of some results (`needed`) has those results, and the same numbers in them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax

from .jaxprs import depending
from .loop import Loop
from .loop_body import Traced, Transposed
from .private import eval_jaxpr, within, without_dead_code


def moving(loop: Loop, varied: Sequence[bool]) -> tuple[list[bool], list[bool]]:
    """Which arguments change with those that vary, in any iteration, and which results."""
    jaxpr = loop.body.closed().jaxpr
    n, m = loop.consts, loop.consts + loop.carry
    varied = list(varied)
    while True:
        changed = depending(jaxpr, varied)
        more = [v or c for v, c in zip(varied[n:m], changed, strict=False)]
        if more == varied[n:m]:
            return varied, [*more, *changed[loop.carry :]]
        varied[n:m] = more


def along(loop: Loop, moving: Sequence[bool], changed: Sequence[bool]) -> tuple[Loop, Loop]:
    """The derivative along changes of some arguments, of some results.

    Returns the loop that saves the states at the start of every iteration besides, and the loop of
    the changes: its constants are those of this loop and their changes, it carries the changes
    of what this one carries, its rows are the states, the rows and their changes.
    """
    jaxpr, consts = _derivative(loop, moving, changed)
    own, changes = _by_kind(loop, jaxpr.invars, moving)
    kinds = own[0] + changes[0], changes[1], own[1] + own[2] + changes[2]
    rows, saved = _changing_paces(loop, moving, changed)
    rows = [*(1,) * loop.carry, *loop.rows, *rows]
    results = jaxpr.outvars[len(changed) :]
    changing = loop.like(jaxpr, consts, kinds, results, rows, saved)
    own, changes = own[0], [*own[1], *own[2]]
    is_change = [True] * len(jaxpr.invars)
    for start, count in ((0, len(own)), (changing.consts + changing.carry, len(changes))):
        is_change[start : start + count] = [False] * count
    changing = dataclasses.replace(changing, directions=tuple(is_change))
    return _with_states(loop), loop.derived(changing, lambda loop: along(loop, moving, changed)[1])


def widened(loop: Loop, count: int) -> Loop:
    """A loop of changes for so many directions at once, which are a first axis of each change.

    What depends on the point alone is computed once for all of them.
    """
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
    return loop.derived(made, lambda loop: widened(loop, count))


def together(loop: Loop, moving: Sequence[bool], changed: Sequence[bool]) -> Loop:
    """This loop and that of the changes as one: of each kind, first its own and then those."""
    jaxpr, consts = _derivative(loop, moving, changed)
    kinds = [x + y for x, y in zip(*_by_kind(loop, jaxpr.invars, moving), strict=True)]
    rows, saved = _changing_paces(loop, moving, changed)
    outs, own = jaxpr.outvars, len(changed)
    middle = own + sum(changed[: loop.carry])
    results = [*outs[: loop.carry], *outs[own:middle], *outs[loop.carry : own], *outs[middle:]]
    paces = [*loop.rows, *rows], [*loop.saved, *saved]
    made = loop.like(jaxpr, consts, kinds, results, *paces)
    return loop.derived(made, lambda loop: together(loop, moving, changed))


def _by_kind(
    loop: Loop, invars: Sequence[Any], moving: Sequence[bool]
) -> tuple[list[list[Any]], list[list[Any]]]:
    """The arguments of a derivative by kind, those of the function and their changes."""
    size = len(moving)
    changes = iter(invars[size:])
    own = [list(part) for part in loop.parts(invars[:size])]
    return own, [[next(changes) for moves in part if moves] for part in loop.parts(moving)]


def _changing_paces(
    loop: Loop, moving: Sequence[bool], changed: Sequence[bool]
) -> tuple[list[int], list[int]]:
    """After how many iterations there is a row of each change."""
    rows = zip(loop.rows, loop.parts(moving)[2], strict=True)
    saved = zip(loop.saved, changed[loop.carry :], strict=True)
    return [e for e, moves in rows if moves], [e for e, changes in saved if changes]


def _with_states(loop: Loop) -> Loop:
    """The loop that also saves what it carries at the start of every iteration."""
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
    if not isinstance(loop.body, Traced):
        return loop, [True] * len(used), [True] * len(loop.body.in_avals)
    # Loops stand inside of loops, and each is asked again for every one around it.
    if tuple(used) not in loop.reduced:
        loop.reduced[tuple(used)] = _without_unused(loop, used)
    return loop.reduced[tuple(used)]


def _without_unused(loop: Loop, wanted: Sequence[bool]) -> tuple[Loop, list[bool], list[bool]]:
    closed = loop.body.closed()
    n, m = loop.consts, loop.consts + loop.carry
    used = list(wanted)
    while True:
        jaxpr, read = without_dead_code(closed.jaxpr, used)
        more = [u or r for u, r in zip(used[: loop.carry], read[n:m], strict=True)]
        if more == used[: loop.carry]:
            break
        used[: loop.carry] = more
    keep = [r or (n <= i < m and used[i - n]) for i, r in enumerate(read)]
    invars = loop.parts(list(zip(closed.jaxpr.invars, keep, strict=True)))
    kinds = [[v for v, is_kept in part if is_kept] for part in invars]
    rows = [e for e, k in zip(loop.rows, keep[m:], strict=True) if k]
    saved = [e for e, u in zip(loop.saved, used[loop.carry :], strict=True) if u]
    smaller = loop.like(jaxpr, closed.consts, kinds, jaxpr.outvars, rows, saved)
    left = tuple(d for d, k in zip(loop.directions, keep, strict=False) if k)
    smaller = dataclasses.replace(smaller, directions=left)
    smaller = loop.derived(smaller, lambda loop: needed(loop, wanted)[0])
    smaller.reduced[(True,) * sum(used)] = smaller, [True] * sum(used), [True] * sum(keep)
    return smaller, used, keep


def _derivative(
    loop: Loop, moving: Sequence[bool], changed: Sequence[bool]
) -> tuple[Any, Sequence[Any]]:
    """The jaxpr of a body, and its constants, of all results and the changes of some.

    Its arguments are those of the body, and the changes of those that move.
    """
    closed, at = loop.body.closed(), [i for i, v in enumerate(moving) if v]

    def both(*args: Any) -> list[Any]:
        points, directions = list(args[: len(moving)]), list(args[len(moving) :])

        def moved(*values: Any) -> list[Any]:
            values_now = list(points)
            for i, x in zip(at, values, strict=True):
                values_now[i] = x
            return eval_jaxpr(closed.jaxpr, closed.consts, *values_now)

        results, changes = jax.jvp(moved, [points[i] for i in at], directions)
        return [*results, *(d for d, c in zip(changes, changed, strict=True) if c)]

    avals = closed.in_avals
    # What a derivative calls is marked as the function itself is.
    with within(loop.call is not None):
        derived = jax.make_jaxpr(both)(*avals, *(avals[i] for i in at))
    return derived.jaxpr, derived.consts
