"""What a native call computes: a loop whose turn is a traced function, or the transpose of one.

A turn is a function of constants, of what is carried from turn to turn, and of the turn's rows; it
returns what is carried on and what is saved. Here it can be applied the ordinary way, written as
part of a program, differentiated, transposed, and rid of what nobody asks for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from .from_jaxpr import constants, write_closed
from .jaxprs import depending, with_results
from .private import ClosedJaxpr, eval_jaxpr, without_dead_code
from .program import Program, Unsupported
from .transposition import transposed

# Longer loops inside a turn are not written out.
_LONGEST_INSIDE = 64


class Turn(Protocol):
    """A function of arrays."""

    in_avals: list[Any]
    out_avals: list[Any]

    def apply(self, *args: Any) -> list[Any]:
        """The results the ordinary way."""
        ...

    def write(self, program: Program, given: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The results as part of a program."""
        ...

    def closed(self) -> ClosedJaxpr:
        """The function as a jaxpr."""
        ...

    def described(self, of: Callable[[ClosedJaxpr], Any]) -> Any:
        """All that `write` depends on, jaxprs by what `of` says of them."""
        ...


class Traced:
    """A function that has been traced."""

    def __init__(self, closed: ClosedJaxpr):
        self._closed = closed
        self.in_avals, self.out_avals = closed.in_avals, closed.out_avals

    def apply(self, *args: Any) -> list[Any]:
        results = eval_jaxpr(self._closed.jaxpr, self._closed.consts, *args)
        # What is a number of Python's in a jaxpr would stay one.
        return [jnp.asarray(x, a.dtype) for x, a in zip(results, self.out_avals, strict=True)]

    def write(self, program: Program, given: Sequence[np.ndarray]) -> list[np.ndarray]:
        found = write_closed(program, self._closed, given)
        return [np.broadcast_to(x, a.shape) for x, a in zip(found, self.out_avals, strict=True)]

    def closed(self) -> ClosedJaxpr:
        return self._closed

    def described(self, of: Callable[[ClosedJaxpr], Any]) -> Any:
        return "traced", of(self._closed)


