"""Kinds of values in a file: the values a key allows, in words, and their check.

They follow from the type of a field: str, bool, int, float, a `Literal` of strings, lists and
unions of these, and dictionaries, which are tables with the user's names as keys. Unit, sign, range
and shape, which a type cannot express, are declared by `difflie.number`:

    dt: Annotated[float, number(unit="s", positive=True)]

Annotated with a type, too, a field takes values of that type in files.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from ..system.fields import Number
from ..system.validation import LARGEST, format_value, nearest
from .toml import Faults

_WHOLE = 2**31 - 1
_WORDS = {2: "two", 3: "three", 6: "six"}


@dataclass(frozen=True)
class Kind:
    """A kind of value: its name in singular and plural, and its check.

    choices: the allowed values, if they are listed; number: the declaration of its numbers.
    """

    one: str
    many: str
    fits: Callable[[Any], bool]
    choices: tuple[str, ...] = ()
    number: Number | None = None

    def read(self, value: Any, where: str, faults: Faults) -> Any:
        """The value of the key `where`, converted; its faults are reported."""
        if self.fits(value):
            return self.inside(value, where, faults)
        wrong = [*_unusable(value, where)]
        faults.add(*wrong or [f"{where} is {format_value(value)}; it must be {self.needed(value)}"])
        return None

    def inside(self, value: Any, where: str, faults: Faults) -> Any:
        """A value of this kind, converted."""
        wrong = [*_unusable(value, where)]
        if not wrong and self.number is not None:
            wrong = [self.number.fault(where, np.asarray(value))]
        faults.add(*filter(None, wrong))
        return value

    def needed(self, value: Any) -> str:
        """What is needed instead of a value, for the end of a message."""
        unit = f" ({self.number.unit})" if self.number and self.number.unit else ""
        near = nearest(value, self.choices) if isinstance(value, str) else ""
        return f"{self.one}{unit}{near}"


@dataclass(frozen=True, kw_only=True)
class Entries(Kind):
    """A table whose keys and values are each of one kind."""

    keys: Kind
    values: Kind

    def inside(self, value: dict[str, Any], where: str, faults: Faults) -> dict[str, Any]:
        for name, entry in value.items():
            if self.keys.fits(name):
                self.values.read(entry, f"{where}.{format_value(name)[1:-1]}", faults)
            else:
                needed = self.keys.needed(name)
                faults.add(f"a key of {where} is {format_value(name)}; it must be {needed}")
        return value


def list_of(kind: Kind, count: int | None = None) -> Kind:
    """A list of values of a kind, of length `count` or of any length."""

    def fits(value: Any) -> bool:
        right = isinstance(value, list) and count in (None, len(value))
        return right and all(map(kind.fits, value))

    many = kind.many if count is None else f"{_WORDS.get(count, count)} {kind.many}"
    return Kind(f"a list of {many}", f"lists of {many}", fits)


def kind_of(hint: Any) -> Kind | None:
    """The kind of the values of a type; None for a type that a file cannot hold."""
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if origin is None:
        return _PLAIN.get(hint)
    if origin is Annotated:
        return _declared(*inside)
    if origin is typing.Literal:
        words = ", ".join(map(repr, inside))
        return Kind(f"one of {words}", f"strings out of {words}", inside.__contains__, inside)
    inside = [h for h in inside if h not in (types.NoneType, Ellipsis)]
    kinds = [kind for kind in map(kind_of, inside) if kind is not None]
    if not kinds or len(kinds) < len(inside):
        return None
    if origin is dict:
        keys, values = kinds
        words = f"a table of {values.many}", f"tables of {values.many}"
        return Entries(*words, lambda v: isinstance(v, dict), keys=keys, values=values)
    if origin in (typing.Union, types.UnionType):
        return kinds[0] if len(kinds) == 1 else _either(kinds)
    return list_of(kinds[0]) if origin in (list, tuple, Sequence) and len(kinds) == 1 else None


def _declared(hint: Any, *given: Any) -> Kind | None:
    """The kind of numbers that are declared, also of arrays; or of a narrower type."""
    number = next((about for about in given if isinstance(about, Number)), None)
    hint = next((about for about in given if about is not number), hint)
    if number is None:
        return kind_of(hint)
    if hint is int or number.shape is None:
        kind = kind_of(hint) or _NUMBERS
    else:
        kind = _PLAIN[float]
        for n in reversed(number.shape):
            kind = list_of(kind, n)
    return replace(kind, number=number)


def _either(kinds: Sequence[Kind]) -> Kind:
    one, many = " or ".join(k.one for k in kinds), " or ".join(k.many for k in kinds)
    return Kind(one, many, lambda value: any(k.fits(value) for k in kinds))


def _is_regular(value: Any) -> bool:
    """Whether a value is a number, or a regular nested list of numbers."""
    if not isinstance(value, list):
        return _PLAIN[float].fits(value)
    return all(map(_is_regular, value)) and len({np.shape(x) for x in value}) < 2


def _unusable(value: Any, where: str) -> Iterator[str]:
    """The faults of numbers that no key allows: infinite, NaN, or beyond 64 bits."""
    if isinstance(value, list | dict):
        for name, inside in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _unusable(inside, f"{where}[{format_value(name)}]")
    elif isinstance(value, float) and not math.isfinite(value):
        yield f"{where} is {value}; it must be finite"
    elif isinstance(value, float) and abs(value) > LARGEST:
        yield f"{where} is {value}; it must be at most {LARGEST:g}"
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        yield (
            f"{where} is a whole number beyond 64 bits; give a smaller one, or write it with a "
            "decimal point"
        )


STRING = Kind("a string", "strings", lambda v: isinstance(v, str))
_PLAIN: dict[Any, Kind] = {
    str: STRING,
    bool: Kind("true or false", "values true or false", lambda v: isinstance(v, bool)),
    # Counts: iterations, rows.
    int: Kind(
        f"a whole number below {_WHOLE}",
        f"whole numbers below {_WHOLE}",
        lambda v: type(v) is int and abs(v) < _WHOLE,
    ),
    float: Kind("a number", "numbers", lambda v: type(v) in (int, float)),
}
_NUMBERS = Kind("a number, or numbers in lists", "numbers in lists", _is_regular)
