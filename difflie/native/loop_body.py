"""The bodies of loops: traced functions, and their tangents and transposes.

Tangents are taken on the program of a body (`differentiable`), where it has one.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from .private import ClosedJaxpr, eval_jaxpr
from .program import Program, Unsupported
from .program.instructions import union
from .program.transposition import transposed
from .rules import (
    Differentiable,
    arguments,
    constants,
    copied,
    elementwise,
    flat,
    kind_of,
    like,
    write_closed,
)


class LoopBody(Protocol):
    """A function of arrays."""

    in_avals: list[Any]
    out_avals: list[Any]

    def apply(self, *args: Any) -> list[Any]:
        """The results the ordinary way."""
        ...

    def write(self, program: Program, args: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The results as part of a program."""
        ...

    def closed(self) -> ClosedJaxpr:
        """The function as a jaxpr."""
        ...

    def source(self) -> ClosedJaxpr:
        """The traced function that this is, or is made of."""
        ...

    def cache_key(self, of: Callable[[ClosedJaxpr], Any]) -> Any:
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

    def write(self, program: Program, args: Sequence[np.ndarray]) -> list[np.ndarray]:
        results = write_closed(program, self._closed, args)
        return [np.broadcast_to(x, a.shape) for x, a in zip(results, self.out_avals, strict=True)]

    def closed(self) -> ClosedJaxpr:
        return self._closed

    def source(self) -> ClosedJaxpr:
        return self._closed

    def cache_key(self, of: Callable[[ClosedJaxpr], Any]) -> Any:
        return "traced", of(self._closed)


class _Derived:
    """A body that is made of another one, and traced where its jaxpr is asked for."""

    body: LoopBody
    in_avals: list[Any]

    def apply(self, *args: Any) -> list[Any]:
        raise NotImplementedError

    def closed(self) -> ClosedJaxpr:
        return jax.make_jaxpr(self.apply)(*self.in_avals)

    def source(self) -> ClosedJaxpr:
        return self.body.source()


