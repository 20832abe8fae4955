"""How a loop becomes a call of machine code for CPUs: a whole loop as LLVM IR.

`@block(ptr %buffers, i64 %b)` runs all iterations for one trajectory, or for as many environments
of a batch as there are lanes, which may be one. The first buffer holds three numbers: iterations,
environments, and blocks; so that the same code serves any number of these. The last lanes of the
last block repeat the last environment, so that a row of a batch is the same in batches of every
size.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..attempts import warn_once, warn_slower, with_fallback
from ..fingerprint import fingerprint
from ..loop import Loop
from ..loop_body import Traced
from ..private import Context, Value
from ..program import TooLong, fused
from ..rules import kind_of, work
from . import ffi, object_code
from .functions import carrying, printed
from .module import Module, Place, joined
from .object_code import processor as processor
from .types import bytes_of

# With so many iterations in a call, better code saves as much time as it takes to compile.
_LONG = 50_000
# Frames up to this size are on the stack.
_STACK = 1 << 16


class _Stored(NamedTuple):
    """An array of a loop: its buffer, and the places of its entries in the frame.

    batched: whether it differs between environments. every: after how many iterations it has a row.
    """

    buffer: int
    kind: str
    places: list[Place]
    batched: bool
    every: int = 1

    @property
    def size(self) -> int:
        return len(self.places)

    @property
    def bytes(self) -> int:
        """The size of the array in its buffer."""
        return self.size * bytes_of(self.kind)


def text_of(loop: Loop, batched_args: Sequence[bool], lanes: int) -> str:
    """The text of `@block` and all it calls; buffers of empty arrays are left out.

    batched_args: which arguments differ between the environments of a batch; empty without one.
    """
    program = loop.program(products=lanes == 1, tables=True)
    module = Module(lanes, object_code.fuses())
    if module.fuses:
        program = fused(program, loop.fixed)
    avals, outs = loop.body.in_avals, loop.body.out_avals
    n, m = loop.consts, loop.consts + loop.carry
    kinds = [kind_of(a.dtype) for a in (*avals, *outs)]
    buffers = list(itertools.accumulate((a.size > 0 for a in (*avals, *outs)), initial=1))
    batched = len(batched_args) > 0
    inputs = []
    for i, (aval, every) in enumerate(zip(avals, (*[1] * m, *loop.rows), strict=True)):
        is_batched = batched and batched_args[i]
        each = lanes if is_batched or n <= i < m else 1
        places = module.frame.array(kinds[i], aval.size, each)
        inputs.append(_Stored(buffers[i], kinds[i], places, is_batched, every))
    first = [place for x in inputs for place in x.places]
    code = printed(module, program, first, loop.fixed)
    results = iter(code.results)

    def moved(targets: Sequence[_Stored]) -> str:
        places = [place for x in targets for place in x.places]
        kinds = [x.kind for x in targets for _ in x.places]
        return carrying(module, list(itertools.islice(results, len(places))), places, kinds)

    carry = moved(inputs[n:m])
    ends = [
        x._replace(buffer=b, batched=batched)
        for x, b in zip(inputs[n:m], buffers[len(avals) :], strict=False)
    ]
    saved = []
    for i, every in enumerate(loop.saved, len(avals) + loop.carry):
        places = module.frame.array(kinds[i], outs[i - len(avals)].size, lanes)
        saved.append(_Stored(buffers[i], kinds[i], places, batched, every))
    moves = [moved([x]) for x in saved]
    block = _Block(module, loop.reverse)
    for x in inputs[:m]:
        block.move(x, out=False)
    block.lines += code.once
    block.begin()
    for x in inputs[m:]:
        block.row(x)
    block.lines += code.again
    for x, move in zip(saved, moves, strict=True):
        block.row(x, move)
    block.lines.append(carry)
    block.end()
    for x in ends:
        block.move(x, out=True)
    movers = [_mover(size, out) for size, out in sorted(block.movers)]
    return "\n".join([_INTRINSICS, *movers, module.text(), block.text(), _ATTRIBUTES])


class _Block:
    """The lines of `@block`."""

    def __init__(self, module: Module, reverse: bool) -> None:
        self.module, self.reverse = module, reverse
        self.lines: list[str] = []
        # Which functions that move entries are called: of what size, and whether to a buffer.
        self.movers: set[tuple[int, bool]] = set()
        self._buffers: dict[int, list[str]] = {}
        self._once: list[str] = []
        self._count = 0

    def _op(self, text: str) -> str:
        self._count += 1
        name = f"%x{self._count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def _buffer(self, x: _Stored) -> str:
        name = f"%buffer{x.buffer}"
        at = f"  {name}.at = getelementptr ptr, ptr %buffers, i64 {x.buffer}"
        self._buffers.setdefault(x.buffer, [at, f"  {name} = load ptr, ptr {name}.at"])
        return name

    def _in_frame(self, x: _Stored) -> str:
        return self._op(f"getelementptr i8, ptr %m, i64 {x.places[0].offset}")

    def _between(self, x: _Stored, source: str, stride: str, out: bool) -> None:
        """Moves an array between the frame and its buffer, whose environments are stride apart."""
        at, lanes = self._in_frame(x), x.places[0].lanes
        if lanes == 1:
            if x.batched:
                entry = self._op(f"mul i64 %env, {stride}")
                place = self._op(f"mul i64 {entry}, {bytes_of(x.kind)}")
                source = self._op(f"getelementptr i8, ptr {source}, i64 {place}")
            target, origin = (source, at) if out else (at, source)
            self.lines.append(
                f"  call void @llvm.memcpy.p0.p0.i64("
                f"ptr {target}, ptr {origin}, i64 {x.bytes}, i1 0)"
            )
            return
        mover = bytes_of(x.kind), out
        self.movers.add(mover)
        self.lines.append(
            f"  call void {_mover_name(*mover)}(ptr {at}, ptr {source}, i64 {x.size}, "
            f"i64 {stride if x.batched else 0}, i64 %env, i64 %last, i64 {lanes})"
        )

    def move(self, x: _Stored, out: bool) -> None:
        """Moves an array without rows to the frame, or out of it."""
        if x.size:
            self._between(x, self._buffer(x), str(x.size), out)

    def row(self, x: _Stored, move: str | None = None) -> None:
        """Reads the row of the iteration %k, zeros where it has none; with `move`, writes it."""
        if not x.size:
            return
        name = ""
        if x.every != 1:
            rest = self._op(f"urem i64 %k, {x.every}")
            now = self._op(f"icmp eq i64 {rest}, {x.every - 1}")
            name = now[1:]
            self.lines += [f"  br i1 {now}, label %{name}.then, label %{name}.else"]
            self.lines += [f"{name}.then:"]
        out = move is not None
        self.lines += [move] if out else []
        row, count = ("%k", "%iterations")
        if x.every != 1:
            row, count = (self._op(f"udiv i64 {y}, {x.every}") for y in (row, count))
        place = self._op(f"mul i64 {row}, {x.bytes}")
        source = self._op(f"getelementptr i8, ptr {self._buffer(x)}, i64 {place}")
        self._between(x, source, self._op(f"mul i64 {count}, {x.size}"), out)
        if x.every != 1:
            self.lines += [f"  br label %{name}.after", f"{name}.else:"]
            if not out:
                at, size = self._in_frame(x), x.bytes * x.places[0].lanes
                self.lines += [f"  call void @llvm.memset.p0.i64(ptr {at}, i8 0, i64 {size}, i1 0)"]
            self.lines += [f"  br label %{name}.after", f"{name}.after:"]

    def begin(self) -> None:
        """The head of the loop; %k is the number of an iteration in its order forwards.

        What is done once ends in a block of its own, where the loop starts.
        """
        self._once, self.lines = self.lines, []
        backwards = "  %left = sub i64 %iterations, %i\n  %k = sub i64 %left, 1"
        self.lines += [
            "  br label %top",
            "top:",
            "  br label %head",
            "head:",
            "  %i = phi i64 [0, %top], [%i.next, %tail]",
            "  %more = icmp ult i64 %i, %iterations",
            "  br i1 %more, label %body, label %done",
            "body:",
            backwards if self.reverse else "  %k = add i64 %i, 0",
        ]

    def end(self) -> None:
        """The end of an iteration."""
        self.lines += ["  br label %tail", "tail:", "  %i.next = add i64 %i, 1"]
        self.lines += ["  br label %head", "done:"]

    def text(self) -> str:
        """The function."""
        size = max(64, self.module.frame.size)
        large = size > _STACK
        heap = f"""  %all = call ptr @malloc(i64 {size + 64})
  %number = ptrtoint ptr %all to i64
  %up = add i64 %number, 63
  %even = and i64 %up, -64
  %m = inttoptr i64 %even to ptr"""
        lines = [
            "declare ptr @malloc(i64)\ndeclare void @free(ptr)" if large else "",
            "define internal void @block(ptr %buffers, i64 %b) #0 {",
            "  %numbers = load ptr, ptr %buffers",
            "  %iterations = load i64, ptr %numbers",
            "  %count.at = getelementptr i64, ptr %numbers, i64 1",
            "  %count = load i64, ptr %count.at",
            "  %last = sub i64 %count, 1",
            f"  %env = mul i64 %b, {self.module.lanes}",
            heap if large else f"  %m = alloca [{size} x i8], align 64",
            *itertools.chain(*self._buffers.values()),
            *self._once,
            *self.lines,
            *(["  call void @free(ptr %all)"] if large else []),
            "  ret void",
            "}",
        ]
        return "\n".join(lines)


_ATTRIBUTES = 'attributes #0 = { noinline nounwind "prefer-vector-width"="512" }\n'


def _mover_name(size: int, out: bool) -> str:
    return f"@{'out' if out else 'in'}{size}"


def _mover(size: int, out: bool) -> str:
    """Moves n entries of each lane's environment between rows of lanes and the buffer."""
    kind = f"i{8 * size}"
    load, store = ("%lane", "%entry") if out else ("%entry", "%lane")
    # No lane beyond the last environment is written; it is read in its place.
    inside = "%env.l = add i64 %env, %l\n  %beyond = icmp ugt i64 %env.l, %last"
    if out:
        step = "  br i1 %beyond, label %next, label %move\nmove:"
        of = "%env.l"
    else:
        step = "  %near = select i1 %beyond, i64 %last, i64 %env.l\n  br label %move\nmove:"
        of = "%near"
    return f"""
define internal void {_mover_name(size, out)}(
    ptr %m, ptr %rows, i64 %n, i64 %stride, i64 %env, i64 %last, i64 %lanes
) noinline nounwind {{
  br label %outer
outer:
  %l = phi i64 [0, %0], [%l.next, %next]
  {inside}
{step}
  %first = mul i64 {of}, %stride
  br label %inner
inner:
  %e = phi i64 [0, %move], [%e.next, %inner]
  %place = mul i64 %e, %lanes
  %in.lane = add i64 %place, %l
  %lane = getelementptr {kind}, ptr %m, i64 %in.lane
  %in.row = add i64 %first, %e
  %entry = getelementptr {kind}, ptr %rows, i64 %in.row
  %x = load {kind}, ptr {load}
  store {kind} %x, ptr {store}
  %e.next = add i64 %e, 1
  %more = icmp ult i64 %e.next, %n
  br i1 %more, label %inner, label %next
next:
  %l.next = add i64 %l, 1
  %again = icmp ult i64 %l.next, %lanes
  br i1 %again, label %outer, label %end
end:
  ret void
}}"""


