"""The instructions of a program, each distinct one once, and what was folded away from them."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

# Longer programs take minutes to compile. What no result needs counts: the loop back of a mechanism
# of 13 joints and 30 equations has 520,000 and takes 30 s; in parts it takes four times as long.
LONGEST = 600_000


class Unsupported(Exception):
    """The function cannot be written as a program; the message says why."""


class TooLong(Unsupported):
    """Its program would take minutes to compile."""


class While(NamedTuple):
    """What an instruction `while` repeats: two programs of the same arguments.

    Their first `fixed` arguments stay as they are, the others are carried. `condition` has one
    result, `body` those carried.
    """

    fixed: int
    condition: Instructions
    body: Instructions


class Transpose(NamedTuple):
    """What an instruction `solve` is: the types of its results, and what its transpose appends."""

    kinds: tuple[str, ...]
    append: Callable[..., list[int]]


def union(masks: Iterable[int]) -> int:
    """All bits that are set in any of them."""
    return functools.reduce(operator.or_, masks, 0)


class Instructions:
    """The instructions of a program, in order.

    Scalar k is `operations[k]` on the scalars `operands[k]`, of type `types[k]`, and is known at
    trace time where `known[k]` is not None. Operations are those of jax, and besides

    - `argument`, with its place `places[k]` among the arguments;
    - `constant`, with nothing;
    - `placeholder` and `solve`, which are there to be transposed;
    - `while`, whose `loops[k]` are a While, on the values of its arguments;
    - `product` of two matrices, row by row, whose sizes are `sizes[k]`: rows, summed, columns;
    - `fma`, `fms` and `fnma`, which are x y + z, x y - z and z - x y with one rounding;
    - `entry`, of a table at a number that is known at run time: that number, then the table;
    - `item`, on what has several results, with the place `places[k]` of one;
    - `region`, of a program that is there to be differentiated: an operation of jax, whose results
      are not written out, `regions[k]`;
    - `alias`, the same number as another scalar, from which other entries are lost.

    Entries are arguments and placeholders of floating point, and sets of them the bits of an
    integer: bit i stands for `entries[i]`. A scalar shows those in `shown[k]`: it is NaN where one
    of these is, as far as arithmetic goes.
    """

    def __init__(self) -> None:
        self.operations: list[str] = []
        self.operands: list[tuple[int, ...]] = []
        self.types: list[str] = []
        self.known: list[Any] = []
        self.shown: list[int] = []
        self.places: dict[int, int] = {}
        self.loops: dict[int, While] = {}
        self.regions: dict[int, Any] = {}
        # The operations of regions, by the equation of jax that they are written for.
        self.operations_of: dict[int, Any] = {}
        self.solves: dict[int, Transpose] = {}
        self.sizes: dict[int, tuple[int, int, int]] = {}
        self.arguments: list[int] = []
        self.entries: list[int] = []
        self.results: list[int] = []
        self._numbers: dict[Any, int] = {}
        self._lost: dict[int, int] = {}
        # What is the negative of what.
        self._negatives: dict[int, int] = {}
        # What is computed from placeholders, and their entries.
        self._linear: set[int] = set()
        self._placeholders = 0
        # Whether what is written now is computed strictly, and what was.
        self.strict = False
        self.strict_ones: set[int] = set()

    def append(self, operation: str, operands: tuple, kind: str, known: Any, shown: int) -> int:
        """A new instruction, whether there is an equal one or not."""
        number = len(self.operations)
        if number >= LONGEST:
            raise TooLong(f"more than {LONGEST} instructions")
        self.operations.append(operation)
        self.operands.append(operands)
        self.types.append(kind)
        self.known.append(known)
        self.shown.append(shown)
        if operation == "neg":
            self._negatives[number] = operands[0]
        if self.strict:
            self.strict_ones.add(number)
        if self._linear and not self._linear.isdisjoint(operands):
            self._linear.add(number)
        return number

    def argument(self, kind: str) -> int:
        """A new entry of the arguments."""
        shown = self._entry() if kind[0] == "f" else 0
        number = self.append("argument", (), kind, None, shown)
        self.places[number] = len(self.arguments)
        self.arguments.append(number)
        return number

    def placeholder(self, kind: str) -> int:
        """A scalar that no result is computed from, in which a part of the program is linear."""
        shown = self._entry()
        self._placeholders |= shown
        number = self.append("placeholder", (), kind, None, shown)
        self._linear.add(number)
        return number

    def _entry(self) -> int:
        """The bit of the next instruction as an entry."""
        self.entries.append(len(self.operations))
        return 1 << len(self.entries) - 1

    def is_linear(self, x: int) -> bool:
        """Whether a scalar is computed from placeholders, or shows them."""
        return x in self._linear or bool(self._placeholders and self.needed(x) & self._placeholders)

    def constant(self, x: Any, kind: str) -> int:
        """A number that is known at trace time, a Python number of this type."""
        if kind[0] == "f":
            # 0.0 and -0.0 are equal, but not the same.
            key = ("nan",) if x != x else (x, math.copysign(1.0, x) if x == 0 else 0)
        else:
            key = x
        number = self._numbers.get((kind, key))
        if number is None:
            number = self._numbers[kind, key] = self.append("constant", (), kind, x, 0)
        return number

    def value(self, operation: str, operands: tuple[int, ...], kind: str) -> int:
        """The result of an operation at run time."""
        lost, lost_of = 0, self._lost
        if lost_of and not lost_of.keys().isdisjoint(operands):
            if kind[0] == "f" and operation not in ("select", "entry"):
                for x in operands:
                    lost |= lost_of.get(x, 0)
            operands = tuple(map(self.base, operands))
        key = (operation, operands, kind)
        number = self._numbers.get(key)
        if number is not None:
            if self.strict:
                self.strict_ones.add(number)
            return self.losing(number, lost) if lost or number in lost_of else number
        shown = 0
        if kind[0] == "f":
            if operation == "select":
                shown = self.shown[operands[1]] & self.shown[operands[2]]
            elif operation == "entry":
                shown = functools.reduce(operator.and_, [self.shown[x] for x in operands[1:]])
            else:
                for x in operands:
                    shown |= self.shown[x]
        number = self._numbers[key] = self.append(operation, operands, kind, None, shown)
        if lost and lost & ~shown:
            lost_of[number] = lost & ~shown
        return number

    def item(self, of: int, place: int, kind: str, shown: int) -> int:
        """A result of an instruction that has several."""
        key = ("item", of, place)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = self.append("item", (of,), kind, None, shown)
            self.places[number] = place
        return number

    def solve(
        self,
        operands: Sequence[int],
        coefficients: Sequence[int],
        kinds: Sequence[str],
        transpose: Callable,
    ) -> list[int]:
        """Numbers of these types, linear in the operands, of which only the transpose is known.

        As the solution of a linear system. coefficients: what the transpose is computed from
        besides, as far as it may have lost entries. transpose appends the cotangents of the
        operands: from scalars to scalars.
        """
        lost = union(map(self.lost, (*operands, *coefficients)))
        shown = union(self.shown[x] for x in operands)
        plain = tuple(map(self.base, operands))
        number = self.append("solve", plain, "b1", None, 0)
        self.solves[number] = Transpose(tuple(kinds), transpose)
        items = [self.item(number, k, kind, shown) for k, kind in enumerate(kinds)]
        return [self.showing(x, lost) for x in items]

    def product(self, x: Sequence[int], y: Sequence[int], sizes: tuple[int, int, int]) -> list[int]:
        """The product of two matrices of those sizes, all of them row by row."""
        operands, (rows, summed, columns) = (*x, *y), sizes
        # An entry shows its row and its column, and no others.
        lines = [*(x[i * summed : (i + 1) * summed] for i in range(rows))]
        lines += [y[j::columns] for j in range(columns)]
        lost = [union(map(self.lost, line)) for line in lines]
        shown = [union(self.shown[k] for k in line) for line in lines]
        plain = tuple(map(self.base, operands))
        key = ("product", plain, sizes)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = self.append("product", plain, "b1", None, 0)
            self.sizes[number] = sizes
        kind = self.types[operands[0]]
        items = []
        for k, (i, j) in enumerate(itertools.product(range(rows), range(rows, rows + columns))):
            item = self.item(number, k, kind, shown[i] | shown[j])
            items.append(self.showing(item, lost[i] | lost[j]))
        return items

    def region(self, region: Any, operands: Sequence[int], kinds: Sequence[str]) -> list[int]:
        """The results of an operation of jax, which is left as it is."""
        shown = union(map(self.needed, operands))
        # Aliases stay operands, as they show what the number itself does not.
        number = self.append("region", tuple(operands), "b1", None, 0)
        self.regions[number] = region
        return [
            self.item(number, k, kind, shown if kind[0] == "f" else 0)
            for k, kind in enumerate(kinds)
        ]

    def repeat(self, loop: While, operands: Sequence[int]) -> list[int]:
        """The carried values at the end of a loop."""
        lost, shown = [self.lost(x) for x in operands], [self.shown[x] for x in operands]
        plain = tuple(self.base(x) for x in operands)
        key = ("while", plain, loop.condition.digest, loop.body.digest)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = self.append("while", plain, "b1", None, 0)
            self.loops[number] = loop
        masks = list(map(loop.body.needed, loop.body.results))
        lost, ends = self._lost_on_the_way(loop, masks, lost), []
        for k, (x, mask) in enumerate(zip(loop.body.results, masks, strict=True)):
            place = loop.fixed + k
            itself = shown[place] if mask & loop.body.bits.get(place, 0) else 0
            item = self.item(number, k, loop.body.types[x], itself)
            ends.append(self.showing(item, lost[place]))
        return ends

    def _lost_on_the_way(
        self, loop: While, masks: Sequence[int], lost: Sequence[int]
    ) -> Sequence[int]:
        """What arguments have lost, and carried ones after any number of iterations.

        masks: the entries of the body that each of its results shows or should show.
        """
        if not any(lost):
            return lost
        lost, changed = list(lost), True
        # Many results of a loop on matrices show the same entries.
        places = {mask: loop.body.places_of(mask) for mask in set(masks)}
        while changed:
            by_mask = {mask: union(lost[j] for j in at) for mask, at in places.items()}
            after = [x | by_mask[m] for x, m in zip(lost[loop.fixed :], masks, strict=True)]
            changed = after != lost[loop.fixed :]
            lost[loop.fixed :] = after
        return lost

    # What has been folded away

    def losing(self, x: int, lost: int) -> int:
        """The same number as x, from which just these entries are lost: folded away."""
        x = self.base(x)
        lost &= ~self.shown[x]
        if lost == self._lost.get(x, 0):
            return x
        key = ("alias", x, lost)
        alias = self._numbers.get(key)
        if alias is None:
            known, shown = self.known[x], self.shown[x]
            alias = self._numbers[key] = self.append("alias", (x,), self.types[x], known, shown)
            if x in self._negatives:
                self._negatives[alias] = self._negatives[x]
        self._lost[alias] = lost
        return alias

    def base(self, x: int) -> int:
        """The scalar that an alias stands for, any other itself."""
        return self.operands[x][0] if self.operations[x] == "alias" else x

    def lost(self, x: int) -> int:
        """The entries that have been folded away from a scalar."""
        return self._lost.get(x, 0)

    def needed(self, x: int) -> int:
        """The entries that a scalar shows or should show."""
        return self.shown[x] | self._lost.get(x, 0)

    @functools.cached_property
    def bits(self) -> dict[int, int]:
        """By the place of an argument, its bit; of a finished program."""
        return {self.places[x]: 1 << k for k, x in enumerate(self.entries) if x in self.places}

    def places_of(self, mask: int) -> list[int]:
        """The places of the arguments among these entries."""
        return [place for place, bit in self.bits.items() if mask & bit]

    def showing(self, x: int, entries: int) -> int:
        """The scalar, which should show these entries as well."""
        if self.types[x][0] != "f" or not entries & ~self.needed(x):
            return x
        return self.losing(x, entries | self.lost(x))

    def forget(self) -> dict[int, int]:
        """What is lost so far, by scalar; from now on nothing is."""
        lost = self._lost
        # An alias stays one: where it is an operand, what it stands for takes its place.
        self._lost = {x: 0 for x in lost if self.operations[x] == "alias"}
        return lost

    # What is used

    def used(self, results: Sequence[int] | None = None) -> list[int]:
        """What these results, or those of the program, are computed from, in order; no aliases."""
        used = bytearray(len(self.operations))
        for x in self.results if results is None else results:
            used[x] = 1
        operands = self.operands
        for k in range(len(used) - 1, -1, -1):
            if used[k]:
                for x in operands[k]:
                    used[x] = 1
        return list(itertools.compress(range(len(used)), used))

    @functools.cached_property
    def digest(self) -> int:
        """The same for two finished programs that are the same."""
        loops = [(k, x.fixed, x.condition.digest, x.body.digest) for k, x in self.loops.items()]
        instructions = self.operations, self.operands, self.types, map(repr, self.known)
        others = self.places.items(), self.sizes.items(), self.results, loops
        return hash(tuple(map(tuple, (*instructions, *others))))


_PAIRS = {"sin": "cos", "cos": "sin"}


def ordered(program: Instructions) -> list[int]:
    """The instructions that matter; the sine and cosine of a number stand together."""
    used = program.used()
    operations, operands = program.operations, program.operands
    turned = {(operations[k], operands[k]): k for k in used if operations[k] in _PAIRS}
    order: dict[int, None] = {}
    for k in used:
        order[k] = None
        pair = turned.get((_PAIRS.get(operations[k], ""), operands[k]))
        if pair is not None:
            order[pair] = None
    return list(order)


def is_pair(program: Instructions, k: int, other: int) -> bool:
    """Whether two instructions are the sine and cosine of the same number."""
    operations, operands = program.operations, program.operands
    return _PAIRS.get(operations[k]) == operations[other] and operands[k] == operands[other]


def greatest(
    program: Instructions, order: Sequence[int], of_arguments: Sequence[int], least: int
) -> dict[int, int]:
    """For each instruction, the greatest number of the arguments that it is computed from."""
    numbers: dict[int, int] = {}
    for k in order:
        if program.operations[k] == "argument":
            numbers[k] = of_arguments[program.places[k]]
        elif program.operations[k] == "placeholder":
            raise Unsupported("what should be linear is not")
        else:
            numbers[k] = max([numbers[x] for x in program.operands[k]], default=least)
    return numbers
