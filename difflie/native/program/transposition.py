"""The transpose of a linear part of a program, in one sweep back over its instructions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .folding import Program
from .instructions import Unsupported, union


def transposed(
    program: Program, inputs: Sequence[int], outputs: Sequence[int], cotangents: Sequence[int]
) -> list[int]:
    """The cotangents of placeholders, from those of scalars that are linear in them.

    Appends x* = sum over y of (dy/dx) y* to the program, from the last instruction to the first.
    """
    varied = _varied(program, inputs)
    needed = [program.needed(y) for y in outputs]
    folded = program.forget()
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
    outside = program.strict
    for k in range(len(program.operations) - 1, first - 1, -1):
        # What is transposed is as strict as what it comes from.
        program.strict = k in program.strict_ones
        if k in solutions:
            operands, solve = program.operands[k], program.solves[k]
            zeros = map(program.zero, solve.kinds)
            on_solution = [solutions[k].get(i, zero) for i, zero in enumerate(zeros)]
            on_right = solve.append(program, on_solution)
            for x, cotangent in zip(operands, on_right, strict=True):
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
            zero = program.zero(kind)
            give(yes, program.select(which, zero, cotangent, kind))
            give(no, program.select(which, cotangent, zero, kind))
        elif operation == "item" and program.operations[operands[0]] == "solve":
            solutions.setdefault(operands[0], {})[program.places[k]] = cotangent
        elif operation == "convert":
            give(operands[0], program.convert(cotangent, kinds[operands[0]]))
        else:
            raise Unsupported(f"the transpose of the operation {operation}")
    program.strict = outside
    sums = [on.get(x, program.zero(kinds[x])) for x in inputs]
    lost = [folded.get(y, 0) for y in outputs]
    return _showing(program, inputs, zip(lost, needed, cotangents, strict=True), sums)


def _varied(program: Program, inputs: Sequence[int]) -> set[int]:
    """The scalars that depend on placeholders."""
    varied = set(inputs)
    for k in range(min(inputs, default=len(program.operations)), len(program.operations)):
        if not varied.isdisjoint(program.operands[k]):
            varied.add(k)
    return varied


def _showing(
    program: Program,
    inputs: Sequence[int],
    outputs: Iterable[tuple[int, int, int]],
    sums: Sequence[int],
) -> list[int]:
    """The cotangents of inputs, showing what is lost from the coefficients and with them.

    Of every output, what is lost from it, what it should show, and its cotangent.
    """
    bits = {program.shown[x]: place for place, x in enumerate(inputs)}
    linear = union(bits)
    entries = [0] * len(sums)
    for lost, needed, cotangent in outputs:
        if not lost:
            continue
        reached = needed & linear
        while reached:
            bit = reached & -reached
            reached ^= bit
            entries[bits[bit]] |= lost & ~linear
            if lost & bit:
                entries[bits[bit]] |= program.needed(cotangent)
    return [program.showing(x, e & ~linear) for x, e in zip(sums, entries, strict=True)]
