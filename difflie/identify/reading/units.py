"""Units in the header of a column: `tau [Nm]`, `q1 (deg)`, `t [ms]`."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re

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
    (_ANGLES, "an angular velocity", "an angular acceleration", "rad"),
    (_LENGTHS, "a velocity", "an acceleration", "m"),
)
UNITS: dict[str, Unit] = {
    "rpm": Unit(2 * math.pi / 60, "an angular velocity", "rad/s"),
    **{n: Unit(f, measures, si) for known, measures, si in _PLAIN for n, f in known.items()},
}
for _known, _speed, _acceleration, _si in _RATES:
    for (_name, _factor), _form in itertools.product(_known.items(), _PER_SECOND):
        UNITS[_form.format(_name)] = Unit(_factor, _speed, f"{_si}/s")
    for (_name, _factor), _form in itertools.product(_known.items(), _PER_SECOND_SQUARED):
        UNITS[_form.format(_name)] = Unit(_factor, _acceleration, f"{_si}/s^2")

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
