"""Which pairs of shapes may touch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

import numpy as np
from jax.core import Tracer

from ..system.joints import Fixed
from ..system.system import System
from ..system.topology import WORLD
from ..system.validation import format_value, nearest

Pair = tuple[str, str]


def matching_pairs(
    system: System,
    first: str = "*",
    second: str = "*",
    without: Iterable[Pair] = (),
    disabled: Iterable[Pair] = (),
) -> list[Pair]:
    """The pairs of shapes of two different bodies that two patterns select, once each, in order.

    first, second: patterns for names of shapes, as in the shell. Left out are two shapes that do
    not move against each other, two planes, and shapes of two bodies that one joint connects,
    unless one of these stands still; the pairs that the patterns of one of `without` select, and
    those of two bodies that one of `disabled` names. Raises ValueError for a pattern without a
    shape, and for an unknown body, with the nearest one, and where no pair is left.
    """
    found = pairs_that_match(system, first, second, without, disabled)
    if not found:
        raise ValueError(
            f"{system.name}: no two of the shapes {format_value(first)} and "
            f"{format_value(second)} may touch: shapes of one body, of two bodies that a joint "
            "connects, and those that were left out do not"
        )
    return found


def pairs_that_match(
    system: System,
    first: str = "*",
    second: str = "*",
    without: Iterable[Pair] = (),
    disabled: Iterable[Pair] = (),
) -> list[Pair]:
    """The pairs of `matching_pairs`, none where no pair is left."""
    shapes = list(system.shapes)
    chosen = [_selected(system, pattern, shapes) for pattern in (first, second)]
    bodies = {frozenset(_bodies(system, pair)) for pair in disabled}
    owners = {name: system.shapes[name].frame.body for name in shapes}
    excluded = [tuple(_selected(system, p, shapes) for p in pair) for pair in without]
    found: dict[frozenset[str], Pair] = {}
    for a in chosen[0]:
        for b in chosen[1]:
            out = any((a in x and b in y) or (a in y and b in x) for x, y in excluded)
            out |= frozenset((owners[a], owners[b])) in bodies
            if a != b and not out and _may_touch(system, a, b):
                found.setdefault(frozenset((a, b)), (a, b))
    return list(found.values())


def _selected(system: System, pattern: str, shapes: Sequence[str]) -> set[str] | list[str]:
    chosen = [name for name in shapes if name == pattern or fnmatchcase(name, pattern)]
    if not chosen:
        near = nearest(str(pattern), shapes) or f"; there are {', '.join(shapes) or 'none'}"
        raise ValueError(f"{system.name}: no shape is named {format_value(pattern)}{near}")
    return chosen


def _bodies(system: System, pair: Pair) -> Pair:
    for name in pair:
        if name not in system.body_names:
            raise ValueError(
                f"{system.name}: {format_value(pair[0])} and {format_value(pair[1])} are not to "
                f"touch, and no body is named {format_value(name)}"
                f"{nearest(name, system.body_names)}"
            )
    return pair


def _may_touch(system: System, a: str, b: str) -> bool:
    one, other = (_mover(system, system.shapes[name].frame.body) for name in (a, b))
    if one == other:
        return False
    t = system.topology
    if WORLD in (one, other):
        return True
    above = [_mover_of(system, int(t.parents[x]), massless=True) for x in (one, other)]
    return above[0] != other and above[1] != one


def _mover(system: System, body: str | None) -> int:
    """The number of the body on a joint that carries a body; WORLD where it stands still."""
    return WORLD if body is None else _mover_of(system, system.body_names.index(body))


def _mover_of(system: System, b: int, massless: bool = False) -> int:
    """massless: whether to go up from bodies without mass, which stand between several joints."""
    t, mass = system.topology, system.bodies.mass
    weightless = np.zeros(len(t.bodies)) if isinstance(mass, Tracer) else np.asarray(mass) == 0
    while b != WORLD and (isinstance(t.types[b], Fixed) or (massless and weightless[b])):
        b = int(t.parents[b])
    return b
