"""The bodies of loops: traced functions, and transposes of such."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from .private import ClosedJaxpr, eval_jaxpr
from .program import Program, Unsupported
from .program.transposition import transposed
from .rules import elementwise, flat, kind_of, like, write_closed


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

    def cache_key(self, of: Callable[[ClosedJaxpr], Any]) -> Any:
        return "traced", of(self._closed)


class Transposed:
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

    def closed(self) -> ClosedJaxpr:
        return jax.make_jaxpr(self.apply)(*self.in_avals)

    def cache_key(self, of: Callable[[ClosedJaxpr], Any]) -> Any:
        return "transposed", self.body.cache_key(of), self._linear, self._sizes
