"""Straight-line programs as text for XLA.

A program is printed as one `mhlo.fusion`: XLA compiles its body into a single block of machine
code, with the values in registers, each of them computed once. XLA asks of such a body that all
its results have one shape, that it has no operand twice and none in vain, and that it consists of
elementwise operations only.

With lanes, every value of the program is a vector with one entry for each environment of a block,
and the fusion a loop over the block, which LLVM turns into vector instructions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from jax.extend.core import ClosedJaxpr

from .straight_line import TYPES, Program, Scalar, Unsupported, Value, written_out

# A program of 22 000 instructions, a step of a humanoid, takes LLVM 17 s, one of 41 000 minutes.
LONGEST_IN_LANES = 25_000


def printed(
    name: str, closed: ClosedJaxpr, lanes: tuple[int, ...] = (), along: Sequence[bool] = ()
) -> str:
    """The program of a jaxpr as the text of an MLIR function, with the same arguments and results.

    With `lanes`, (n,), it is the program of n environments: arguments `along` have this leading
    axis, the others are shared, and results always have it.
    Raises Unsupported where the jaxpr has no straight-line program, or too long a one for lanes.
    """
    jaxpr = closed.jaxpr
    avals = [v.aval for v in jaxpr.invars]
    leads = [lanes if a else () for a in along] or [()] * len(avals)
    program, results = written_out(jaxpr, closed.consts)
    _read_all(program, results, jaxpr)
    roots: dict[int, Value] = {}
    entries: dict[int, tuple[int, int]] = {}
    for x in values(results):
        operation, operands, _ = program.instructions[x.number]
        if operation == "argument" and leads[operands[0]] == lanes:
            entries[x.number] = operands
        else:
            roots[x.number] = x
    instructions = needed(program, roots)
    if lanes and len(instructions) > LONGEST_IN_LANES:
        raise Unsupported("a program that LLVM takes minutes to vectorise")
    body, operands = _fusion(program, instructions, list(roots), lanes, leads)
    entries.update((k, program.instructions[k][1]) for k in operands)
    lines = []
    for i, (aval, lead) in enumerate(zip(avals, leads, strict=True)):
        lines += _in_rows(f"%arg{i}", f"%rows{i}", aval, lead)
    lines += [_entry(k, *entries[k], avals[entries[k][0]], leads) for k in sorted(entries)]
    lines += body
    names = {k: f"%e{k}" for k in entries} | {k: f"%r{k}" for k in roots}
    for i, (result, v) in enumerate(zip(results, jaxpr.outvars, strict=True)):
        lines += _assembled(f"out{i}", result, v.aval, lanes, names)
    heads = ", ".join(
        f"%arg{i}: {_whole(a, lead)}" for i, (a, lead) in enumerate(zip(avals, leads, strict=True))
    )
    tails = ", ".join(_whole(v.aval, lanes) for v in jaxpr.outvars)
    names = ", ".join(f"%out{i}" for i in range(len(results)))
    lines.append(f"return {names} : {tails}")
    text = "\n".join(lines)
    return f"func.func private @{name}({heads}) -> ({tails}) {{\n{text}\n}}"


def values(results: Sequence[np.ndarray]) -> Iterator[Value]:
    """Those entries of the results that are no numbers known at trace time."""
    for result in results:
        yield from (x for x in result.ravel() if isinstance(x, Value))


def _read_all(program: Program, results: list[np.ndarray], jaxpr: Any) -> None:
    """Makes a result depend on every argument, without changing its value.

    Arguments drop out where structure makes all their factors zero; but XLA refuses, by ending the
    process, a native call that does not read one of its arguments.
    """
    used = needed(program, {x.number: x for x in values(results)})
    read = {
        operands[0]
        for operation, operands, _ in (program.instructions[k] for k in used)
        if operation == "argument"
    }
    args = [v.aval for v in jaxpr.invars]
    unread = [i for i, a in enumerate(args) if i not in read and a.size]
    k = next((k for k, r in enumerate(results) if r.size), None)
    if not unread or k is None:
        return
    first = results[k].ravel()[0]
    dtype, single = jaxpr.outvars[k].aval.dtype, np.dtype("float32")
    for i in unread:
        entry = program.argument(i, 0, args[i].dtype)
        size = program.unary("abs", program.convert(entry, single), single)
        never = program.compare("lt", size, 0.0)
        first = program.value("select", (never, program.convert(entry, dtype), first), dtype)
    results[k] = results[k].copy()
    results[k].reshape(-1)[0] = first


def needed(program: Program, roots: dict[int, Value]) -> list[int]:
    """The instructions that the roots depend on, in order."""
    needed, waiting = set(roots), list(roots)
    while waiting:
        _, operands, _ = program.instructions[waiting.pop()]
        for x in operands:
            if isinstance(x, Value) and x.number not in needed:
                needed.add(x.number)
                waiting.append(x.number)
    return sorted(needed)


def _fusion(
    program: Program,
    needed: list[int],
    roots: list[int],
    lanes: tuple[int, ...],
    leads: list[tuple[int, ...]],
) -> tuple[list[str], list[int]]:
    """The lines of the fusion and the numbers of the arguments' entries that it reads."""
    if not roots:
        return [], []
    operands = [k for k in needed if program.instructions[k][0] == "argument"]
    given, kinds = [f"%p{k}" for k in operands], []
    names = dict(zip(operands, given, strict=True))
    constants: dict[str, str] = {}
    body = []
    for k in operands:
        _, (argument, _), dtype = program.instructions[k]
        kinds.append(_type(leads[argument], dtype))
        if leads[argument] != lanes:
            names[k] = f"%b{k}"
            body.append(_spread(names[k], f"%p{k}", dtype, lanes))
    for k in needed:
        operation, xs, dtype = program.instructions[k]
        if operation == "argument":
            continue
        names[k] = f"%w{k}"
        types = [x.dtype for x in xs if isinstance(x, Value)] or [np.dtype("int32")]
        kind = types[0] if operation == "convert" or operation.startswith("compare") else dtype
        texts = []
        for x in xs:
            if isinstance(x, Value):
                texts.append(names[x.number])
                continue
            number = _splat(x, kind, lanes)
            if number not in constants:
                constants[number] = f"%c{len(constants)}"
                body.append(f"{constants[number]} = stablehlo.constant {number}")
            texts.append(constants[number])
        body.append(f"%w{k} = {_instruction(operation, texts, kind, dtype, lanes)}")
    found = {k: _type(lanes, program.instructions[k][2]) for k in roots}
    # A fusion of one result is elementwise to XLA, which then moves reshapes through it and spoils
    # it; so there are always two.
    twice = roots * 2 if len(roots) == 1 else roots
    heads = ", ".join(f"{x}: {kind}" for x, kind in zip(given, kinds, strict=True))
    ins = ", ".join(kinds)
    outs = ", ".join(found[k] for k in twice)
    read = ", ".join(f"%e{k}" for k in operands)
    lines = [
        f'%f:{len(twice)} = "mhlo.fusion"({read}) ({{',
        f"^bb0({heads}):" if heads else "^bb0:",
        *body,
        f'"mhlo.return"({", ".join(names[k] for k in twice)}) : ({outs}) -> ()',
        f"}}) {{fusion_kind = #mhlo<fusion_kind kLoop>}} : ({ins}) -> ({outs})",
    ]
    if len(roots) == 1:
        lines.append(f"%r{roots[0]} = stablehlo.maximum %f#0, %f#1 : {found[roots[0]]}")
        return lines, operands
    for i, k in enumerate(roots):
        lines.append(f"%r{k} = stablehlo.reshape %f#{i} : ({found[k]}) -> {found[k]}")
    return lines, operands


