"""What a native call computes: a loop of turns.

A turn is a function of constants, of what is carried from turn to turn, and of the turn's rows; it
returns what is carried on and what is saved. Here it can be applied the ordinary way, or written
as part of a program. Loops that follow from it are in `loop_derivatives`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .jaxprs import with_results
from .marks import Call, with_calls
from .private import ClosedJaxpr, like_any
from .program import Program, Unsupported, finished
from .rules import arguments, constants, flat
from .turns import Traced, Turn

# Longer loops inside a turn are not written out.
LONGEST_INSIDE = 64


@dataclasses.dataclass(frozen=True, eq=False)
class Loop:
    """The turns of a loop.

    consts, carry: how many of the arguments of a turn these are; the others are rows. rows, saved:
    after how many turns there is a row of each input (zeros in between), and of each output.
    reverse: from the last rows to the first. forward_only: the changes go along with the loop, and
    nothing is kept to go back. directions: of a loop of changes the arguments that are changes, in
    which it is linear; none for other loops. call: what makes native calls of marks inside.
    reduced: the loops of some of its results, by which these are.
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
    call: Call | None = None
    _source: tuple[Loop, Callable[[Loop], Loop]] | None = dataclasses.field(
        default=None, repr=False
    )
    reduced: dict = dataclasses.field(default_factory=dict, init=False, repr=False)

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

    def parts(self, items: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
        """Of one item for each argument of a turn, those for constants, what is carried, rows."""
        n, m = self.consts, self.consts + self.carry
        return items[:n], items[n:m], items[m:]

    def _with_rows(self, shape: tuple[int, ...], every: int | None) -> tuple[int, ...]:
        return shape if every is None else (self.length // every, *shape)

    def apply(self, *args: Any) -> list[Any]:
        """The results the ordinary way."""
        consts, carry, rows = self.parts(args)
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
        """`apply` for one, or for a batch that the arguments `along` have a first axis of.

        What is marked inside are native calls.
        """
        apply = self._with_calls().apply
        if batch is None:
            return apply
        axes = tuple(0 if a else None for a in along)
        return jax.vmap(apply, in_axes=axes, out_axes=0, axis_size=batch)

    def _with_calls(self) -> Loop:
        """The same loop, the marks in its turn made native calls; itself where there are none.

        A derivative is derived again from the loop with calls: what is linear in such a call takes
        the states, and not all that has been computed before.
        """
        turn = self.turn
        if self.call is None:
            return self
        if self._source is not None:
            source, derive = self._source
            inside = source._with_calls()
            again = self.turn if inside is source else derive(inside).turn
            turn = again if _types(again) == _types(turn) else turn
        if isinstance(turn, Traced):
            # Rules of derivatives, which jax keeps once they have been traced, have marks, too.
            closed = with_calls(turn.closed(), self.call)
            turn = turn if closed is turn.closed() else Traced(closed)
        return self if turn is self.turn else dataclasses.replace(self, turn=turn, call=None)

    def derived(self, loop: Loop, derive: Callable[[Loop], Loop]) -> Loop:
        """A loop that is derived from this one."""
        return dataclasses.replace(loop, _source=(self, derive))

    def write(self, program: Program, args: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The loop written out, as part of a program."""
        if self.length > LONGEST_INSIDE:
            raise Unsupported("a long loop inside")
        consts, carry, rows = self.parts(args)
        zeros = [
            constants(program, np.zeros(a.shape, a.dtype))
            for a in self.parts(self.turn.in_avals)[2]
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

    def like(
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


def _types(turn: Turn) -> list[tuple[Any, ...]]:
    """Of the arguments of a turn, then of its results."""
    return [tuple((a.shape, a.dtype) for a in avals) for avals in (turn.in_avals, turn.out_avals)]


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
