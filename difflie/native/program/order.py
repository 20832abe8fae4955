"""What printers of programs ask: in which order, and what depends on which arguments."""

from __future__ import annotations

from collections.abc import Sequence

from .instructions import Instructions, Unsupported

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