def _instruction(
    operation: str, xs: list[str], kind: np.dtype, dtype: np.dtype, lanes: tuple[int, ...]
) -> str:
    source, result = _type(lanes, kind), _type(lanes, dtype)
    if operation.startswith("compare"):
        order = "FLOAT" if kind.kind == "f" else "SIGNED" if kind.kind == "i" else "UNSIGNED"
        direction = operation.split()[1]
        return (
            f"stablehlo.compare {direction}, {xs[0]}, {xs[1]}, {order} : "
            f"({source}, {source}) -> {result}"
        )
    if operation == "select":
        return f"stablehlo.select {', '.join(xs)} : {_type(lanes, np.dtype(bool))}, {result}"
    if operation == "convert":
        return f"stablehlo.convert {xs[0]} : ({source}) -> {result}"
    return f"stablehlo.{operation} {', '.join(xs)} : {result}"


def _in_rows(source: str, rows: str, aval: Any, lead: tuple[int, ...]) -> list[str]:
    """The lines that flatten an argument, of a whole block so that each entry has one row."""
    if not aval.size:
        return []
    whole, flat = _whole(aval, lead), _type((*lead, aval.size), aval.dtype)
    lines = [f"{rows}{'_flat' if lead else ''} = stablehlo.reshape {source} : ({whole}) -> {flat}"]
    if lead:
        turned = _type((aval.size, *lead), aval.dtype)
        lines.append(
            f"{rows} = stablehlo.transpose {rows}_flat, dims = [1, 0] : ({flat}) -> {turned}"
        )
    return lines


