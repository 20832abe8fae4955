"""A whole loop as LLVM IR: what is read and written around the turns, and for whom.

`@block(ptr %buffers, i64 %b)` runs all turns for one trajectory, or for as many environments of a
batch as there are lanes. The first buffer holds three numbers: turns, environments, and blocks; so
that the same code serves any number of these. The last lanes of the last block repeat the last
environment, so that a row of a batch is the same in batches of every size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .code import Loop
from .from_jaxpr import arguments, kind_of
from .llvm import Module, Place, bytes_of, carrying, printed
from .program import Program

# Frames up to this size are on the stack.
_STACK = 1 << 16


class Stored(NamedTuple):
    """An array of a loop: its buffer, and the places of its entries in the frame."""

    buffer: int
    kind: str
    places: list[Place]
    along: bool
    every: int | None = None

    @property
    def size(self) -> int:
        return len(self.places)

    @property
    def offset(self) -> int:
        return self.places[0].offset


def program_of(loop: Loop) -> Program:
    """The program of one turn."""
    program = Program()
    given = arguments(program, loop.turn.in_avals)
    results = loop.turn.write(program, given)
    program.finish([k for x in results for k in x.ravel().tolist()])
    return program


def text_of(loop: Loop, along: Sequence[bool], lanes: int) -> str:
    """The text of `@block` and all it calls; buffers of empty arrays are left out."""
    program = program_of(loop)
    module = Module(lanes)
    avals, outs = loop.turn.in_avals, loop.turn.out_avals
    n, m = loop.consts, loop.consts + loop.carry
    every = [None] * m + list(loop.rows)
    batched = list(along) if lanes > 1 else [False] * len(avals)
    inputs, buffer = [], 1
    for i, aval in enumerate(avals):
        wide = lanes if batched[i] or n <= i < m else 1
        places = module.frame.array(kind_of(aval.dtype), aval.size, wide)
        inputs.append(Stored(buffer, kind_of(aval.dtype), places, batched[i], every[i]))
        buffer += aval.size > 0
    fixed = sum(a.size for a in avals[:n])
    flat = [place for x in inputs for place in x.places]
    code = printed(module, program, flat, fixed)
    kinds = [program.types[x] for x in program.results]
    carried = inputs[n:m]
    state = [place for x in carried for place in x.places]
    carry = carrying(module, code.results[: len(state)], state, kinds[: len(state)])
    ends, saved, first = [], [], len(state)
    for i, aval in enumerate(outs):
        if i < loop.carry:
            ends.append(carried[i]._replace(buffer=buffer, along=lanes > 1))
        else:
            kind, pace = kind_of(aval.dtype), loop.saved[i - loop.carry]
            places = module.frame.array(kind, aval.size, lanes)
            saved.append(Stored(buffer, kind, places, lanes > 1, pace))
        buffer += aval.size > 0
    moves = []
    for x in saved:
        found = code.results[first : first + x.size]
        moves.append(carrying(module, found, x.places, [x.kind] * x.size))
        first += x.size
    block = _Block(module, loop.reverse)
    for x in inputs[:m]:
        block.read(x)
    block.lines += code.once
    block.begin()
    for x in inputs[m:]:
        block.read_row(x)
    block.lines += code.again
    for x, move in zip(saved, moves, strict=True):
        block.write_row(x, move)
    block.lines.append(carry)
    block.end()
    for x in ends:
        block.write(x)
    movers = [_mover(size, out) for size, out in sorted(block.movers)]
    return "\n".join([_INTRINSICS, *movers, module.text(), block.text(), _ATTRIBUTES])


class _Block:
    """The lines of `@block`."""

    def __init__(self, module: Module, reverse: bool) -> None:
        self.module, self.reverse = module, reverse
        self.lines: list[str] = []
        # Which functions that move entries are called: of what size, and whether to a buffer.
        self.movers: set[tuple[int, bool]] = set()
        self._buffers: dict[int, str] = {}
        self._first: list[str] = []
        self._count = 0

    def _name(self) -> str:
        self._count += 1
        return f"%x{self._count}"

    def _op(self, text: str) -> str:
        name = self._name()
        self.lines.append(f"  {name} = {text}")
        return name

    def _buffer(self, number: int) -> str:
        name = self._buffers.get(number)
        if name is None:
            name = self._buffers[number] = f"%buffer{number}"
            at = f"  {name}.at = getelementptr ptr, ptr %buffers, i64 {number}"
            self._first += [at, f"  {name} = load ptr, ptr {name}.at"]
        return name

    def _move(self, x: Stored, source: str, stride: str, out: bool) -> None:
        """Moves an array between the frame and its buffer, whose environments are stride apart."""
        if not x.size:
            return
        bytes_each = bytes_of(x.kind)
        at = self._op(f"getelementptr i8, ptr %m, i64 {x.offset}")
        lanes = x.places[0].lanes
        if lanes == 1:
            target, origin = (source, at) if out else (at, source)
            size = x.size * bytes_each
            self.lines.append(
                f"  call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {origin}, i64 {size}, i1 0)"
            )
            return
        step = stride if x.along else "0"
        self.movers.add((bytes_each, out))
        name = f"@{'out' if out else 'in'}{bytes_each}"
        self.lines.append(
            f"  call void {name}(ptr {at}, ptr {source}, i64 {x.size}, i64 {step}, "
            f"i64 %env, i64 %last, i64 {lanes})"
        )

    def read(self, x: Stored) -> None:
        if x.size:
            self._move(x, self._buffer(x.buffer), str(x.size), False)

    def write(self, x: Stored) -> None:
        if x.size:
            self._move(x, self._buffer(x.buffer), str(x.size), True)

    def _row(self, x: Stored, out: bool) -> None:
        """Moves the row of the turn %k."""
        every = x.every or 1
        row = "%k" if every == 1 else self._op(f"udiv i64 %k, {every}")
        count = "%turns" if every == 1 else self._op(f"udiv i64 %turns, {every}")
        place = self._op(f"mul i64 {row}, {x.size * bytes_of(x.kind)}")
        source = self._op(f"getelementptr i8, ptr {self._buffer(x.buffer)}, i64 {place}")
        stride = self._op(f"mul i64 {count}, {x.size}")
        self._move(x, source, stride, out)

    def _only_every(self, x: Stored) -> tuple[str, str, str]:
        """Begins what happens in every so manieth turn only; labels of then, else and after."""
        label = self._name()[1:]
        rest = self._op(f"urem i64 %k, {x.every}")
        now = self._op(f"icmp eq i64 {rest}, {(x.every or 1) - 1}")
        self.lines.append(f"  br i1 {now}, label %{label}.then, label %{label}.else")
        self.lines.append(f"{label}.then:")
        return f"{label}.then", f"{label}.else", f"{label}.after"

    def read_row(self, x: Stored) -> None:
        if not x.size:
            return
        if x.every == 1:
            self._row(x, False)
            return
        _, otherwise, after = self._only_every(x)
        self._row(x, False)
        self.lines += [f"  br label %{after}", f"{otherwise}:"]
        at = self._op(f"getelementptr i8, ptr %m, i64 {x.offset}")
        size = x.size * bytes_of(x.kind) * x.places[0].lanes
        self.lines.append(f"  call void @llvm.memset.p0.i64(ptr {at}, i8 0, i64 {size}, i1 0)")
        self.lines += [f"  br label %{after}", f"{after}:"]

    def write_row(self, x: Stored, move: str) -> None:
        if not x.size:
            return
        if x.every == 1:
            self.lines.append(move)
            self._row(x, True)
            return
        _, otherwise, after = self._only_every(x)
        self.lines.append(move)
        self._row(x, True)
        self.lines += [f"  br label %{after}", f"{otherwise}:"]
        self.lines += [f"  br label %{after}", f"{after}:"]

    def begin(self) -> None:
        """The head of the loop over the turns; %k is the number of a turn in its order forwards."""
        self.lines += ["  br label %head", "head:", "  %i = phi i64 [0, %top], [%i.next, %tail]"]
        self.lines += ["  %more = icmp ult i64 %i, %turns"]
        self.lines += ["  br i1 %more, label %turn, label %done", "turn:"]
        backwards = "  %left = sub i64 %turns, %i\n  %k = sub i64 %left, 1"
        self.lines += [backwards if self.reverse else "  %k = add i64 %i, 0"]

    def end(self) -> None:
        self.lines += ["  br label %tail", "tail:", "  %i.next = add i64 %i, 1"]
        self.lines += ["  br label %head", "done:"]

    def text(self) -> str:
        """The function; what is done once ends in a block of its own, where the loop starts."""
        size, lanes = max(64, self.module.frame.size), self.module.lanes
        at = self.lines.index("  br label %head")
        once, rest = self.lines[:at], self.lines[at:]
        large = size > _STACK
        heap = "declare ptr @malloc(i64)\ndeclare void @free(ptr)" if large else ""
        if large:
            frame = f"""  %all = call ptr @malloc(i64 {size + 64})
  %number = ptrtoint ptr %all to i64
  %up = add i64 %number, 63
  %even = and i64 %up, -64
  %m = inttoptr i64 %even to ptr"""
        else:
            frame = f"  %m = alloca [{size} x i8], align 64"
        lines = [
            heap,
            "define internal void @block(ptr %buffers, i64 %b) #0 {",
            "  %numbers = load ptr, ptr %buffers",
            "  %turns = load i64, ptr %numbers",
            "  %count.at = getelementptr i64, ptr %numbers, i64 1",
            "  %count = load i64, ptr %count.at",
            "  %last = sub i64 %count, 1",
            f"  %env = mul i64 %b, {lanes}",
            frame,
            *self._first,
            *once,
            "  br label %top",
            "top:",
            *rest,
            *(["  call void @free(ptr %all)"] if large else []),
            "  ret void",
            "}",
        ]
        return "\n".join(lines)


_ATTRIBUTES = 'attributes #0 = { noinline nounwind "prefer-vector-width"="512" }\n'


def _mover(size: int, out: bool) -> str:
    """Moves n entries of each lane's environment between rows of lanes and the buffer."""
    name = "out" if out else "in"
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
define internal void @{name}{size}(
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
