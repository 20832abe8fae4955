"""Entries of tables at numbers that are known at run time: a load from memory, for each lane."""

from __future__ import annotations

from ..program import Instructions
from .body import Body
from .module import Module, Place
from .types import TYPE, bytes_of, in_memory, literal, type_of


class Tables:
    """The tables of a program, copied to where their entries are at equal distances.

    places: where the scalars of the program are.
    """

    def __init__(self, module: Module, program: Instructions, places: dict[int, Place]):
        self._module, self._program, self._places = module, program, places
        self._copies: dict[tuple[int, ...], list[Place]] = {}

    def lines(self, k: int, lanes: int) -> list[str]:
        """The lines of entry k, with so many lanes; sets its place."""
        program = self._program
        which, *table = program.operands[k]
        kind, lines = program.types[k], []
        places = self._lying(tuple(table), kind, lines)
        self._places[k] = self._module.frame.scalar(kind, lanes)
        body = Body(self._module, program, self._places)
        value = self._loaded(body, which, places, kind, lanes)
        body.store(value, self._places[k], kind)
        return [*lines, self._module.function(body.lines)]

    def _lying(self, table: tuple[int, ...], kind: str, lines: list[str]) -> list[Place]:
        """The places of a table at equal distances, where it is or in a copy that others share."""
        program = self._program
        if all(program.known[x] is None for x in table):
            places = [self._places[x] for x in table]
            step = places[1].offset - places[0].offset
            even = range(places[0].offset, places[0].offset + step * len(places), step or 1)
            if [p.offset for p in places] == [*even] and len({p.lanes for p in places}) == 1:
                return places
        if table not in self._copies:
            lanes = max(
                (self._places[x].lanes for x in table if program.known[x] is None), default=1
            )
            targets = self._module.frame.array(kind, len(table), lanes)
            body = Body(self._module, program, self._places)
            for x, target in zip(table, targets, strict=True):
                body.store(body.value(x, lanes), target, kind)
            lines.append(self._module.function(body.lines))
            self._copies[table] = targets
        return self._copies[table]

    def _loaded(self, body: Body, which: int, table: list[Place], kind: str, lanes: int) -> str:
        source = self._program.types[which]
        first, last = table[0], len(table) - 1
        step = table[1].offset - first.offset
        # A number that differs between lanes is taken apart.
        of_lanes = self._places[which].lanes
        number, t = body.value(which, of_lanes), type_of(source, of_lanes)
        sign = "s" if source[0] == "i" else "u"
        for way, bound in (("gt", 0), ("lt", last)):
            limit = literal(bound, source, of_lanes)
            inside = body.op(f"icmp {sign}{way} {t} {number}, {limit}")
            truths = type_of("b1", of_lanes)
            number = body.op(f"select {truths} {inside}, {t} {number}, {t} {limit}")
        if bytes_of(source) < 8:
            wide = type_of("i64", of_lanes)
            number = body.op(f"{'sext' if sign == 's' else 'zext'} {t} {number} to {wide}")

        def read(number: str, place: Place) -> str:
            """The entry of one number, of the lanes of a place."""
            offset = body.op(f"mul i64 {number}, {step}")
            offset = body.op(f"add i64 {offset}, {place.offset}")
            at = body.op(f"getelementptr i8, ptr %m, i64 {offset}")
            memory = in_memory(kind, place.lanes)
            x = body.op(f"load {memory}, ptr {at}, align {bytes_of(kind)}")
            if kind != "b1":
                return x
            return body.op(f"trunc {memory} {x} to {type_of(kind, place.lanes)}")

        if of_lanes == 1:
            x = read(number, first)
            return x if first.lanes == lanes else body.spread(x, kind, lanes)
        vector, result = type_of(kind, lanes), "poison"
        for i in range(lanes):
            one = body.op(f"extractelement {type_of('i64', lanes)} {number}, i32 {i}")
            own = i * bytes_of(kind) if first.lanes > 1 else 0
            x = read(one, Place(first.offset + own, 1))
            result = body.op(f"insertelement {vector} {result}, {TYPE[kind]} {x}, i32 {i}")
        return result
