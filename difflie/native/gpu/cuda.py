"""A whole loop as CUDA C, for NVIDIA GPUs: one environment a thread, all iterations inside.

The kernel's arguments are the addresses of its buffers, row by row as on the CPU. The first holds
`numbers`: of iterations, of environments, and after how many iterations there are rows. So the same
code serves any of these. Scalars are local variables, which the compiler keeps in registers as far
as there are any.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..loop import Loop
from ..program import ELEMENTARY, OPERATIONS, Instructions, Unsupported, fused
from ..program.instructions import greatest, is_pair, ordered
from ..rules import kind_of

NAME = "run_loop"
# One warp a block: small batches reach all processors, and a thread may use all registers it wants.
THREADS = 32
# So many blocks at a time leave each thread all 255 registers; not told so, the compiler gives some
# large kernels fewer, which took up to 20 % longer on an H100.
_BLOCKS = 8
# Longer kernels take minutes to compile.
LONGEST = 80_000
# Loops inside of more entries are repeated: about what the cache of instructions holds.
_MOST_WRITTEN = 8_000
# As many addresses as every version of CUDA takes.
_BUFFERS = 500

_TYPE = {
    "f64": "double",
    "f32": "float",
    "i64": "long long",
    "i32": "int",
    "u64": "unsigned long long",
    "u32": "unsigned int",
    "b1": "bool",
}
# How the compiler is told what to fuse (`fusion`): it fuses a product with the sum in the same
# expression, but no product that is a call. The time it takes grows with the square of the number
# of calls, so `fma` is not one: 11,000 of them took 9 of 11 s. Of differences it fuses some only.
_FUSING = {"fma": "{x} * {y} + {z}", "mul apart": "__{f}mul_rn({x}, {y})"}
# What a function adds to the time of the compiler, which writes it out, in instructions.
_WRITTEN_OUT = 50


class _Array(NamedTuple):
    """An array of the loop: its buffer, the types of its entries, and where it lies in there."""

    buffer: str
    kind: str
    size: int
    batched: bool
    # Rows in every iteration (1), at one of the other paces (their number, from 2 on), or none.
    every: int | None

    def base(self) -> str:
        """The number of the entry that this environment, and iteration, has first."""
        if self.every is None:
            return f"env * {self.size}" if self.batched else "0"
        count, row = (x if self.every == 1 else f"{x} / {self.pace}" for x in ("iterations", "k"))
        return f"({'env' if self.batched else '0LL'} * ({count}) + {row}) * {self.size}"

    @property
    def pace(self) -> str:
        return f"pace{self.every}"

    @property
    def now(self) -> str:
        """Whether this iteration has a row."""
        return f"k % {self.pace} == {self.pace} - 1"


def numbers(loop: Loop, batch: int | None) -> np.ndarray:
    """What the first buffer of the kernel holds."""
    return np.array([loop.length, batch or 1, *_paces(loop)], np.int32)


def _paces(loop: Loop) -> list[int]:
    return sorted({*loop.rows, *loop.saved} - {1})


def source(loop: Loop, batched_args: Sequence[bool]) -> str:
    """The kernel of a loop; arguments not in `batched_args` are the same for all environments."""
    program = fused(loop.program(most_written=_MOST_WRITTEN), loop.fixed)
    if (length := _length(program)) > LONGEST:
        raise Unsupported(f"{length} instructions for a GPU, more than {LONGEST}")
    arrays = _arrays(loop, batched_args)
    n, m = loop.consts, loop.consts + loop.carry
    inputs, outputs = arrays[: len(loop.body.in_avals)], arrays[len(loop.body.in_avals) :]
    names = [f"a{i}_{e}" for i, x in enumerate(inputs) for e in range(x.size)]
    first = [0, *itertools.accumulate(x.size for x in inputs)]
    code = _Printer().printed(program, names, first[n])
    read = {program.places[k] for k in program.used() if program.operations[k] == "argument"}

    def entries(i: int) -> list[tuple[int, str]]:
        """The entries of an input that are read; all that is carried is written at the end."""
        places = range(first[i], first[i + 1])
        return [(p - first[i], names[p]) for p in places if p in read or n <= i < m]

    before, rows, saved, carry, after = [], [], [], [], []
    for i, x in enumerate(inputs[:m]):
        const = "const " if i < n else ""
        if chosen := entries(i):
            before.append(f"const long long at_{x.buffer} = {x.base()};")
        for e, name in chosen:
            before.append(f"{const}{_TYPE[x.kind]} {name} = {x.buffer}[at_{x.buffer} + {e}];")
    for i, x in enumerate(inputs[m:], m):
        if chosen := entries(i):
            rows.append(f"const long long at_{x.buffer} = {x.base()};")
        for e, name in chosen:
            entry = f"{x.buffer}[at_{x.buffer} + {e}]"
            entry = entry if x.every == 1 else f"{x.now} ? {entry} : {_literal(0, x.kind)}"
            rows.append(f"const {_TYPE[x.kind]} {name} = {entry};")
    results = iter(code.results)
    state = [next(results) for x in outputs[: loop.carry] for _ in range(x.size)]
    for x in outputs[loop.carry :]:
        lines = [f"{x.buffer}[at + {e}] = {next(results)};" for e in range(x.size)]
        if lines:
            begin = "{" if x.every == 1 else f"if ({x.now}) {{"
            saved += [begin, f"const long long at = {x.base()};", *lines, "}"]
    kinds = [x.kind for x in inputs[n:m] for _ in range(x.size)]
    carry = _moved(names[first[n] : first[m]], state, kinds)
    for i, x in enumerate(outputs[: loop.carry], n):
        after += [f"{x.buffer}[{x.base()} + {e}] = {name};" for e, name in entries(i)]
    parameters = ["const int* __restrict__ numbers"]
    parameters += [f"const {_TYPE[x.kind]}* __restrict__ {x.buffer}" for x in inputs if x.size]
    parameters += [f"{_TYPE[x.kind]}* __restrict__ {x.buffer}" for x in outputs if x.size]
    if len(parameters) > _BUFFERS:
        raise Unsupported(f"more than {_BUFFERS} arrays for a GPU")
    paces = "\n".join(f"const int pace{i} = numbers[{i}];" for i in range(2, 2 + len(_paces(loop))))
    head = f"""extern "C" __global__ void __launch_bounds__({THREADS}, {_BLOCKS})
{NAME}({", ".join(parameters)}) {{
const int iterations = numbers[0];
{paces}
const long long env = (long long)blockIdx.x * {THREADS} + threadIdx.x;
if (env >= numbers[1]) return;"""
    iteration = f"""#pragma unroll 1
for (int i = 0; i < iterations; ++i) {{
const int k = {"iterations - 1 - i" if loop.reverse else "i"};"""
    again = [iteration, *rows, *code.again, *saved, *carry, "}"]
    return "\n".join([head, *before, *code.once, *again, *after, "}\n"])


def _arrays(loop: Loop, batched_args: Sequence[bool]) -> list[_Array]:
    """The arguments and results of the loop."""
    avals, outs = loop.body.in_avals, loop.body.out_avals
    number = {pace: i for i, pace in enumerate([1, *_paces(loop)], 1)}
    rows, saved = ([number[e] for e in x] for x in (loop.rows, loop.saved))
    paces = [*[None] * (loop.consts + loop.carry), *rows, *[None] * loop.carry, *saved]
    batched = [*(batched_args or [False] * len(avals)), *[True] * len(outs)]
    names = [*(f"a{i}" for i in range(len(avals))), *(f"r{i}" for i in range(len(outs)))]
    kinds = [kind_of(a.dtype) for a in (*avals, *outs)]
    sizes = [a.size for a in (*avals, *outs)]
    return [_Array(*x) for x in zip(names, kinds, sizes, batched, paces, strict=True)]


def _length(program: Instructions) -> int:
    """The instructions of a program, as the compiler sees them."""
    total = sum(_length(x.condition) + _length(x.body) for x in program.loops.values())
    return total + sum(_cost(program.operations[k], program.types[k]) for k in program.used())


def _cost(name: str, kind: str) -> int:
    operation = OPERATIONS.get(name)
    called = operation is not None and operation.llvm.get(kind[0]) == ELEMENTARY
    return _WRITTEN_OUT if called else 1


def _moved(targets: Sequence[str], values: Sequence[str], kinds: Sequence[str]) -> list[str]:
    """Sets variables to values that may be those of others of them."""
    moves = [x for x in zip(targets, values, kinds, strict=True) if x[0] != x[1]]
    new = [f"const {_TYPE[kind]} next_{target} = {value};" for target, value, kind in moves]
    return ["{", *new, *(f"{target} = next_{target};" for target, _, _ in moves), "}"]


class _Printed(NamedTuple):
    """A program as statements: those to run once and again, and its results as expressions."""

    once: list[str]
    again: list[str]
    results: list[str]


class _Printer:
    """Writes programs as statements of C, every variable with a name of its own."""

    def __init__(self) -> None:
        self._count = itertools.count()

    def printed(self, program: Instructions, arguments: Sequence[str], fixed: int) -> _Printed:
        """A program of these arguments; what depends on the first `fixed` ones only runs once."""
        names: dict[int, str] = {}
        code = _Printed([], [], [])
        apart = _apart(program)
        operations, operands, order = program.operations, program.operands, ordered(program)
        at_iterations = [place >= fixed for place in range(len(arguments))]
        repeated = greatest(program, order, at_iterations, False)

        def name_of(x: int) -> str:
            known = program.known[x]
            return names[x] if known is None else _literal(known, program.types[x])

        def new(k: int) -> str:
            names[k] = f"v{next(self._count)}"
            return names[k]

        for k, after in zip(order, [*order[1:], *order[-1:]], strict=True):
            operation, xs, kind = operations[k], operands[k], program.types[k]
            if program.known[k] is not None or k in names:
                continue
            if operation == "argument":
                names[k] = arguments[program.places[k]]
                continue
            if operation == "item":
                names[k] = f"{names[xs[0]]}_{program.places[k]}"
                continue
            lines = code.again if repeated[k] else code.once
            name, values = new(k), [name_of(x) for x in xs]
            if operation == "while":
                lines += self._loop(program, k, name, values)
            elif is_pair(program, k, after):
                sine, cosine = (name, new(after)) if operation == "sin" else (new(after), name)
                f = "sincos" if kind == "f64" else "sincosf"
                lines.append(f"{_TYPE[kind]} {sine}, {cosine};")
                lines.append(f"{f}({values[0]}, &{sine}, &{cosine});")
            else:
                written = "mul apart" if k in apart else operation
                result = _expression(written, values, program.types[xs[-1]], kind)
                lines.append(f"const {_TYPE[kind]} {name} = {result};")
        code.results.extend(map(name_of, program.results))
        return code

    def _loop(self, program: Instructions, k: int, name: str, values: Sequence[str]) -> list[str]:
        """The lines of a loop inside, which carries the variables name_0, name_1, ..."""
        loop = program.loops[k]
        start = values[loop.fixed :]
        carried = [f"{name}_{i}" for i in range(len(start))]
        arguments = [*values[: loop.fixed], *carried]
        kinds = [program.types[x] for x in program.operands[k][loop.fixed :]]
        condition = self.printed(loop.condition, arguments, loop.fixed)
        body = self.printed(loop.body, arguments, loop.fixed)
        begin = zip(kinds, carried, start, strict=True)
        return [
            *(f"{_TYPE[kind]} {x} = {value};" for kind, x, value in begin),
            "{",
            *condition.once,
            *body.once,
            "#pragma unroll 1",
            "for (;;) {",
            *condition.again,
            f"if (!({condition.results[0]})) break;",
            *body.again,
            *_moved(carried, body.results, kinds),
            "}",
            "}",
        ]


def _literal(x: Any, kind: str) -> str:
    """A known number."""
    if kind == "b1":
        return "true" if x else "false"
    if kind[0] != "f":
        # C has no negative literals, and so none of the lowest number.
        suffix = {"i64": "LL", "i32": "", "u64": "ULL", "u32": "U"}[kind]
        return str(x) + suffix if x >= 0 else f"(-{-(x + 1)}{suffix} - 1)"
    x = float(np.float32(x)) if kind == "f32" else float(x)
    suffix = "f" if kind == "f32" else ""
    if math.isfinite(x):
        text = x.hex() + suffix
        return f"({text})" if text[0] == "-" else text
    bits = np.array(x, np.float32 if suffix else np.float64)
    if suffix:
        return f"__int_as_float({int(bits.view(np.int32))})"
    return f"__longlong_as_double({int(bits.view(np.int64))}LL)"


def _apart(program: Instructions) -> set[int]:
    """The products that are not to be fused with the sums that they are used in."""
    found, operations, operands = set(), program.operations, program.operands
    for k in program.used():
        if operations[k] in ("add", "sub") and program.types[k][0] == "f":
            for x in operands[k]:
                while operations[x] == "neg":
                    (x,) = operands[x]
                if operations[x] == "mul":
                    found.add(x)
    return found


def _expression(name: str, xs: Sequence[str], source: str, kind: str) -> str:
    """An operation on operands, the last one of type `source`."""
    if name == "convert":
        return _converted(xs[0], source, kind)
    operation = OPERATIONS.get(name)
    of = source if operation and operation.compares else kind
    form = _FUSING.get(name) or (operation.c.get(of[0]) if operation else None)
    if form is None:
        raise Unsupported(f"{name} of {of} on a GPU")
    return form.format_map({**_words(of), **dict(zip("xyz", xs, strict=False))})


@functools.cache
def _words(kind: str) -> dict[str, str]:
    """What forms name besides operands."""
    numbers = {"zero": 0, "one": 1, "minus": -1}
    known = {name: _literal(x, kind) for name, x in numbers.items() if x >= 0 or kind[0] in "fi"}
    unsigned = _TYPE.get("u" + kind[1:], "")
    suffix = "f" if kind == "f32" else ""
    return {"t": _TYPE[kind], "u": unsigned, "f": _TYPE[kind][0], "s": suffix, **known}


def _converted(x: str, source: str, kind: str) -> str:
    t = _TYPE[kind]
    if kind == "b1":
        return f"{x} != {_literal(0, source)}"
    if source[0] != "f" or kind[0] == "f":
        return f"({t}){x}"
    # The nearest of those that there are, and nothing for what is not a number.
    bits = int(kind[1:]) - (kind[0] == "i")
    low, high = (-(2**bits) if kind[0] == "i" else 0), 2**bits
    least, most = _literal(low, kind), _literal(high - 1, kind)
    above, below = (f"{x} >= {_literal(high, source)}", f"{x} <= {_literal(low, source)}")
    return f"{x} != {x} ? 0 : {above} ? {most} : {below} ? {least} : ({t}){x}"