class Transposed:
    """The transpose of the turn of a loop in those constants and rows, and in all it carries.

    Its constants are those in which the loop is not linear. It carries the cotangents of what the
    loop carries, and the sums of those of its linear constants. Its rows are the rows in which the
    loop is not linear, and the cotangents of what it saves; it saves those of the linear rows.
    """

    def __init__(self, loop: Loop, linear: tuple[bool, ...]):
        self.turn, self.linear = loop.turn, linear
        n, m = loop.consts, loop.consts + loop.carry
        avals = loop.turn.in_avals
        self.places = range(n), range(n, m), range(m, len(avals))
        fixed = [avals[i] for i in self.places[0] if not linear[i]]
        sums = [avals[i] for i in self.places[0] if linear[i]]
        carried, rows = avals[n:m], [avals[i] for i in self.places[2] if not linear[i]]
        self.on_rows = [avals[i] for i in self.places[2] if linear[i]]
        self.carry = loop.carry
        self.counts = len(fixed), len(carried), len(sums), len(rows)
        self.in_avals = [*fixed, *carried, *sums, *rows, *loop.turn.out_avals[loop.carry :]]
        self.out_avals = [*carried, *sums, *self.on_rows]

    def _split(self, given: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """What the turn is not linear in, the cotangents of its results, and the sums."""
        fixed, carried, sums, rows = np.cumsum(self.counts)
        known = [*given[:fixed], *given[sums:rows]]
        on_results = [*given[fixed:carried], *given[rows:]]
        return known, on_results, list(given[carried:sums])

    def _merged(self, known: Sequence[Any], linear: Sequence[Any]) -> list[Any]:
        known, linear = list(known), list(linear)
        return [(linear if chosen else known).pop(0) for chosen in self._all_linear()]

    def _all_linear(self) -> list[bool]:
        return [x or i in self.places[1] for i, x in enumerate(self.linear)]

    def _ordered(self, cotangents: Sequence[Any], sums: Sequence[Any], add: Callable) -> list[Any]:
        """The cotangents of the linear arguments, in their order, as results of this turn."""
        at = [i for i, x in enumerate(self._all_linear()) if x]
        on = dict(zip(at, cotangents, strict=True))
        consts, carried, rows = ([on[i] for i in p if i in on] for p in self.places)
        return [*carried, *(add(s, c) for s, c in zip(sums, consts, strict=True)), *rows]

    def apply(self, *args: Any) -> list[Any]:
        known, on_results, sums = self._split(args)

        def along(*linear: Any) -> list[Any]:
            return self.turn.apply(*self._merged(known, linear))

        avals = [a for a, x in zip(self.turn.in_avals, self._all_linear(), strict=True) if x]
        like = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in avals]
        found = jax.linear_transpose(along, *like)(on_results)
        return self._ordered(found, sums, jnp.add)

    def write(self, program: Program, given: Sequence[np.ndarray]) -> list[np.ndarray]:
        known, on_results, sums = self._split(given)
        avals = [a for a, x in zip(self.turn.in_avals, self._all_linear(), strict=True) if x]
        linear = []
        for a in avals:
            (zero,) = constants(program, np.zeros((1,), a.dtype))
            kind = program.types[zero]
            entries = [program.placeholder(kind) for _ in range(a.size)]
            linear.append(np.array(entries, np.int64).reshape(a.shape))
        results = self.turn.write(program, self._merged(known, linear))
        try:
            turned = transposed(program, _flat(linear), _flat(results), _flat(on_results))
        except Unsupported:
            # Where a solver goes on until it is good enough, jax knows how its transpose does.
            return write_closed(program, self.closed(), given)
        found = iter(turned)
        cotangents = [
            np.array([next(found) for _ in range(a.size)], np.int64).reshape(a.shape) for a in avals
        ]

        def add(x: np.ndarray, y: np.ndarray) -> np.ndarray:
            pairs = zip(x.ravel().tolist(), y.ravel().tolist(), strict=True)
            sums = [program.add(a, b, program.types[a]) for a, b in pairs]
            return np.array(sums, np.int64).reshape(x.shape)

        return self._ordered(cotangents, sums, add)

    def closed(self) -> ClosedJaxpr:
        return jax.make_jaxpr(self.apply)(*self.in_avals)

    def described(self, of: Callable[[ClosedJaxpr], Any]) -> Any:
        own = self.linear, self.carry, self.places[1]
        return "transposed", self.turn.described(of), own


def _flat(arrays: Sequence[np.ndarray]) -> list[int]:
    return [k for a in arrays for k in a.ravel().tolist()]


