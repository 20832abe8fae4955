"""What a native call computes: a loop of turns.

A turn is a function of constants, of what is carried from turn to turn, and of the turn's rows; it
returns what is carried on and what is saved. Here it can be applied the ordinary way, written as
part of a program, differentiated, transposed, and rid of what nobody asks for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .jaxprs import depending, with_results
from .private import ClosedJaxpr, eval_jaxpr, like_any, without_dead_code
from .program import Program, Unsupported, finished
from .rules import arguments, constants, flat
from .turns import Traced, Transposed, Turn

# Longer loops inside a turn are not written out.
_LONGEST_INSIDE = 64


@dataclasses.dataclass(frozen=True, eq=False)
class Loop:
    """The turns of a loop.

    consts, carry: how many of the arguments of a turn these are; the others are rows. rows, saved:
    after how many turns there is a row of each input (zeros in between), and of each output.
    reverse: from the last rows to the first. forward_only: the changes go along with the loop, and
    nothing is kept to go back. directions: of a loop of changes the arguments that are changes, in
    which it is linear; none for other loops.
    """

    turn: Turn
    consts: int
    carry: int
    rows: tuple[int, ...]
    saved: tuple[int, ...]
    length: int
    reverse: bool = False
    forward_only: bool = False
    directions: tuple[bool, ...] = ()
    _needed: dict = dataclasses.field(default_factory=dict, init=False, repr=False)

    def described(self, of: Callable[[ClosedJaxpr], Any]) -> Any:
        """All that the code of a turn depends on, and how often there are rows."""
        counts = self.consts, self.carry, self.rows, self.saved
        return self.turn.described(of), counts, self.reverse

    @property
    def in_shapes(self) -> list[tuple[int, ...]]:
        """The shapes of the arguments of the whole loop."""
        first = self.consts + self.carry
        every = [None] * first + list(self.rows)
        return [self._with_rows(a.shape, e) for a, e in zip(self.turn.in_avals, every, strict=True)]

    @property
    def out_shapes(self) -> list[tuple[int, ...]]:
        """The shapes of its results."""
        every = [None] * self.carry + list(self.saved)
        return [
            self._with_rows(a.shape, e) for a, e in zip(self.turn.out_avals, every, strict=True)
        ]

    def _parts(self, items: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
        """Of one item for each argument of a turn, those for constants, what is carried, rows."""
        n, m = self.consts, self.consts + self.carry
        return items[:n], items[n:m], items[m:]

    def _with_rows(self, shape: tuple[int, ...], every: int | None) -> tuple[int, ...]:
        return shape if every is None else (self.length // every, *shape)

    def apply(self, *args: Any) -> list[Any]:
        """The results the ordinary way."""
        consts, carry, rows = self._parts(args)
        if self.length == 1:
            results = like_any(self.turn.apply(*consts, *carry, *(x[0] for x in rows)), args)
            return [*results[: self.carry], *(y[None] for y in results[self.carry :])]

        def turn(i: Any, state: Any) -> Any:
            carry, saved = state
            k = self.length - 1 - i if self.reverse else i
            now = [_row(x, k, every) for x, every in zip(rows, self.rows, strict=True)]
            results = like_any(self.turn.apply(*consts, *carry, *now), args)
            kept = zip(saved, results[self.carry :], self.saved, strict=True)
            return results[: self.carry], [_with_row(x, y, k, every) for x, y, every in kept]

        shapes = zip(self.out_shapes, self.turn.out_avals, strict=True)
        saved = [jnp.zeros(shape, a.dtype) for shape, a in shapes][self.carry :]
        start = like_any(list(carry), args), like_any(saved, args)
        carry, saved = jax.lax.fori_loop(0, self.length, turn, start)
        return [*carry, *saved]

    def applied(self, batch: int | None, along: Sequence[bool]) -> Callable[..., list[Any]]:
        """`apply` for one, or for a batch that the arguments `along` have a first axis of."""
        if batch is None:
            return self.apply
        axes = tuple(0 if a else None for a in along)
        return jax.vmap(self.apply, in_axes=axes, out_axes=0, axis_size=batch)

    def write(self, program: Program, args: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The loop written out, as part of a program."""
        if self.length > _LONGEST_INSIDE:
            raise Unsupported("a long loop inside")
        consts, carry, rows = self._parts(args)
        zeros = [
            constants(program, np.zeros(a.shape, a.dtype))
            for a in self._parts(self.turn.in_avals)[2]
        ]
        saved: list[list[np.ndarray]] = [[] for _ in self.saved]
        turns = range(self.length)
        for k in reversed(turns) if self.reverse else turns:
            every_row = zip(rows, self.rows, zeros, strict=True)
            now = [x[k // e] if (k + 1) % e == 0 else zero for x, e, zero in every_row]
            results = self.turn.write(program, [*consts, *carry, *now])
            carry = results[: self.carry]
            for kept, y, every in zip(saved, results[self.carry :], self.saved, strict=True):
                if (k + 1) % every == 0:
                    kept.append(y)
        stacked = []
        for ys, a in zip(saved, self.turn.out_avals[self.carry :], strict=True):
            ys = ys[::-1] if self.reverse else ys
            stacked.append(np.stack(ys) if ys else np.zeros((0, *a.shape), np.int64))
        return [*carry, *stacked]

    def program(self, products: bool = False) -> Program:
        """The program of one turn, see Program."""
        program = Program(products)
        results = self.turn.write(program, arguments(program, self.turn.in_avals))
        return finished(program, flat(results))

    # Derivatives

    def moving(self, varied: Sequence[bool]) -> tuple[list[bool], list[bool]]:
        """Which arguments change with those that vary, in any turn, and which results."""
        jaxpr = self.turn.closed().jaxpr
        n, m = self.consts, self.consts + self.carry
        varied = list(varied)
        while True:
            changed = depending(jaxpr, varied)
            more = [v or c for v, c in zip(varied[n:m], changed, strict=False)]
            if more == varied[n:m]:
                return varied, [*more, *changed[self.carry :]]
            varied[n:m] = more

    def along(self, moving: Sequence[bool], changed: Sequence[bool]) -> tuple[Loop, Loop]:
        """The derivative along changes of some arguments, of some results.

        Returns the loop that saves the states at the start of every turn besides, and the loop of
        the changes: its constants are those of this loop and their changes, it carries the changes
        of what this one carries, its rows are the states, the rows and their changes.
        """
        jaxpr, consts = _derivative(self.turn.closed(), moving, changed)
        own, changes = self._by_kind(jaxpr.invars, moving)
        kinds = own[0] + changes[0], changes[1], own[1] + own[2] + changes[2]
        rows, saved = self._changing_paces(moving, changed)
        rows = [*(1,) * self.carry, *self.rows, *rows]
        results = jaxpr.outvars[len(changed) :]
        changing = self._like(jaxpr, consts, kinds, results, rows, saved)
        own, changes = own[0], [*own[1], *own[2]]
        is_change = [True] * len(jaxpr.invars)
        for start, count in ((0, len(own)), (changing.consts + changing.carry, len(changes))):
            is_change[start : start + count] = [False] * count
        return self._with_states(), dataclasses.replace(changing, directions=tuple(is_change))

    def widened(self, count: int) -> Loop:
        """A loop of changes for so many directions at once, which are a first axis of each change.

        What depends on the point alone is computed once for all of them.
        """
        closed = self.turn.closed()
        axes = tuple(0 if d else None for d in self.directions)

        def turn(*args: Any) -> list[Any]:
            return eval_jaxpr(closed.jaxpr, closed.consts, *args)

        avals = [
            jax.ShapeDtypeStruct((count, *a.shape) if d else a.shape, a.dtype)
            for a, d in zip(self.turn.in_avals, self.directions, strict=True)
        ]
        wide = jax.make_jaxpr(jax.vmap(turn, axes, 0, axis_size=count))(*avals)
        kinds = self._parts(wide.jaxpr.invars)
        outvars = wide.jaxpr.outvars
        return self._like(wide.jaxpr, wide.consts, kinds, outvars, self.rows, self.saved)

    def together(self, moving: Sequence[bool], changed: Sequence[bool]) -> Loop:
        """This loop and that of the changes as one: of each kind, first its own and then those."""
        jaxpr, consts = _derivative(self.turn.closed(), moving, changed)
        kinds = [x + y for x, y in zip(*self._by_kind(jaxpr.invars, moving), strict=True)]
        rows, saved = self._changing_paces(moving, changed)
        outs, own = jaxpr.outvars, len(changed)
        middle = own + sum(changed[: self.carry])
        results = [*outs[: self.carry], *outs[own:middle], *outs[self.carry : own], *outs[middle:]]
        paces = [*self.rows, *rows], [*self.saved, *saved]
        return self._like(jaxpr, consts, kinds, results, *paces)

    def _by_kind(
        self, invars: Sequence[Any], moving: Sequence[bool]
    ) -> tuple[list[list[Any]], list[list[Any]]]:
        """The arguments of a derivative by kind, those of the function and their changes."""
        size = len(moving)
        changes = iter(invars[size:])
        own = [list(part) for part in self._parts(invars[:size])]
        return own, [[next(changes) for moves in part if moves] for part in self._parts(moving)]

    def _changing_paces(
        self, moving: Sequence[bool], changed: Sequence[bool]
    ) -> tuple[list[int], list[int]]:
        """After how many turns there is a row of each change."""
        rows = zip(self.rows, self._parts(moving)[2], strict=True)
        saved = zip(self.saved, changed[self.carry :], strict=True)
        return [e for e, moves in rows if moves], [e for e, changes in saved if changes]

    def _like(
        self,
        jaxpr: Any,
        consts: Sequence[Any],
        kinds: Sequence[Sequence[Any]],
        results: Sequence[Any],
        rows: Sequence[int],
        saved: Sequence[int],
    ) -> Loop:
        """A loop of these equations, its arguments by kind: constants, what is carried, rows."""
        jaxpr = with_results(jaxpr, [v for kind in kinds for v in kind], results)
        return dataclasses.replace(
            self,
            turn=Traced(ClosedJaxpr(jaxpr, consts)),
            consts=len(kinds[0]),
            carry=len(kinds[1]),
            rows=tuple(rows),
            saved=tuple(saved),
            directions=(),
        )

    def _with_states(self) -> Loop:
        """The loop that also saves what it carries at the start of every turn."""
        closed = self.turn.closed()
        kinds, saved = self._parts(closed.jaxpr.invars), (*self.saved, *(1,) * self.carry)
        results = [*closed.jaxpr.outvars, *kinds[1]]
        return self._like(closed.jaxpr, closed.consts, kinds, results, self.rows, saved)

    def transposed(self, linear: Sequence[bool]) -> Loop:
        """The loop back, of cotangents."""
        turn = Transposed(self.turn, self.consts, self.carry, linear)
        fixed, carried, sums, _ = turn.counts
        paces = list(zip(self.rows, self._parts(linear)[2], strict=True))
        return dataclasses.replace(
            self,
            turn=turn,
            consts=fixed,
            carry=carried + sums,
            rows=(*(e for e, is_linear in paces if not is_linear), *self.saved),
            saved=tuple(e for e, is_linear in paces if is_linear),
            reverse=not self.reverse,
            directions=(),
        )

    def needed(self, used: Sequence[bool]) -> tuple[Loop, list[bool], list[bool]]:
        """The loop of some results only; which results are left, and which arguments it needs.

        What is carried and matters to a result wanted stays a result.
        """
        if not isinstance(self.turn, Traced):
            return self, [True] * len(used), [True] * len(self.turn.in_avals)
        # Loops stand inside of loops, and each is asked again for every one around it.
        if tuple(used) not in self._needed:
            self._needed[tuple(used)] = self._without_unused(used)
        return self._needed[tuple(used)]

    def _without_unused(self, used: Sequence[bool]) -> tuple[Loop, list[bool], list[bool]]:
        closed = self.turn.closed()
        n, m = self.consts, self.consts + self.carry
        used = list(used)
        while True:
            jaxpr, read = without_dead_code(closed.jaxpr, used)
            more = [u or r for u, r in zip(used[: self.carry], read[n:m], strict=True)]
            if more == used[: self.carry]:
                break
            used[: self.carry] = more
        keep = [r or (n <= i < m and used[i - n]) for i, r in enumerate(read)]
        invars = self._parts(list(zip(closed.jaxpr.invars, keep, strict=True)))
        kinds = [[v for v, is_kept in part if is_kept] for part in invars]
        rows = [e for e, k in zip(self.rows, keep[m:], strict=True) if k]
        saved = [e for e, u in zip(self.saved, used[self.carry :], strict=True) if u]
        smaller = self._like(jaxpr, closed.consts, kinds, jaxpr.outvars, rows, saved)
        left = tuple(d for d, k in zip(self.directions, keep, strict=False) if k)
        smaller = dataclasses.replace(smaller, directions=left)
        smaller._needed[(True,) * sum(used)] = smaller, [True] * sum(used), [True] * sum(keep)
        return smaller, used, keep


def _row(x: Any, k: Any, every: int) -> Any:
    """The row of turn k; zeros where there is none."""
    zeros = jnp.zeros(x.shape[1:], x.dtype)
    if not x.shape[0]:
        return zeros
    row = jax.lax.dynamic_index_in_dim(x, k // every, keepdims=False)
    return row if every == 1 else jnp.where(k % every == every - 1, row, zeros)


def _with_row(x: Any, y: Any, k: Any, every: int) -> Any:
    """The rows with that of turn k, if there is one."""
    if not x.shape[0]:
        return x
    if every != 1:
        before = jax.lax.dynamic_index_in_dim(x, k // every, keepdims=False)
        y = jnp.where(k % every == every - 1, y, before)
    return jax.lax.dynamic_update_index_in_dim(x, y, k // every, 0)


def _derivative(
    closed: ClosedJaxpr, moving: Sequence[bool], changed: Sequence[bool]
) -> tuple[Any, Sequence[Any]]:
    """The jaxpr, and its constants, of all results and the changes of some.

    Its arguments are those of the function, and the changes of those that move.
    """
    at = [i for i, v in enumerate(moving) if v]

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
    derived = jax.make_jaxpr(both)(*avals, *(avals[i] for i in at))
    return derived.jaxpr, derived.consts