def _entry(number: int, index: int, entry: int, aval: Any, leads: list[tuple[int, ...]]) -> str:
    """The lines that take one entry of an argument."""
    lead = leads[index]
    rows, one = _type((aval.size, *lead), aval.dtype), _type((1, *lead), aval.dtype)
    part = ", ".join([f"{entry}:{entry + 1}", *(f"0:{n}" for n in lead)])
    return (
        f"%h{number} = stablehlo.slice %rows{index} [{part}] : ({rows}) -> {one}\n"
        f"%e{number} = stablehlo.reshape %h{number} : ({one}) -> {_type(lead, aval.dtype)}"
    )


def _assembled(
    name: str, result: np.ndarray, aval: Any, lanes: tuple[int, ...], names: dict[int, str]
) -> list[str]:
    """The lines that join the entries of a result."""
    shape, dtype = aval.shape, aval.dtype
    whole, each, one = _whole(aval, lanes), _type(lanes, dtype), _type((1, *lanes), dtype)
    entries = result.ravel().tolist()
    known = [x for x in entries if not isinstance(x, Value)]
    if len(known) == len(entries):
        repeated = np.broadcast_to(result, (*lanes, *shape)).ravel().tolist()
        return [f"%{name} = stablehlo.constant {_numbers(repeated, (*lanes, *shape), dtype)}"]
    if not shape:
        return [f"%{name} = stablehlo.reshape {names[entries[0].number]} : ({each}) -> {whole}"]
    lines, parts = [], []
    for i, x in enumerate(entries):
        part = f"%{name}_{i}"
        if isinstance(x, Value):
            lines.append(f"{part} = stablehlo.reshape {names[x.number]} : ({each}) -> {one}")
        else:
            lines.append(f"{part} = stablehlo.constant {_splat(x, dtype, (1, *lanes))}")
        parts.append(part)
    rows, flat = _type((len(entries), *lanes), dtype), _type((*lanes, len(entries)), dtype)
    joined = f"%{name}_rows" if lanes else f"%{name}_flat"
    lines.append(
        f"{joined} = stablehlo.concatenate {', '.join(parts)}, dim = 0 : "
        f"({', '.join([one] * len(parts))}) -> {rows}"
    )
    if lanes:
        lines.append(
            f"%{name}_flat = stablehlo.transpose {joined}, dims = [1, 0] : ({rows}) -> {flat}"
        )
    lines.append(f"%{name} = stablehlo.reshape %{name}_flat : ({flat}) -> {whole}")
    return lines


def _whole(aval: Any, lead: tuple[int, ...] = ()) -> str:
    return _type((*lead, *aval.shape), aval.dtype)


def _type(shape: tuple[int, ...], dtype: np.dtype) -> str:
    if str(dtype) not in TYPES:
        raise Unsupported(f"the type {dtype}")
    return f"tensor<{''.join(f'{n}x' for n in shape)}{TYPES[str(dtype)]}>"


def _splat(x: Scalar, dtype: np.dtype, shape: tuple[int, ...]) -> str:
    """The constant with x everywhere."""
    number, _ = _numbers([x], (), dtype).split(" : ")
    return f"{number} : {_type(shape, dtype)}"


def _spread(name: str, source: str, dtype: np.dtype, shape: tuple[int, ...]) -> str:
    """The line that repeats a scalar."""
    kinds = f"({_type((), dtype)}) -> {_type(shape, dtype)}"
    return f"{name} = stablehlo.broadcast_in_dim {source}, dims = [] : {kinds}"


def _numbers(xs: list, shape: tuple[int, ...], dtype: np.dtype) -> str:
    """A dense constant; floats by their bits, so that none is rounded."""
    if math.prod(shape) == 0:
        return f"dense<> : {_type(shape, dtype)}"
    a = np.asarray(xs).astype(dtype).reshape(shape)
    if dtype.kind == "f":
        digits = dtype.itemsize * 2
        bits = a.view(f"u{dtype.itemsize}")
        text = _nested_list(bits, lambda b: f"0x{int(b):0{digits}X}")
    elif dtype.kind == "b":
        text = _nested_list(a, lambda b: "true" if b else "false")
    else:
        text = _nested_list(a, lambda i: str(int(i)))
    return f"dense<{text}> : {_type(shape, dtype)}"


def _nested_list(a: np.ndarray, write: Callable[[Any], str]) -> str:
    if a.ndim == 0:
        return write(a[()])
    return f"[{', '.join(_nested_list(row, write) for row in a)}]"


