"""Programs as text to read: a line for each instruction that matters, in order.

    %7 = f64 fma %3, %4, %6

Numbers that are known stand in place of operands. Arguments have names, and loops inside are
indented below the instruction that runs them.
"""

from __future__ import annotations

from collections.abc import Sequence

from .instructions import Instructions


def listing(program: Instructions, arguments: Sequence[str], results: Sequence[str]) -> list[str]:
    """The lines of a program, whose arguments and results have these names."""
    known, operations = program.known, program.operations

    def name_of(x: int) -> str:
        if known[x] is not None:
            return repr(known[x])
        if operations[x] == "argument":
            return arguments[program.places[x]]
        return f"%{x}"

    lines = []
    for k in program.used():
        if known[k] is not None or operations[k] == "argument":
            continue
        words = [operations[k], ", ".join(map(name_of, program.operands[k]))]
        if k in program.places:
            words.append(f"number {program.places[k]}")
        if k in program.sizes:
            words.append("of {} x {} by {} x {}".format(*_shapes(program.sizes[k])))
        # What has several results has the types of its items.
        several = operations[k] in ("while", "product")
        lines.append(f"%{k} = {'' if several else program.types[k] + ' '}{' '.join(words)}")
        if k in program.loops:
            loop = program.loops[k]
            count = len(program.operands[k])
            names = [f"fixed[{i}]" for i in range(loop.fixed)]
            carried = [f"carried[{i}]" for i in range(count - loop.fixed)]
            names += carried
            for head, inner, found in (
                ("while", loop.condition, ["going"]),
                ("do", loop.body, carried),
            ):
                lines.append(f"  {head}")
                lines += [f"    {line}" for line in listing(inner, names, found)]
    return lines + [
        f"{name} <- {name_of(x)}" for name, x in zip(results, program.results, strict=True)
    ]


def _shapes(sizes: tuple[int, int, int]) -> tuple[int, int, int, int]:
    rows, summed, columns = sizes
    return rows, summed, summed, columns
