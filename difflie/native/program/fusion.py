"""Fused multiply-add: which products of a program are rounded together with a sum.

Processors compute a b + c with one rounding, in the time of a product. Compilers use this where
they may, and decide it by how much they optimise. So it is decided here, by one rule for all back
ends: a product of floating-point numbers is fused with the sum or difference that it is used in,
if it is used nowhere else, and if both are computed equally often. No result depends on which back
end prints a program, or on how much a compiler optimises.
"""

from __future__ import annotations

import copy
from collections import Counter

from .instructions import Instructions, While, greatest


def fused(program: Instructions, fixed: int) -> Instructions:
    """The program with fused operations, also in the loops inside; the given one stays as it is.

    What depends on the first `fixed` arguments only is computed once, and not in every iteration.
    """
    new = copy.copy(program)
    # It is another program.
    vars(new).pop("digest", None)
    new.operations, new.operands = list(program.operations), list(program.operands)
    new.loops = {k: _inside(loop) for k, loop in program.loops.items()}
    used = program.used()
    at_iterations = [i >= fixed for i in range(len(program.arguments))]
    repeated = greatest(program, used, at_iterations, False)
    uses = Counter(x for k in used for x in program.operands[k])
    uses.update(program.results)

    def fuses(product: int, k: int) -> bool:
        once = uses[product] == 1 and repeated[product] == repeated[k]
        return once and program.operations[product] == "mul" and program.known[product] is None

    for k in used:
        operation = program.operations[k]
        if operation not in ("add", "sub") or program.types[k][0] != "f":
            continue
        x, y = program.operands[k]
        # Of two products, the last one: what comes first is often a sum that is under way.
        if fuses(y, k):
            new.operations[k] = "fma" if operation == "add" else "fnma"
            new.operands[k] = (*program.operands[y], x)
        elif fuses(x, k):
            new.operations[k] = "fma" if operation == "add" else "fms"
            new.operands[k] = (*program.operands[x], y)
    return new


def _inside(loop: While) -> While:
    condition, body = (fused(x, loop.fixed) for x in (loop.condition, loop.body))
    return loop._replace(condition=condition, body=body)