def looped(
    name: str,
    args: Sequence[Any],
    results: Sequence[Any],
    length: int,
    along: Sequence[bool],
    lanes: tuple[int, ...] = (),
) -> str:
    """The text of a function that calls another for one entry after the other.

    Arguments `along` which it goes have a leading axis, and results always. With `lanes` the other
    takes, and gives, that many entries at once; where they do not divide the length, the last block
    is pushed back to end with the batch, and some entries are computed twice.
    """
    width = math.prod(lanes)
    types = [_whole(a, (length,) if b else ()) for a, b in zip(args, along, strict=True)]
    outs = [_whole(a, (length,)) for a in results]
    n, m = len(args), len(results)
    names = ["%i", *(f"%a{k}" for k in range(n)), *(f"%r{k}" for k in range(m))]
    starts = ["%zero", *(f"%arg{k}" for k in range(n)), *(f"%start{k}" for k in range(m))]
    carried = ", ".join(["tensor<i32>", *types, *outs])
    lines = ["%zero = stablehlo.constant dense<0> : tensor<i32>"]
    for k, a in enumerate(results):
        lines += [
            f"%nothing{k} = stablehlo.constant {_splat(0, a.dtype, ())}",
            _spread(f"%start{k}", f"%nothing{k}", a.dtype, (length, *a.shape)),
        ]
    pairs = ", ".join(f"{a} = {b}" for a, b in zip(names, starts, strict=True))
    lines += [
        f"%w:{1 + n + m} = stablehlo.while({pairs}) : {carried}",
        "cond {",
        f"%end = stablehlo.constant dense<{length}> : tensor<i32>",
        "%more = stablehlo.compare LT, %i, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>",
        "stablehlo.return %more : tensor<i1>",
        "} do {",
        "%o = stablehlo.constant dense<0> : tensor<i32>",
        f"%step = stablehlo.constant dense<{width}> : tensor<i32>",
        "%next = stablehlo.add %i, %step : tensor<i32>",
    ]
    entries = []
    for k, (a, b) in enumerate(zip(args, along, strict=True)):
        if not b:
            entries.append(f"%a{k}")
            continue
        sizes = ", ".join(str(size) for size in (width, *a.shape))
        index = ", ".join(["%i", *["%o"] * len(a.shape)])
        kinds = ", ".join([types[k], *["tensor<i32>"] * (1 + len(a.shape))])
        lines += [
            f"%s{k} = stablehlo.dynamic_slice %a{k}, {index}, sizes = [{sizes}] : "
            f"({kinds}) -> {_whole(a, (width,))}",
            f"%x{k} = stablehlo.reshape %s{k} : ({_whole(a, (width,))}) -> {_whole(a, lanes)}",
        ]
        entries.append(f"%x{k}")
    ins = ", ".join(_whole(a, lanes if b else ()) for a, b in zip(args, along, strict=True))
    each = ", ".join(_whole(a, lanes) for a in results)
    call = "%y" if m == 1 else f"%y:{m}"
    marks = 'mhlo.frontend_attributes = {inlineable = "false", xla_cpu_small_call = "true"}'
    given = ", ".join(entries)
    lines.append(f"{call} = func.call @{name}({given}) {{{marks}}} : ({ins}) -> ({each})")
    for k, a in enumerate(results):
        source = "%y" if m == 1 else f"%y#{k}"
        index = ", ".join(["%i", *["%o"] * len(a.shape)])
        block = _whole(a, (width,))
        kinds = ", ".join([outs[k], block, *["tensor<i32>"] * (1 + len(a.shape))])
        lines += [
            f"%z{k} = stablehlo.reshape {source} : ({_whole(a, lanes)}) -> {block}",
            f"%u{k} = stablehlo.dynamic_update_slice %r{k}, %z{k}, {index} : "
            f"({kinds}) -> {outs[k]}",
        ]
    values = ["%next", *(f"%a{k}" for k in range(n)), *(f"%u{k}" for k in range(m))]
    lines += [f"stablehlo.return {', '.join(values)} : {carried}", "}"]
    heads = ", ".join(f"%arg{k}: {t}" for k, t in enumerate(types))
    tails = ", ".join(outs)
    found = ", ".join(f"%w#{1 + n + k}" for k in range(m))
    lines.append(f"return {found} : {tails}")
    inner = f"func.func private @{name}({ins}) -> ({each})"
    text = "\n".join(lines)
    return f"func.func private @native_batch({heads}) -> ({tails}) {{\n{text}\n}}\n{inner}"