class Transposed(_Derived):
    """The transpose of the body of a loop in those constants and rows, and in all it carries.

    Its constants are those in which the loop is not linear. It carries the cotangents of what the
    loop carries, and the sums of those of its linear constants. Its rows are the rows in which the
    loop is not linear, and the cotangents of what it saves; it saves those of the linear rows.
    """

    def __init__(self, body: LoopBody, consts: int, carry: int, linear: Sequence[bool]):
        n, m = consts, consts + carry
        self.body, self._sizes = body, (consts, carry)
        self._linear = [is_linear or n <= i < m for i, is_linear in enumerate(linear)]
        avals = body.in_avals
        self._avals = self._some(avals, True)
        carried = avals[n:m]
        fixed, sums = (self._some(avals[:n], x) for x in (False, True))
        rows = self._some(avals, False)[len(fixed) :]
        on_rows = self._avals[len(sums) + carry :]
        self.counts = len(fixed), carry, len(sums), len(rows)
        self.in_avals = [*fixed, *carried, *sums, *rows, *body.out_avals[carry:]]
        self.out_avals = [*carried, *sums, *on_rows]

    def _some(self, items: Sequence[Any], linear: bool) -> list[Any]:
        """Of the first arguments, those in which the body is linear, or the others."""
        return [x for x, is_linear in zip(items, self._linear, strict=False) if is_linear == linear]

    def _split(self, args: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """What the body is not linear in, the cotangents of its results, and the sums."""
        fixed, carried, sums, rows = np.cumsum(self.counts)
        known = [*args[:fixed], *args[sums:rows]]
        return known, [*args[fixed:carried], *args[rows:]], list(args[carried:sums])

    def _merged(self, known: Sequence[Any], linear: Sequence[Any]) -> list[Any]:
        """The arguments of the body."""
        known_ones, linear_ones = iter(known), iter(linear)
        return [next(linear_ones if x else known_ones) for x in self._linear]

    def _ordered(self, cotangents: Sequence[Any], sums: Sequence[Any], add: Callable) -> list[Any]:
        """The cotangents of the linear arguments, in their order, as results of this body."""
        first, last = len(sums), len(sums) + self._sizes[1]
        more = map(add, sums, cotangents[:first])
        return [*cotangents[first:last], *more, *cotangents[last:]]

    def apply(self, *args: Any) -> list[Any]:
        known, on_results, sums = self._split(args)

        def of_linear(*linear: Any) -> list[Any]:
            return self.body.apply(*self._merged(known, linear))

        # The derivative of a linear function, at any point, is itself. `linear_transpose` takes all
        # results of an inner call for linear, also those that depend on what is known alone.
        _, transpose = jax.vjp(of_linear, *(jnp.zeros(a.shape, a.dtype) for a in self._avals))
        return self._ordered(transpose(on_results), sums, jnp.add)

    def write(self, program: Program, args: Sequence[np.ndarray]) -> list[np.ndarray]:
        known, on_results, sums = self._split(args)
        kinds = [kind_of(a.dtype) for a in self._avals for _ in range(a.size)]
        inputs = [program.placeholder(kind) for kind in kinds]
        results = self.body.write(program, self._merged(known, like(inputs, self._avals)))
        try:
            cotangents = transposed(program, inputs, flat(results), flat(on_results))
        except Unsupported:
            # Where a solver goes on until it is good enough, jax knows how its transpose does.
            return write_closed(program, self.closed(), args)

        def add(x: np.ndarray, y: np.ndarray) -> np.ndarray:
            return elementwise(lambda a, b: program.add(a, b, program.types[a]), x, y)

        return self._ordered(like(cotangents, self._avals), sums, add)

    def cache_key(self, of: Callable[[ClosedJaxpr], Any]) -> Any:
        return "transposed", self.body.cache_key(of), self._linear, self._sizes


class Tangents(_Derived):
    """The tangents of those results of a body, from its arguments and the tangents of those.

    active: which arguments have a tangent. order: argument i of this body is `order[i]` of the list
    of the body's arguments, followed by these tangents.
    """

    def __init__(
        self,
        body: LoopBody,
        active: Sequence[bool],
        active_results: Sequence[bool],
        order: Sequence[int],
    ):
        self.body, self._active, self._active_results = body, tuple(active), tuple(active_results)
        self._order = tuple(order)
        avals = [*body.in_avals, *_those(body.in_avals, active)]
        self.in_avals = [avals[i] for i in order]
        self.out_avals = _those(body.out_avals, active_results)

    def _listed(self, args: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The arguments of the body, and the tangents."""
        placed = dict(zip(self._order, args, strict=True))
        listed = [placed[i] for i in range(len(placed))]
        n = len(self._active)
        return listed[:n], listed[n:]

    def apply(self, *args: Any) -> list[Any]:
        points, moves = self._listed(args)
        at = [i for i, v in enumerate(self._active) if v]

        def moved(*values: Any) -> list[Any]:
            now = list(points)
            for i, x in zip(at, values, strict=True):
                now[i] = x
            results = self.body.apply(*now)
            return _those(results, self._active_results)

        return list(jax.jvp(moved, [points[i] for i in at], moves)[1])

    def write(self, program: Program, args: Sequence[np.ndarray]) -> list[np.ndarray]:
        written = differentiable(self.body)
        if written is None:
            return write_closed(program, self.closed(), args)
        points, moves = self._listed(args)
        given = iter(moves)
        tangents = [next(given) if v else None for v in self._active]
        return _those(written.write(program, points, tangents)[1], self._active_results)

    def cache_key(self, of: Callable[[ClosedJaxpr], Any]) -> Any:
        which = self._active, self._active_results, self._order
        return "tangents", self.body.cache_key(of), which


class Passing(_Derived):
    """A body that also returns some of its arguments."""

    def __init__(self, body: LoopBody, places: Sequence[int]):
        self.body, self._places = body, tuple(places)
        self.in_avals = body.in_avals
        self.out_avals = [*body.out_avals, *self._some(body.in_avals)]

    def _some(self, args: Sequence[Any]) -> list[Any]:
        return [args[i] for i in self._places]

    def apply(self, *args: Any) -> list[Any]:
        return [*self.body.apply(*args), *self._some(args)]

    def write(self, program: Program, args: Sequence[np.ndarray]) -> list[np.ndarray]:
        return [*self.body.write(program, args), *self._some(args)]

    def cache_key(self, of: Callable[[ClosedJaxpr], Any]) -> Any:
        return "passing", self.body.cache_key(of), self._places


class Wide(_Derived):
    """A body of tangents for several directions at once, a first axis of each tangent."""

    def __init__(self, body: LoopBody, directions: Sequence[bool], count: int):
        self.body, self._directions, self._count = body, tuple(directions), count
        self.in_avals = [
            jax.ShapeDtypeStruct((count, *a.shape), a.dtype) if d else a
            for a, d in zip(body.in_avals, directions, strict=True)
        ]
        self.out_avals = [jax.ShapeDtypeStruct((count, *a.shape), a.dtype) for a in body.out_avals]

    def apply(self, *args: Any) -> list[Any]:
        axes = tuple(0 if d else None for d in self._directions)
        return list(jax.vmap(self.body.apply, axes, 0, axis_size=self._count)(*args))

    def write(self, program: Program, args: Sequence[np.ndarray]) -> list[np.ndarray]:
        # What depends on the point alone is there once, as equal instructions are.
        rows = [
            self.body.write(
                program, [x[i] if d else x for x, d in zip(args, self._directions, strict=True)]
            )
            for i in range(self._count)
        ]
        return [np.stack(row) for row in zip(*rows, strict=True)]

    def cache_key(self, of: Callable[[ClosedJaxpr], Any]) -> Any:
        return "wide", self.body.cache_key(of), self._directions, self._count


class Part(_Derived):
    """Some results of a body, which need some of its arguments only."""

    def __init__(self, body: LoopBody, keep: Sequence[bool], wanted: Sequence[bool]):
        self.body, self._keep, self._wanted = body, tuple(keep), tuple(wanted)
        self.in_avals = _those(body.in_avals, keep)
        self.out_avals = _those(body.out_avals, wanted)

    def part(self, keep: Sequence[bool], wanted: Sequence[bool]) -> Part:
        """Some results of this one."""
        kept, left = iter(keep), iter(wanted)
        return Part(
            self.body,
            [k and next(kept) for k in self._keep],
            [w and next(left) for w in self._wanted],
        )

    def reads(self, wanted: Sequence[bool]) -> list[bool]:
        """Which arguments some of the results need."""
        left = iter(wanted)
        # What passes states on needs them all.
        known = None if isinstance(self.body, Passing) else written(self.body)
        if known is None:
            return [True] * len(self.in_avals)
        return _those(known.reads([w and next(left) for w in self._wanted]), self._keep)

    def _all(self, args: Sequence[Any], zeros: Callable[[Any], Any]) -> list[Any]:
        """The arguments of the body, 0 where they do not matter."""
        given = iter(args)
        avals = zip(self.body.in_avals, self._keep, strict=True)
        return [next(given) if k else zeros(a) for a, k in avals]

    def apply(self, *args: Any) -> list[Any]:
        given = self._all(args, lambda a: jnp.zeros(a.shape, a.dtype))
        return _those(self.body.apply(*given), self._wanted)

    def write(self, program: Program, args: Sequence[np.ndarray]) -> list[np.ndarray]:
        given = self._all(args, lambda a: constants(program, np.zeros(a.shape, a.dtype)))
        known = None if program.differentiable else _written.get(self.body)
        # A loop inside is another one where what it carries is transposed.
        if known is None or known.repeats([program.is_linear(x) for x in flat(given)]):
            return _those(self.body.write(program, given), self._wanted)
        return known.copied(program, given, self._wanted)

    def cache_key(self, of: Callable[[ClosedJaxpr], Any]) -> Any:
        return "part", self.body.cache_key(of), self._keep, self._wanted


def whole(body: LoopBody) -> Part:
    """All of a body."""
    return Part(body, [True] * len(body.in_avals), [True] * len(body.out_avals))


def _those(items: Sequence[Any], which: Sequence[bool]) -> list[Any]:
    return [x for x, is_one in zip(items, which, strict=True) if is_one]


def differentiable(body: LoopBody) -> Differentiable | None:
    """The program of a body that tangents are taken on; None where it has none."""
    if body not in _differentiable:
        try:
            written = Differentiable(body.write, body.in_avals, body.out_avals)
        except Unsupported:
            written = None
        _differentiable[body] = written
    return _differentiable[body]


_differentiable: weakref.WeakKeyDictionary[Any, Differentiable | None] = weakref.WeakKeyDictionary()


class Written:
    """The program of a body, to be asked what its results read, and to be copied."""

    def __init__(self, body: LoopBody):
        program = Program(products=True, tables=True)
        self._given = arguments(program, body.in_avals)
        results = zip(body.write(program, self._given), body.out_avals, strict=True)
        self._results = [np.broadcast_to(x, a.shape) for x, a in results]
        self._program = program

    def repeats(self, which: Sequence[bool]) -> bool:
        """Whether there are loops inside, not written out, that need some of the arguments.

        which: one for each scalar of the arguments.
        """
        program, numbers = self._program, flat(self._given)
        some = {x for x, is_one in zip(numbers, which, strict=True) if is_one}
        entries = union(1 << k for k, x in enumerate(program.entries) if x in some)
        loops = (k for k, operation in enumerate(program.operations) if operation == "while")
        return any(program.needed(x) & entries for k in loops for x in program.operands[k])

    def reads(self, wanted: Sequence[bool]) -> list[bool]:
        """Which arguments some of the results need."""
        program = self._program
        numbers = flat(_those(self._results, wanted))
        used = set(program.used(list(map(program.base, numbers))))
        shown = union(map(program.needed, numbers))
        used.update(x for k, x in enumerate(program.entries) if shown >> k & 1)
        return [not used.isdisjoint(x.ravel().tolist()) for x in self._given]

    def copied(
        self, program: Program, args: Sequence[np.ndarray], wanted: Sequence[bool]
    ) -> list[np.ndarray]:
        """Those results as part of another program."""
        results = _those(self._results, wanted)
        return like(copied(self._program, flat(results), program, flat(args)), results)


_written: weakref.WeakKeyDictionary[Any, Written | None] = weakref.WeakKeyDictionary()


def written(body: LoopBody) -> Written | None:
    """The program of a body; None where it has none."""
    if body not in _written:
        try:
            _written[body] = Written(body)
        except Unsupported:
            _written[body] = None
    return _written[body]
