"""What a native call computes: a loop.

Its body is a function of constants, of what is carried from iteration to iteration, and of the rows
of an iteration; it returns what is carried on and what is saved. Here a loop can be applied the
ordinary way, or written as part of a program. Loops that follow from it are in `loop_derivatives`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .deferred_calls import Call, with_calls
from .jaxprs import with_results
from .loop_body import LoopBody, Traced
from .private import ClosedJaxpr, like_any
from .program import MOST_WRITTEN, Program, Unsupported, finished
from .rules import arguments, constants, flat

# Longer loops inside a body are not written out.
LONGEST_INSIDE = 64


@dataclasses.dataclass(frozen=True, eq=False)
class Loop:
    """A loop: its body, and what is done with it.

    consts, carry: how many of the arguments of the body these are; the others are rows. rows,
    saved: after how many iterations there is a row of each input (zeros in between), and of each
    output. reverse: from the last rows to the first. forward_only: tangents are computed along with
    the loop, and nothing is saved to go back. directions: of a loop of tangents, the arguments that
    are tangents, in which it is linear; none for other loops. call: what makes native calls of
    marks inside. reduced: the loops of some of its results, by which these are.
    """

    body: LoopBody
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

    def cache_key(self, of: Callable[[ClosedJaxpr], Any]) -> Any:
        """All that the code of the body depends on, and how often there are rows."""
        counts = self.consts, self.carry, self.rows, self.saved
        return self.body.cache_key(of), counts, self.reverse

    @property
    def in_shapes(self) -> list[tuple[int, ...]]:
        """The shapes of the arguments of the whole loop."""
        first = self.consts + self.carry
        every = [None] * first + list(self.rows)
        return [self._with_rows(a.shape, e) for a, e in zip(self.body.in_avals, every, strict=True)]

    @property
    def out_shapes(self) -> list[tuple[int, ...]]:
        """The shapes of its results."""
        every = [None] * self.carry + list(self.saved)
        return [
            self._with_rows(a.shape, e) for a, e in zip(self.body.out_avals, every, strict=True)
        ]

    @property
    def fixed(self) -> int:
        """The scalars of its constants: so many arguments of its program stay as they are."""
        return sum(a.size for a in self.body.in_avals[: self.consts])

    def parts(self, items: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
        """Of one item for each argument of the body: for constants, what is carried, rows."""
        n, m = self.consts, self.consts + self.carry
        return items[:n], items[n:m], items[m:]

    def _with_rows(self, shape: tuple[int, ...], every: int | None) -> tuple[int, ...]:
        return shape if every is None else (self.length // every, *shape)

    def apply(self, *args: Any) -> list[Any]:
        """The results the ordinary way."""
        consts, carry, rows = self.parts(args)
        if self.length == 1:
            results = like_any(self.body.apply(*consts, *carry, *(x[0] for x in rows)), args)
            return [*results[: self.carry], *(y[None] for y in results[self.carry :])]

        def body(i: Any, state: Any) -> Any:
            carry, saved = state
            k = self.length - 1 - i if self.reverse else i
            now = [_row(x, k, every) for x, every in zip(rows, self.rows, strict=True)]
            results = like_any(self.body.apply(*consts, *carry, *now), args)
            stored = zip(saved, results[self.carry :], self.saved, strict=True)
            return results[: self.carry], [_with_row(x, y, k, every) for x, y, every in stored]

        shapes = zip(self.out_shapes, self.body.out_avals, strict=True)
        saved = [jnp.zeros(shape, a.dtype) for shape, a in shapes][self.carry :]
        start = like_any(list(carry), args), like_any(saved, args)
        carry, saved = jax.lax.fori_loop(0, self.length, body, start)
        return [*carry, *saved]

    def applied(self, batch: int | None, batched_args: Sequence[bool]) -> Callable[..., list[Any]]:
        """`apply` for one, or for a batch: the first axis of the arguments in `batched_args`.

        What is marked inside are native calls.
        """
        apply = self._with_calls().apply
        if batch is None:
            return apply
        axes = tuple(0 if a else None for a in batched_args)
        return jax.vmap(apply, in_axes=axes, out_axes=0, axis_size=batch)

    def _with_calls(self) -> Loop:
        """The same loop, the marks in its body made native calls; itself where there are none.

        A derivative is derived again from the loop with calls: what is linear in such a call takes
        the states, and not all that has been computed before.
        """
        body = self.body
        if self.call is None:
            return self
        if self._source is not None:
            source, derive = self._source
            inside = source._with_calls()
            again = self.body if inside is source else derive(inside).body
            body = again if _types(again) == _types(body) else body
        if isinstance(body, Traced):
            # Rules of derivatives, which jax keeps once they have been traced, have marks, too.
            closed = with_calls(body.closed(), self.call)
            body = body if closed is body.closed() else Traced(closed)
        return self if body is self.body else dataclasses.replace(self, body=body, call=None)

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
            for a in self.parts(self.body.in_avals)[2]
        ]
        saved: list[list[np.ndarray]] = [[] for _ in self.saved]
        iterations = range(self.length)
        for k in reversed(iterations) if self.reverse else iterations:
            every_row = zip(rows, self.rows, zeros, strict=True)
            now = [x[k // e] if (k + 1) % e == 0 else zero for x, e, zero in every_row]
            results = self.body.write(program, [*consts, *carry, *now])
            carry = results[: self.carry]
            for ys, y, every in zip(saved, results[self.carry :], self.saved, strict=True):
                if (k + 1) % every == 0:
                    ys.append(y)
        stacked = []
        for ys, a in zip(saved, self.body.out_avals[self.carry :], strict=True):
            ys = ys[::-1] if self.reverse else ys
            stacked.append(np.stack(ys) if ys else np.zeros((0, *a.shape), np.int64))
        return [*carry, *stacked]

    def program(
        self, products: bool = False, tables: bool = False, most_written: int = MOST_WRITTEN
    ) -> Program:
        """The program of the body, see Program."""
        program = Program(products, tables, most_written=most_written)
        results = self.body.write(program, arguments(program, self.body.in_avals))
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
            body=Traced(ClosedJaxpr(jaxpr, consts)),
            consts=len(kinds[0]),
            carry=len(kinds[1]),
            rows=tuple(rows),
            saved=tuple(saved),
            directions=(),
        )


def _types(body: LoopBody) -> list[tuple[Any, ...]]:
    """Of the arguments of a body, then of its results."""
    return [tuple((a.shape, a.dtype) for a in avals) for avals in (body.in_avals, body.out_avals)]


def _row(x: Any, k: Any, every: int) -> Any:
    """The row of iteration k; zeros where there is none."""
    zeros = jnp.zeros(x.shape[1:], x.dtype)
    if not x.shape[0]:
        return zeros
    row = jax.lax.dynamic_index_in_dim(x, k // every, keepdims=False)
    return row if every == 1 else jnp.where(k % every == every - 1, row, zeros)


def _with_row(x: Any, y: Any, k: Any, every: int) -> Any:
    """The rows with that of iteration k, if there is one."""
    if not x.shape[0]:
        return x
    if every != 1:
        before = jax.lax.dynamic_index_in_dim(x, k // every, keepdims=False)
        y = jnp.where(k % every == every - 1, y, before)
    return jax.lax.dynamic_update_index_in_dim(x, y, k // every, 0)
