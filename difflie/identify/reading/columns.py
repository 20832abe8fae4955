"""Columns of numbers by name, with units in their headers, and expressions of them.

Units stand in brackets: `tau [Nm]`, `q1 (deg)`, `t [ms]`. Expressions, such as "th2 - th1", are of
names of columns, numbers, `pi`, + - * /, signs and parentheses; a name that is no word stands in
backquotes. Nothing else is evaluated, whatever a file of settings says.
"""

from __future__ import annotations

import ast
import dataclasses
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ...system.validation import InputError, format_value, nearest

_BRACKETS = re.compile(r"(.*\S)\s*(?:\[([^\[\]]*)\]|\(([^()]*)\))")
# An index of an array, as in `q[0]`, or of what is counted, is no unit.
_INDEX = re.compile(r"\s*[\d,:\s]*")


@dataclasses.dataclass(frozen=True)
class Unit:
    """A unit: the factor that converts its numbers to SI, what it measures, and the SI unit."""

    factor: float
    measures: str
    si: str


_ANGLES = {
    **dict.fromkeys(("rad", "radian", "radians"), 1.0),
    **dict.fromkeys(("deg", "degree", "degrees", "°"), math.pi / 180),
    **dict.fromkeys(("rev", "turn", "turns"), 2 * math.pi),
    "mrad": 1e-3,
}
_LENGTHS = {"m": 1.0, "cm": 1e-2, "mm": 1e-3}
_PER_SECOND = "{}/s", "{}s^-1", "{}s-1", "{}/sec"
_PER_SECOND_SQUARED = "{}/s^2", "{}/s2", "{}/s²", "{}/s**2", "{}/s/s", "{}s^-2", "{}s-2"
_PLAIN = (
    (_ANGLES, "an angle", "rad"),
    (_LENGTHS, "a length", "m"),
    ({"s": 1.0, "sec": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}, "a time", "s"),
    ({"Nm": 1.0, "mNm": 1e-3, "kNm": 1e3}, "a torque", "N m"),
    ({"N": 1.0, "mN": 1e-3, "kN": 1e3}, "a force", "N"),
    ({"A": 1.0, "mA": 1e-3}, "a current", "A"),
    ({"V": 1.0, "mV": 1e-3}, "a voltage", "V"),
    (dict.fromkeys(("-", "1", ""), 1.0), "a number", ""),
)
_RATES = (
    (_ANGLES, _PER_SECOND, "an angular velocity", "rad/s"),
    (_ANGLES, _PER_SECOND_SQUARED, "an angular acceleration", "rad/s^2"),
    (_LENGTHS, _PER_SECOND, "a velocity", "m/s"),
    (_LENGTHS, _PER_SECOND_SQUARED, "an acceleration", "m/s^2"),
)
UNITS: dict[str, Unit] = {
    "rpm": Unit(2 * math.pi / 60, "an angular velocity", "rad/s"),
    **{n: Unit(f, measures, si) for known, measures, si in _PLAIN for n, f in known.items()},
    **{
        form.format(name): Unit(factor, measures, si)
        for known, forms, measures, si in _RATES
        for name, factor in known.items()
        for form in forms
    },
}

# What the columns of a quantity may measure; efforts are also commands, in the units of actuators.
MEASURES = {
    "time": ("a time", "a number"),
    "q": ("an angle", "a length", "a number"),
    "v": ("an angular velocity", "a velocity", "a number"),
    "a": ("an angular acceleration", "an acceleration", "a number"),
    "tau": ("a torque", "a force", "a current", "a voltage", "a number"),
}


def name_and_unit(header: str) -> tuple[str, str | None]:
    """The name in a header and the unit in brackets at its end, None where there is none."""
    found = _BRACKETS.fullmatch(header)
    if found is None:
        return header, None
    name, square, round_ = found.groups()
    unit = square if square is not None else round_
    return (header, None) if _INDEX.fullmatch(unit) else (name, unit)


def unit_of(written: str) -> Unit | None:
    """The unit as written, such as "N m", "Nm", "N*m" and "N·m"; None if it is not known."""
    plain = re.sub(r"[\s·*]|(?<=N)\.(?=m)", "", written.replace("**", "^"))
    # Words are known in any case, symbols such as N and mN in theirs alone.
    return UNITS.get(plain) or UNITS.get(plain.lower() if len(plain) > 2 else plain)


_BINARY: Mapping[type, Callable] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_UNARY: Mapping[type, Callable] = {ast.UAdd: operator.pos, ast.USub: operator.neg}
_LONGEST = 1000
_QUOTED = re.compile(r"`([^`]+)`")
_Value = TypeVar("_Value")