_INTRINSICS = """declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"""


def compiled(
    context: Context,
    args: Sequence[Value],
    loop: Loop,
    batch: int | None,
    batched_args: tuple[bool, ...],
) -> list[Any] | None:
    """The results of a native call in a program that is being lowered; None if there is none."""
    if loop.length == 0 or batch == 0:
        return None
    lanes = 1 if batch is None else lanes_of(loop)
    blocks = 1 if batch is None else -(-batch // lanes)
    flags = batched_args if batch is not None else ()
    name = _handler(loop, flags, lanes, batch is not None, loop.length * blocks < _LONG)
    if name is None:
        return None
    numbers = np.array([loop.length, batch or 1, blocks], np.int64)
    return ffi.called(context, name, numbers, args, list(context.avals_out))


def lanes_of(loop: Loop) -> int:
    """Environments in one vector: as many numbers as the longest vector has.

    Where products of matrices prevail, which use vectors themselves, each goes by itself: lanes
    would have to be gathered entry by entry.
    """
    if isinstance(loop.body, Traced):
        products, others = work(loop.body.closed().jaxpr)
        if products > others:
            return 1
    kinds = {a.dtype for a in (*loop.body.in_avals, *loop.body.out_avals)}
    return 8 if np.dtype(np.float64) in kinds else 16


def _registered(
    loop: Loop, batched_args: tuple[bool, ...], lanes: int, shared: bool, soon: bool
) -> str:
    """The name of a new handler; `soon` as in `object_code`."""
    try:
        digest = fingerprint(loop, batched_args, lanes, shared)
        write = functools.partial(_text, loop, batched_args, lanes, shared)
        if digest is None:
            text = write()
            digest, write = hashlib.sha256(text.encode()).hexdigest(), lambda: text
        address = object_code.handler(digest, write, soon)
    except TooLong as problem:
        warn_once(
            f"a program has {problem} and is run in parts: results are the same, only slower, and "
            "nothing needs to be done"
        )
        raise
    return _named(digest, address)


def _named(digest: str, address: int) -> str:
    name = f"difflie_{digest[:24]}"
    _digests[name] = digest
    return ffi.target(name, address)


# Of the handlers of this process, by name.
_digests: dict[str, str] = {}


def digest_of(name: str) -> str | None:
    """By which another process finds the code of a handler; None for one of others."""
    return _digests.get(name)


def registered(digest: str) -> str:
    """The name of a handler whose code is on disk; raises Missing if it is not."""
    return _named(digest, object_code.known_handler(digest))


_handler = with_fallback(_registered, warn_slower)


def _text(loop: Loop, batched_args: tuple[bool, ...], lanes: int, shared: bool) -> str:
    n_in = 1 + sum(a.size > 0 for a in loop.body.in_avals)
    n_out = sum(a.size > 0 for a in loop.body.out_avals)
    return joined(
        text_of(loop, batched_args, lanes), ffi.handler(object_code.HANDLER, n_in, n_out, shared)
    )
