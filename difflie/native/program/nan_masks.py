"""NaN masks: the end of a program, whose results are NaN where what was folded away from them is.

A derivative has hundreds of entries from which the same has been folded away, and would spend an
eighth of its time on them. So what has been folded away from many is tested first, and a few
arguments that nothing else is computed from are masked with NaN; with them become NaN all results
that show one of these.

The invariant, of `folding` and of this file. Of each scalar x of a program there are two sets of
entries of the arguments, `shown` and `lost`, without one in both:

    0 a + b  ->  b        needed(x) = shown(x) | lost(x) = needed(a) | needed(b)
                          shown(x) = shown(b),  lost(x) = lost(b) | all that a needs and b not shows

- needed(x) is what the operations as written depend on: x is NaN where one of these is.
  Folding never makes it smaller.
- shown(x) is what x is computed from: there arithmetic itself propagates NaN.
- lost(x) has been folded away. Nothing is tested for it while a program is written; `finished`
  masks each result, NaN where one of lost(x) is NaN, after which none has lost any.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections import Counter
from collections.abc import Sequence

import numpy as np

from .folding import Program
from .instructions import union


def finished(program: Program, results: Sequence[int]) -> Program:
    """The program of these results, with what has to be tested for them."""
    often = _lost_often(program, results)
    if often:
        program, results = _with_masked_arguments(program, often, results)
    tests: dict[int, int] = {}
    for mask in sorted({program.lost(x) for x in results} - {0}, key=int.bit_count):
        tests[mask] = _any_nan(program, mask, tests)
    program.results = [
        _masked(program, tests[lost], program.base(x)) if lost else program.base(x)
        for x, lost in zip(results, map(program.lost, results), strict=True)
    ]
    return program


def _masked(program: Program, is_nan: int, x: int) -> int:
    """x, NaN where `is_nan`."""
    kind = program.types[x]
    return program.value("select", (is_nan, program.constant(math.nan, kind), x), kind)


def _lost_often(program: Program, results: Sequence[int]) -> int:
    """The entries to be tested before all else, of sets that are lost from many results.

    To test an entry takes two operations, which are not spared where no result shows it; every
    result from which something else is lost takes one.
    """
    lost = Counter(program.lost(x) for x in results)
    del lost[0]
    visible = union(program.shown[x] for x in results)
    masks = sorted(lost, key=lambda mask: (mask & visible).bit_count() / lost[mask])
    chosen = itertools.accumulate(masks, operator.or_, initial=0)
    counts = (lost[mask] for mask in masks)
    left = itertools.accumulate(counts, operator.sub, initial=lost.total())
    cost = {m: 2 * (m & visible).bit_count() + n for m, n in zip(chosen, left, strict=True)}
    return min(cost, key=cost.__getitem__)


def _with_masked_arguments(
    program: Program, entries: int, results: Sequence[int]
) -> tuple[Program, Sequence[int]]:
    """A program of masked arguments, which are NaN where one of the entries is."""
    masked = _arguments_to_mask(program, entries, results)
    if not masked:
        return program, results
    new = Program()
    moved = {x: new.argument(program.types[x]) for x in program.arguments}
    is_nan = _any_nan(new, entries, {})
    for k in masked:
        entry = program.entries[k]
        moved[entry] = _masked(new, is_nan, moved[entry])
        new.shown[moved[entry]] = entries | 1 << k
    some = union(1 << k for k in masked)
    for k in program.used([program.base(x) for x in results]):
        if program.operations[k] == "argument":
            continue
        shown = program.shown[k]
        number = moved[k] = new.append(
            program.operations[k],
            tuple([moved[x] for x in program.operands[k]]),
            program.types[k],
            program.known[k],
            shown | entries if shown & some else shown,
        )
        if k in program.places:
            new.places[number] = program.places[k]
        if k in program.loops:
            new.loops[number] = program.loops[k]
        if k in program.sizes:
            new.sizes[number] = program.sizes[k]
    return new, [new.losing(moved[program.base(x)], program.lost(x)) for x in results]


def _arguments_to_mask(program: Program, entries: int, results: Sequence[int]) -> list[int]:
    """Few entries, one of which each result that lost `entries` shows.

    Where it shows any from which no result is computed that need not show all of `entries`.
    """
    apart = _read(program, [x for x in results if entries & ~program.needed(x)])
    masks = [program.shown[x] & ~apart for x in results if program.lost(x) & entries]
    size = len(program.entries) // 8 + 1
    text = b"".join(m.to_bytes(size, "little") for m in masks if m)
    packed = np.frombuffer(text, np.uint8).reshape(-1, size)
    shows = np.unpackbits(packed, axis=1, bitorder="little").astype(bool)
    counts, chosen = shows.sum(axis=0), []
    while len(shows):
        best = int(np.argmax(counts))
        chosen.append(best)
        covered = shows[:, best]
        counts -= shows[covered].sum(axis=0)
        shows = shows[~covered]
    return chosen


def _read(program: Program, results: Sequence[int]) -> int:
    """The entries that results are computed from, shown by them or not."""
    read = {x: 1 << k for k, x in enumerate(program.entries)}
    results = list(map(program.base, results))
    for k in program.used(results):
        if k not in read:
            read[k] = union(read[x] for x in program.operands[k])
    return union(read.get(x, 0) for x in results)


def _any_nan(program: Program, entries: int, parts: dict[int, int]) -> int:
    """Whether one of these entries is NaN; `parts` has this of sets of entries."""
    tests = []
    for mask in sorted(parts, key=int.bit_count, reverse=True):
        if mask & entries == mask:
            tests.append(parts[mask])
            entries &= ~mask
    rest = [x for k, x in enumerate(program.entries) if entries >> k & 1]
    tests += [program.value("ne", (x, x), "b1") for x in rest]
    # In pairs: a row of operations as long as the entries are many would be deep.
    while len(tests) > 1:
        rest = tests[len(tests) // 2 * 2 :]
        pairs = zip(tests[::2], tests[1::2], strict=False)
        tests = [program.value("or", (x, y), "b1") for x, y in pairs] + rest
    return tests[0]