@dataclasses.dataclass(frozen=True, eq=False)
class Loop:
    """The turns of a loop.

    consts, carry: how many of the arguments of a turn these are; the others are rows. rows, saved:
    after how many turns there is a row of each input (zeros in between), and of each output.
    reverse: from the last rows to the first. forward_only: the changes go along with the loop, and
    nothing is kept to go back.
    """

    turn: Turn
    consts: int
    carry: int
    rows: tuple[int, ...]
    saved: tuple[int, ...]
    length: int
    reverse: bool = False
    forward_only: bool = False
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

    def _with_rows(self, shape: tuple[int, ...], every: int | None) -> tuple[int, ...]:
        return shape if every is None else (self.length // every, *shape)

    def apply(self, *args: Any) -> list[Any]:
        """The results the ordinary way."""
        n, m = self.consts, self.consts + self.carry
        consts, carry, rows = list(args[:n]), list(args[n:m]), list(args[m:])
        if self.length == 1:
            results = self.turn.apply(*consts, *carry, *(x[0] for x in rows))
            return [*results[: self.carry], *(y[None] for y in results[self.carry :])]
        every = max((*self.rows, *self.saved), default=1)
        if any(e not in (1, every) for e in (*self.rows, *self.saved)):
            raise NotImplementedError("rows and outputs at three different paces")
        # What is rare belongs to the last turn of a group, which is the first on the way back.
        often, saved_often = [e == 1 for e in self.rows], [e == 1 for e in self.saved]

        def split(items: Sequence[Any], first: Sequence[bool]) -> tuple[list[Any], list[Any]]:
            pairs = list(zip(items, first, strict=True))
            return [x for x, is_first in pairs if is_first], [x for x, f in pairs if not f]

        def merged(yes: Sequence[Any], no: Sequence[Any], first: Sequence[bool]) -> list[Any]:
            yes, no = list(yes), list(no)
            return [(yes if is_first else no).pop(0) for is_first in first]

        def group(carry: Any, given: Any) -> Any:
            here, rare = given

            def one(state: Any, given: Any) -> Any:
                (carry, kept), (k, here) = state, given
                is_last = k == every - 1
                now = [jnp.where(is_last, x, jnp.zeros_like(x)) for x in rare]
                results = self.turn.apply(*consts, *carry, *merged(here, now, often))
                outs, seldom = split(results[self.carry :], saved_often)
                kept = [jnp.where(is_last, y, z) for y, z in zip(seldom, kept, strict=True)]
                return (results[: self.carry], kept), outs

            _, seldom = split(self.turn.out_avals[self.carry :], saved_often)
            state = carry, [jnp.zeros(a.shape, a.dtype) for a in seldom]
            turns = jnp.arange(every), here
            (carry, kept), outs = jax.lax.scan(one, state, turns, reverse=self.reverse)
            return carry, (outs, kept)

        here, rare = split(rows, often)
        groups = self.length // every
        here = [x.reshape((groups, every, *x.shape[1:])) for x in here]
        carry, (outs, kept) = jax.lax.scan(
            group, carry, (here, rare), length=groups, reverse=self.reverse
        )
        outs = [y.reshape((self.length, *y.shape[2:])) for y in outs]
        return [*carry, *merged(outs, kept, saved_often)]

    def write(self, program: Program, given: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The loop written out, as part of a program."""
        if self.length > _LONGEST_INSIDE:
            raise Unsupported("a long loop inside")
        n, m = self.consts, self.consts + self.carry
        consts, carry, rows = list(given[:n]), list(given[n:m]), list(given[m:])
        saved: list[list[np.ndarray]] = [[] for _ in self.saved]
        turns = range(self.length)
        for i in reversed(turns) if self.reverse else turns:
            here = []
            for x, every, a in zip(rows, self.rows, self.turn.in_avals[m:], strict=True):
                zeros = constants(program, np.zeros(a.shape, a.dtype))
                here.append(x[(i + 1) // every - 1] if (i + 1) % every == 0 else zeros)
            results = self.turn.write(program, [*consts, *carry, *here])
            carry = results[: self.carry]
            for kept, y, every in zip(saved, results[self.carry :], self.saved, strict=True):
                if (i + 1) % every == 0:
                    kept.append(y)
        stacked = []
        for ys, a in zip(saved, self.turn.out_avals[self.carry :], strict=True):
            ys = ys[::-1] if self.reverse else ys
            stacked.append(np.stack(ys) if ys else np.zeros((0, *a.shape), np.int64))
        return [*carry, *stacked]

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
        n, m, size = self.consts, self.consts + self.carry, len(moving)
        jaxpr, consts = _derivative(self.turn.closed(), moving, changed)
        at = [i for i, v in enumerate(moving) if v]
        constant = [*range(n), *(size + k for k, i in enumerate(at) if i < n)]
        carried = [size + k for k, i in enumerate(at) if n <= i < m]
        rows = [*range(n, m), *range(m, size), *(size + k for k, i in enumerate(at) if i >= m)]
        invars = [jaxpr.invars[i] for i in (*constant, *carried, *rows)]
        results = jaxpr.outvars[len(changed) :]
        saved = [e for e, c in zip(self.saved, changed[self.carry :], strict=True) if c]
        changes = dataclasses.replace(
            self,
            turn=Traced(ClosedJaxpr(with_results(jaxpr, invars, results), consts)),
            consts=len(constant),
            carry=len(carried),
            rows=(*(1,) * self.carry, *self.rows, *(self.rows[i - m] for i in at if i >= m)),
            saved=tuple(saved),
        )
        return self._with_states(), changes

    def together(self, moving: Sequence[bool], changed: Sequence[bool]) -> Loop:
        """This loop and that of the changes as one: of each kind, first its own and then those."""
        n, m, size = self.consts, self.consts + self.carry, len(moving)
        jaxpr, consts = _derivative(self.turn.closed(), moving, changed)
        at = [i for i, v in enumerate(moving) if v]
        parts = [(0, n), (n, m), (m, size)]
        order = [
            [*range(a, b), *(size + k for k, i in enumerate(at) if a <= i < b)] for a, b in parts
        ]
        outs, own = jaxpr.outvars, len(changed)
        moved = sum(changed[: self.carry])
        middle = own + moved
        results = [*outs[: self.carry], *outs[own:middle], *outs[self.carry : own], *outs[middle:]]
        invars = [jaxpr.invars[i] for part in order for i in part]
        saved = [e for e, c in zip(self.saved, changed[self.carry :], strict=True) if c]
        return dataclasses.replace(
            self,
            turn=Traced(ClosedJaxpr(with_results(jaxpr, invars, results), consts)),
            consts=len(order[0]),
            carry=len(order[1]),
            rows=(*self.rows, *(self.rows[i - m] for i in at if i >= m)),
            saved=(*self.saved, *saved),
        )

    def _with_states(self) -> Loop:
        """The loop that also saves what it carries at the start of every turn."""
        closed = self.turn.closed()
        jaxpr = closed.jaxpr
        states = jaxpr.invars[self.consts : self.consts + self.carry]
        results = with_results(jaxpr, jaxpr.invars, [*jaxpr.outvars, *states])
        saved = (*self.saved, *(1,) * self.carry)
        turn = Traced(ClosedJaxpr(results, closed.consts))
        return dataclasses.replace(self, turn=turn, saved=saved)

    def transposed(self, linear: Sequence[bool]) -> Loop:
        """The loop back, of cotangents."""
        m = self.consts + self.carry
        turn = Transposed(self, tuple(linear))
        fixed, carried, sums, _ = turn.counts
        on_rows = [e for e, x in zip(self.rows, linear[m:], strict=True) if x]
        rows = [e for e, x in zip(self.rows, linear[m:], strict=True) if not x]
        return dataclasses.replace(
            self,
            turn=turn,
            consts=fixed,
            carry=carried + sums,
            rows=(*rows, *self.saved),
            saved=tuple(on_rows),
            reverse=not self.reverse,
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
        invars = [v for v, k in zip(closed.jaxpr.invars, keep, strict=True) if k]
        jaxpr = with_results(jaxpr, invars, jaxpr.outvars)
        smaller = dataclasses.replace(
            self,
            turn=Traced(ClosedJaxpr(jaxpr, closed.consts)),
            consts=sum(keep[:n]),
            carry=sum(keep[n:m]),
            rows=tuple(e for e, k in zip(self.rows, keep[m:], strict=True) if k),
            saved=tuple(e for e, u in zip(self.saved, used[self.carry :], strict=True) if u),
        )
        smaller._needed[(True,) * sum(used)] = smaller, [True] * sum(used), [True] * sum(keep)
        return smaller, used, keep


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
            given = list(points)
            for i, x in zip(at, values, strict=True):
                given[i] = x
            return eval_jaxpr(closed.jaxpr, closed.consts, *given)

        results, changes = jax.jvp(moved, [points[i] for i in at], directions)
        return [*results, *(d for d, c in zip(changes, changed, strict=True) if c)]

    avals = closed.in_avals
    derived = jax.make_jaxpr(both)(*avals, *(avals[i] for i in at))
    return derived.jaxpr, derived.consts
