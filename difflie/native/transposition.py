"""The transpose of a linear part of a program, in one sweep back over its instructions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .program import Program, Unsupported


def transposed(
    program: Program, inputs: Sequence[int], outputs: Sequence[int], cotangents: Sequence[int]
) -> list[int]:
    """The cotangents of placeholders, from those of scalars that are linear in them.

    Appends x* = sum over y of (dy/dx) y* to the program, from the last instruction to the first.
    """
    varied = _varied(program, inputs)
    needed = [program.needed(y) for y in outputs]
    vanished = program.forget()
    on: dict[int, int] = {}

    def give(x: int, cotangent: int) -> None:
        x = program.base(x)
        if x in varied:
            known = on.get(x)
            on[x] = cotangent if known is None else program.add(known, cotangent, kinds[x])

    kinds = program.types
    for y, cotangent in zip(outputs, cotangents, strict=True):
        give(y, cotangent)
    first = min(inputs, default=0)
    solutions: dict[int, dict[int, int]] = {}
    for k in range(len(program.operations) - 1, first - 1, -1):
        if k in solutions:
            operands = program.operands[k]
            zeros = [program.constant(0.0, kinds[x]) for x in operands]
            given = [solutions[k].get(i, zero) for i, zero in enumerate(zeros)]
            for x, cotangent in zip(operands, program.solves[k](program, given), strict=True):
                give(x, cotangent)
        if k not in on or program.operations[k] == "placeholder":
            continue
        cotangent, kind = on.pop(k), kinds[k]
        operation, operands = program.operations[k], program.operands[k]
        if operation == "add":
            for x in operands:
                give(x, cotangent)
        elif operation == "sub":
            give(operands[0], cotangent)
            give(operands[1], program.unary("neg", cotangent, kind))
        elif operation == "neg":
            give(operands[0], program.unary("neg", cotangent, kind))
        elif operation == "mul":
            x, y = operands
            if x in varied and y in varied:
                raise Unsupported("what should be linear is not")
            if x in varied:
                give(x, program.mul(y, cotangent, kind))
            else:
                give(y, program.mul(x, cotangent, kind))
        elif operation == "div" and operands[1] not in varied:
            give(operands[0], program.div(cotangent, operands[1], kind))
        elif operation == "select" and operands[0] not in varied:
            which, yes, no = operands
            zero = program.constant(0.0, kind)
            give(yes, program.select(which, zero, cotangent, kind))
            give(no, program.select(which, cotangent, zero, kind))
        elif operation == "item" and program.operations[operands[0]] == "solve":
            solutions.setdefault(operands[0], {})[operands[1]] = cotangent
        elif operation == "convert":
            give(operands[0], program.convert(cotangent, kinds[operands[0]]))
        else:
            raise Unsupported(f"the transpose of the operation {operation}")
    found = [on.get(x, program.constant(0.0, kinds[x])) for x in inputs]
    lost = [vanished.get(y, 0) for y in outputs]
    return _showing(program, inputs, zip(lost, needed, cotangents, strict=True), found)


def _varied(program: Program, inputs: Sequence[int]) -> set[int]:
    """The scalars that depend on placeholders."""
    varied = set(inputs)
    for k in range(min(inputs, default=len(program.operations)), len(program.operations)):
        operation = program.operations[k]
        if operation == "item":
            if program.operands[k][0] in varied:
                varied.add(k)
        elif operation != "argument" and any(x in varied for x in program.operands[k]):
            varied.add(k)
    return varied


def _showing(
    program: Program,
    inputs: Sequence[int],
    outputs: Iterable[tuple[int, int, int]],
    found: Sequence[int],
) -> list[int]:
    """The cotangents found, showing what has vanished from the coefficients and with them.

    Of every output, what has vanished from it, what it should show, and its cotangent.
    """
    bits = {program.bit(x): place for place, x in enumerate(inputs)}
    linear = 0
    for bit in bits:
        linear |= bit
    entries = [0] * len(found)
    for lost, needed, cotangent in outputs:
        if not lost:
            continue
        others, vanished = lost & ~linear, lost & linear
        reached = needed & linear
        while reached:
            bit = reached & -reached
            reached ^= bit
            entries[bits[bit]] |= others
            if vanished & bit:
                entries[bits[bit]] |= program.needed(cotangent)
    return [program.showing(x, e & ~linear) for x, e in zip(found, entries, strict=True)]
