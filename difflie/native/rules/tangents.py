"""Tangents of a program, in one sweep over its instructions.

A program that is there to be differentiated (`Program(differentiable=True)`) is read from its first
instruction to its last. Each is appended to another program, whose folding it goes through, and
after it its tangent, from those of its operands: of a product xy the sum of dx y and x dy. Of a
region, an operation of jax that is no arithmetic, jax is asked for the tangents.

    tangents   of what does not vary there are none; they are linear in those of the arguments,
               so that `transposition` finds the cotangents from them
    NaN masks  what shows an entry of the arguments has a tangent that shows the entry and its own
               tangent (see `program.nan_masks`)
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..program import BINARY, COMPARE, UNARY, Instructions, Program, Unsupported, While, finished
from ..program.instructions import union
from .reductions import product_of
from .writing import Array, arguments, flat, kind_of, like, write_closed, written_or_region

_Tangent = int | None
# Others are regions where they vary.
_WITH_TANGENTS = frozenset(
    "add alias argument constant convert cos div entry item mul neg region select sin sub".split()
)


class Differentiable:
    """A function as a program that is there to be differentiated.

    write: appends the function to a program, from arrays of scalars' numbers.
    """

    def __init__(self, write: Any, in_avals: Sequence[Any], out_avals: Sequence[Any]):
        self._in_avals, self._out_avals = in_avals, out_avals
        program = Program(tables=True, differentiable=True)
        results = write(program, arguments(program, in_avals))
        program.results = flat(results)
        self._program = program
        self._used = program.used()
        self._moving = self._reaching()
        for k in self._used:
            operation = program.operations[k]
            if operation in ("while", "placeholder", "solve", "product"):
                raise Unsupported(f"the derivative through the operation {operation}")
            if self._moving[k] and operation not in _WITH_TANGENTS:
                raise Unsupported(f"the tangent of the operation {operation}")

    def _reaching(self) -> bytearray:
        """Whose tangents may be part of those of the results."""
        program = self._program
        moving = bytearray(len(program.operations))
        for x in program.results:
            moving[x] = moving[program.base(x)] = program.types[x][0] == "f"
        for k in reversed(self._used):
            if moving[k]:
                for x in program.operands[k]:
                    if program.types[x][0] == "f" or program.operations[x] == "region":
                        moving[x] = moving[program.base(x)] = 1
        return moving

    def write(
        self, program: Program, args: Sequence[Array], tangents: Sequence[Array | None]
    ) -> tuple[list[Array], list[Array]]:
        """Appends the function and its tangents; no tangents of an argument that does not vary."""
        sweep = _Sweep(self._program, program, self._moving)
        given: list[_Tangent] = []
        for x, dx in zip(args, tangents, strict=True):
            given += [None] * x.size if dx is None else dx.ravel().tolist()
        outside = program.strict
        sweep.start(flat(args), given)
        for k in self._used:
            # A tangent is as strict as what it is the tangent of.
            program.strict = k in self._program.strict_ones
            sweep.step(k)
        program.strict = False
        results = [sweep.shown(k) for k in self._program.results]
        program.strict = outside
        values = like([x for x, _ in results], self._out_avals)
        zeros = (program.zero(program.types[x]) for x, _ in results)
        moves = [z if dx is None else dx for (_, dx), z in zip(results, zeros, strict=True)]
        return values, like(moves, self._out_avals)

    def varied(self, args: Sequence[bool]) -> list[bool]:
        """Which results change, perhaps, with arguments that vary."""
        program = self._program
        entries = [v for v, a in zip(args, self._in_avals, strict=True) for _ in range(a.size)]
        moving = bytearray(len(program.operations))
        for k in self._used:
            operation, operands = program.operations[k], program.operands[k]
            if operation == "argument":
                moving[k] = entries[program.places[k]]
            elif operation == "region":
                stops = program.regions[k].equation.primitive.name == "stop_gradient"
                moving[k] = not stops and any(moving[program.base(x)] for x in operands)
            elif program.types[k][0] == "f":
                moving[k] = any(moving[x] for x in operands)
        ends = [moving[program.base(x)] for x in program.results]
        return [bool(x.any()) for x in like(ends, self._out_avals)]


def copied(
    source: Instructions, results: Sequence[int], target: Program, args: Sequence[int]
) -> list[int]:
    """Appends what results are computed from to another program."""
    used = source.used([source.base(x) for x in results])
    sweep = _Sweep(source, target, bytearray(len(source.operations)))
    outside, target.strict = target.strict, False
    sweep.start(args, [None] * len(args))
    for k in used:
        target.strict = k in source.strict_ones
        sweep.step(k)
    target.strict = outside
    return [sweep.shown(x)[0] for x in results]


def _suited(loop: While, target: Program) -> While:
    """A loop whose instructions are those that the program may have."""
    missing = [
        op for op, has in (("product", target.products), ("entry", target.tables)) if not has
    ]

    def lacks(program: Instructions) -> bool:
        inside = (x for loop in program.loops.values() for x in (loop.condition, loop.body))
        return any(op in program.operations for op in missing) or any(map(lacks, inside))

    def again(program: Instructions) -> Instructions:
        new = Program(target.products, target.tables, most_written=target.most_written)
        args = [new.argument(program.types[x]) for x in program.arguments]
        return finished(new, copied(program, program.results, new, args))

    if not (missing and (lacks(loop.condition) or lacks(loop.body))):
        return loop
    return loop._replace(condition=again(loop.condition), body=again(loop.body))


class _Sweep:
    """The values and tangents in another program of what has been read of one."""

    def __init__(self, source: Instructions, target: Program, moving: bytearray):
        self.source, self.target, self._moving = source, target, moving
        self.values: dict[int, int] = {}
        self.tangents: dict[int, int] = {}
        self._entries: dict[int, tuple[int, int]] = {}

    def start(self, values: Sequence[int], tangents: Sequence[_Tangent]) -> None:
        """What the arguments are."""
        for k, x, dx in zip(self.source.arguments, values, tangents, strict=True):
            self.values[k] = x
            if dx is not None and self.source.types[k][0] == "f":
                self.tangents[k] = dx

    def step(self, k: int) -> None:
        """Appends an instruction and its tangent."""
        source, target = self.source, self.target
        operation, operands, kind = source.operations[k], source.operands[k], source.types[k]
        moving = self._moving[k]
        if operation == "argument" or k in self.values:
            return
        if operation == "constant":
            self.values[k] = target.constant(source.known[k], kind)
        elif operation == "region":
            self._region(k)
        elif operation == "alias":
            x, dx = self.shown(k)
            self._set(k, x, dx)
        elif operation == "select":
            which, yes, no = operands
            truth = self.values[which]
            self.values[k] = target.select(truth, self.values[no], self.values[yes], kind)
            moves = [self.tangents.get(x) for x in (no, yes)]
            if moves != [None, None] and moving:
                zero = target.zero(kind)
                no_move, move = (zero if dx is None else dx for dx in moves)
                self.tangents[k] = target.select(truth, no_move, move, kind)
        elif operation == "entry":
            which, *table = operands
            number = self.values[which]
            self.values[k] = target.entry(number, [self.values[x] for x in table], kind)
            moves = [self.tangents.get(x) for x in table]
            if moving and any(dx is not None for dx in moves):
                zero = target.zero(kind)
                given = [zero if dx is None else dx for dx in moves]
                self.tangents[k] = target.entry(number, given, kind)
        elif operation == "convert":
            self.values[k] = target.convert(self.values[operands[0]], kind)
            dx = self.tangents.get(operands[0])
            if dx is not None and moving:
                self.tangents[k] = target.convert(dx, kind)
        elif operation == "while":
            loop = _suited(source.loops[k], target)
            ends = target.repeat(loop, [self.values[x] for x in operands])
            self._items(k, ends)
        elif operation == "product":
            (m, summed, n), of = source.sizes[k], source.types[operands[0]]
            xs = np.array([self.values[x] for x in operands], np.int64)
            left, right = xs[: m * summed].reshape((m, summed)), xs[m * summed :]
            columns = right.reshape((summed, n)).T.tolist()
            self._items(k, product_of(target, left.tolist(), columns, of))
        elif operation in COMPARE:
            self.values[k] = target.compare(operation, *(self.values[x] for x in operands))
        elif operation in BINARY:
            x, y = (self.values[x] for x in operands)
            self._set(k, target.binary(operation, x, y, kind), None)
            if moving:
                self._set(k, self.values[k], self._of_two(operation, operands, k, kind))
        elif operation in UNARY:
            (x,) = operands
            self.values[k] = target.unary(operation, self.values[x], kind)
            if moving and x in self.tangents:
                self._set(k, self.values[k], self._of_one(operation, x, kind))
        else:
            raise Unsupported(f"the tangent of the operation {operation}")

    def _set(self, k: int, x: int, dx: _Tangent) -> None:
        self.values[k] = x
        if dx is not None:
            self.tangents[k] = dx

    def _of_two(self, operation: str, operands: tuple[int, ...], k: int, kind: str) -> _Tangent:
        """The tangent of a sum, a product and the like."""
        target = self.target
        x, y = (self.values[i] for i in operands)
        dx, dy = (self.tangents.get(i) for i in operands)
        if dx is None and dy is None:
            return None
        if operation in ("add", "sub"):
            if dx is None:
                assert dy is not None
                return dy if operation == "add" else target.unary("neg", dy, kind)
            return dx if dy is None else target.binary(operation, dx, dy, kind)
        if operation == "mul":
            parts = [target.mul(d, other, kind) for d, other in ((dx, y), (dy, x)) if d is not None]
            return functools.reduce(lambda a, b: target.add(a, b, kind), parts)
        if operation == "div":
            if dy is not None:
                by = target.mul(dy, self.values[k], kind)
                dx = target.unary("neg", by, kind) if dx is None else target.sub(dx, by, kind)
            assert dx is not None
            return target.div(dx, y, kind)
        raise AssertionError(operation)

    def _of_one(self, operation: str, x: int, kind: str) -> _Tangent:
        """The tangent of a function of one variable that varies."""
        target, value, dx = self.target, self.values[x], self.tangents[x]
        if operation == "neg":
            return target.unary("neg", dx, kind)
        if operation == "sin":
            return target.mul(dx, target.unary("cos", value, kind), kind)
        if operation == "cos":
            sine = target.unary("sin", value, kind)
            return target.unary("neg", target.mul(dx, sine, kind), kind)
        raise AssertionError(operation)

    def _region(self, k: int) -> None:
        """The results of an operation of jax, and their tangents as jax has them."""
        source, target = self.source, self.target
        operation, operands = source.regions[k], source.operands[k]
        equation = operation.equation
        shown = [self.shown(x) for x in operands]
        avals = [v.aval for v in equation.invars]
        xs = like([x for x, _ in shown], avals)
        kept = iter(like([x if dx is None else dx for x, dx in shown], avals))
        stops = equation.primitive.name == "stop_gradient"
        flags = [dx is not None and not stops for _, dx in shown]
        varied = tuple(bool(f.any()) for f in like(flags, avals))
        which = operation.has_tangent
        if not any(varied) or not self._moving[k]:
            values, moves = written_or_region(target, operation, xs), []
            which = [False] * len(which)
        else:
            moving = []
            for v, d, f in zip(avals, kept, like(flags, avals), strict=True):
                if f.any():
                    moving.append(np.where(f, d, target.zero(kind_of(v.dtype))))
            made = write_closed(target, operation.derivative(varied), [*xs, *moving])
            values, moves = made[: len(which)], made[len(which) :]
            if target.differentiable:
                values = written_or_region(target, operation, xs)
        shaped = zip(values, equation.outvars, strict=True)
        items = self._items(k, flat([np.broadcast_to(x, v.aval.shape) for x, v in shaped]))
        moves, at = iter(moves), 0
        for v, has in zip(equation.outvars, which, strict=True):
            if has:
                dx = np.broadcast_to(next(moves), v.aval.shape).ravel().tolist()
                for i, d in enumerate(dx):
                    self.tangents[items[at + i]] = d
            at += v.aval.size

    def _items(self, k: int, values: Sequence[int]) -> dict[int, int]:
        """Gives what has several results their values; their numbers, by place."""
        source, items = self.source, {}
        for j in range(k + 1, len(source.operations)):
            if len(items) == len(values):
                break
            if source.operations[j] == "item" and source.operands[j] == (k,):
                items[source.places[j]] = j
                self.values[j] = values[source.places[j]]
        self.values[k] = -1
        return items

    def shown(self, x: int) -> tuple[int, _Tangent]:
        """A scalar and its tangent, which show what it has lost."""
        source, target = self.source, self.target
        base, lost = source.base(x), source.lost(x)
        value, dx = self.values[base], self.tangents.get(base)
        if lost:
            entries, moves = self._translated(lost)
            value = target.showing(value, entries)
            if moves:
                dx = target.zero(source.types[x]) if dx is None else dx
                dx = target.showing(dx, entries | moves)
        return value, dx

    def _translated(self, mask: int) -> tuple[int, int]:
        """The entries of the other program that entries show, and those of their tangents."""
        found = self._entries.get(mask)
        if found is None:
            target, places, rest = self.target, [], mask
            while rest:
                lowest = rest & -rest
                places.append(self.source.entries[lowest.bit_length() - 1])
                rest ^= lowest
            # What comes before the scalar that shows it has its value by now, or none ever.
            values = [self.values[e] for e in places if e in self.values]
            moves = [self.tangents[e] for e in places if e in self.tangents]
            found = union(map(target.needed, values)), union(map(target.needed, moves))
            self._entries[mask] = found
        return found