class Expression:
    """An expression, parsed; `names` are those of the columns in it, in order.

    Raises ValueError, whose message says what is wrong, for text that is no such expression.
    """

    def __init__(self, text: str):
        if len(text) > _LONGEST:
            raise ValueError("it is too long")
        quoted: list[str] = []

        def placeholder(match: re.Match) -> str:
            quoted.append(match[1])
            return f" column{len(quoted)}_ "

        plain = _QUOTED.sub(placeholder, text).strip()
        self._columns = {f"column{k}_": name for k, name in enumerate(quoted, 1)}
        try:
            self._root = ast.parse(plain, mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            raise ValueError("it is no arithmetic expression") from None
        self.names: list[str] = []
        self._check(self._root)

    def __call__(self, column: Callable[[str], _Value]) -> _Value | float:
        """The value, given that of each column by name."""
        return self._value(self._root, column)

    def _check(self, node: ast.AST) -> None:
        match node:
            case ast.BinOp(left, op, right) if type(op) in _BINARY:
                self._check(left)
                self._check(right)
            case ast.UnaryOp(op, operand) if type(op) in _UNARY:
                self._check(operand)
            case ast.Name(name):
                if name != "pi" and (column := self._columns.get(name, name)) not in self.names:
                    self.names.append(column)
            case ast.Constant(int() | float() as number) if not isinstance(number, bool):
                pass
            case _:
                raise ValueError(
                    f"{ast.unparse(node)!r} is not allowed; write columns, numbers, pi, + - * /"
                )

    def _value(self, node: ast.AST, column: Callable[[str], _Value]) -> _Value | float:
        match node:
            case ast.BinOp(left, op, right):
                return _BINARY[type(op)](self._value(left, column), self._value(right, column))
            case ast.UnaryOp(op, operand):
                return _UNARY[type(op)](self._value(operand, column))
            case ast.Constant(int() | float() as number):
                return float(number)
        assert isinstance(node, ast.Name)
        return math.pi if node.id == "pi" else column(self._columns.get(node.id, node.id))


class DataError(InputError):
    """Unusable measurements; the message names the file, the column and the fix."""


def refuse(name: str, *faults: tuple[object, str]) -> None:
    """Raises DataError for the first fault that is there; each says what is wrong, and the fix.

    name: of the file or machine, with which the message begins.
    """
    for fault in (said for wrong, said in faults if wrong):
        raise DataError(f"{name}: {fault}")


@dataclasses.dataclass(frozen=True)
class Columns:
    """The columns of a log by header, each (n,) as written, and the place of each row.

    log: the file, for messages. For an archive `values` has all its arrays, not only columns. lines
    (n,): the line numbers of a text file, the first being 1; None for others, whose rows are
    counted from 1. sparse: each row has some of the columns, as the messages of a bag do; those
    without any that is asked for are none of its rows.

    A header may end with a unit in brackets. The name is what stands before it, and the numbers are
    given in SI units.
    """

    log: str
    values: dict[str, NDArray]
    lines: NDArray | None = None
    sparse: bool = False

    def __getitem__(self, name: str) -> NDArray:
        """The column (n,) in SI units, by name or whole header.

        Raises DataError for an unknown name, with the nearest one, and for an unknown unit.
        """
        header = self.header(name)
        found = self.values[header]
        if found.ndim != 1 or found.dtype.kind not in "iuf":
            raise DataError(
                f"{self.log}: the array {format_value(header)} has shape {found.shape} and type "
                f"{found.dtype}; give one of real numbers (n,) for each column"
            )
        unit = self.unit(header)
        return found.astype(float) * (1.0 if unit is None else unit.factor)

    @cached_property
    def names(self) -> list[str]:
        """The names of all columns, without units."""
        return [name_and_unit(header)[0] for header in self.values]

    def header(self, name: str) -> str:
        """The header of the column of this name; raises DataError where there is not one."""
        if name in self.values:
            return name
        headers = [h for h, known in zip(self.values, self.names, strict=True) if known == name]
        if not headers:
            near = nearest(name, [*self.values, *self.names])
            raise DataError(f"{self.log}: there is no column {format_value(name)}{near}")
        if len(headers) > 1:
            raise DataError(
                f"{self.log}: the columns {', '.join(map(repr, headers))} have one name; name the "
                "one that is meant with its unit"
            )
        written = name_and_unit(headers[0])[1]
        if unit_of(written or "") is None:
            raise DataError(
                f"{self.log}: column {format_value(headers[0])}: the unit {format_value(written)} "
                f"is not known{nearest(written or '', UNITS)}; name the whole header, with a "
                "factor that converts it to SI"
            )
        return headers[0]

    def unit(self, header: str) -> Unit | None:
        """The unit in a header; None where there is none that is known."""
        written = name_and_unit(header)[1]
        return None if written is None else unit_of(written)

    def expression(self, text: str) -> Expression | None:
        """An expression of columns; None for the name of one.

        Raises DataError for what is neither.
        """
        if text in self.values or text in self.names:
            return None
        try:
            found = Expression(text)
        except ValueError as error:
            near = nearest(text, self.names)
            raise DataError(
                f"{self.log}: there is no column {format_value(text)}, and {error}{near}"
            ) from None
        return None if found.names == [text] else found

    def headers_in(self, texts: Sequence[str]) -> list[str]:
        """The headers of the columns in names or expressions, each once."""
        expressions = [(text, self.expression(text)) for text in texts]
        names = (n for text, found in expressions for n in (found.names if found else [text]))
        return list(dict.fromkeys(map(self.header, names)))

    def evaluated(self, text: str) -> NDArray:
        """The column (n,) or the expression of columns, in SI units."""
        expression = self.expression(text)
        if expression is None:
            return self[text]
        try:
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                found = np.asarray(expression(self.__getitem__), float)
        except ZeroDivisionError:
            raise DataError(f"{self.log}: {format_value(text)} divides by zero") from None
        except ValueError as error:
            if isinstance(error, DataError):
                raise
            raise DataError(
                f"{self.log}: {format_value(text)}: {error}; give columns alike"
            ) from None
        if not found.ndim:
            raise DataError(
                f"{self.log}: {format_value(text)} is a number; it must contain a column"
            )
        return found

    def place(self, row: int) -> str:
        """The place of a row in the file, for messages."""
        return f"row {row + 1}" if self.lines is None else f"line {self.lines[row]}"

    def rows_with(self, texts: Sequence[str]) -> Columns:
        """The rows in which a column is measured that these names or expressions contain.

        All rows, except of messages of a bag.
        """
        if not self.sparse:
            return self
        columns = [self.values[header] for header in self.headers_in(texts)]
        kept = np.isfinite(np.stack(columns)).any(axis=0)
        return dataclasses.replace(self, values={k: x[kept] for k, x in self.values.items()})

    def times(self, text: str) -> NDArray:
        """The times (n,) in s; raises DataError where they are missing or do not increase."""
        self._check_units("time", text)
        t = self.evaluated(text)
        for k in np.flatnonzero(~np.isfinite(t))[:1]:
            raise DataError(
                f"{self.log}: {self.place(k)}, column {text!r}: the time is {t[k]}; take that "
                "row out"
            )
        for k in np.flatnonzero(np.diff(t) <= 0)[:1]:
            raise DataError(
                f"{self.log}: {self.place(k + 1)}, column {text!r}: {t[k + 1]} s is not after "
                f"the {t[k]} s of {self.place(k)}; sort the rows, and take those out that are "
                "there twice"
            )
        return t

    def quantity(self, quantity: str, texts: Sequence[str], scale: float) -> NDArray:
        """Columns or expressions side by side (n, k), times a factor, in SI units.

        Raises DataError for infinite numbers, for the unit of another quantity, and for a factor
        where the header has converted the numbers already.
        """
        for text in texts:
            self._check_units(quantity, text)
        converted = self.conversions(texts)
        if converted and scale != 1:
            raise DataError(
                f"{self.log}: {converted[0]} by the header, and scale.{quantity} is {scale}; leave "
                "that out"
            )
        parts = [self.evaluated(text) for text in texts]
        if len({len(part) for part in parts}) > 1:
            lengths = ", ".join(str(len(part)) for part in parts)
            raise DataError(f"{self.log}: {list(texts)} have {lengths} rows; give as many of each")
        with np.errstate(over="ignore"):
            found = np.stack(parts, axis=1) * scale
        for k, j in np.argwhere(np.isinf(found))[:1]:
            raise DataError(
                f"{self.log}: {self.place(k)}, column {texts[int(j)]!r}: the number is "
                f"{parts[int(j)][k]}, in SI units {found[k, j]}; leave the cell empty where "
                "nothing was measured"
            )
        return found

    def conversions(self, texts: Sequence[str]) -> list[str]:
        """What the units in headers have done, such as "q1, q2 in deg are read as rad"."""
        by_unit: dict[tuple[str | None, str], list[str]] = {}
        for header in self.headers_in(texts):
            unit, (name, written) = self.unit(header), name_and_unit(header)
            if unit is not None and unit.factor != 1:
                by_unit.setdefault((written, unit.si), []).append(name)
        return [f"{', '.join(n)} in {u} are read as {si}" for (u, si), n in by_unit.items()]

    def unknown_units(self, texts: Sequence[str]) -> list[str]:
        """The headers whose units are not known, which were asked for as a whole."""
        return [
            header
            for header in self.headers_in(texts)
            if name_and_unit(header)[1] is not None and self.unit(header) is None
        ]

    def _check_units(self, quantity: str, text: str) -> None:
        """Raises DataError for a column in the unit of another quantity; see `MEASURES`."""
        if self.expression(text) is not None:
            return
        unit = self.unit(header := self.header(text))
        known = MEASURES.get(quantity)  # other sensors may measure anything
        if unit is not None and known is not None and unit.measures not in known:
            raise DataError(
                f"{self.log}: column {format_value(header)}: its unit is of {unit.measures}, and "
                f"it is given for {quantity}; name the columns of {quantity}"
            )
