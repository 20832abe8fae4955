"""TOML files as dataclasses and modules: a table is a class, a key one of its fields."""

from __future__ import annotations

import dataclasses
import math
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..forces.actuators.axis import as_axis
from ..forces.path import as_path
from ..system.fields import Number
from ..system.validation import LARGEST, InputError, nearest, shown
from .files import absence, present

_DEEPEST = 20
_DIGITS = re.compile(r"\d[\d_]{1000}")


class ConfigError(InputError):
    """A configuration that cannot be run; the message names the file, the key and the fix."""


def read_tables(path: Path) -> dict[str, Any]:
    """What a TOML file says; raises `ConfigError` for one that is missing or broken.

    So does a number that no table has a use for: infinite, NaN, or a whole one beyond 64 bits.
    """
    if path.is_dir():
        raise ConfigError(f"{path}: this is a directory; name a .toml file in it")
    if not present(path):
        raise ConfigError(f"{path}: there is no such file{absence(path)}")
    try:
        # Some editors put a mark in front of UTF-8.
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: this is not TOML: {error}; save it as UTF-8") from None
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: this is not TOML: {error}; correct it there") from None
    except ValueError:
        found = _DIGITS.search(text)  # the limit of `int`
        line = text[: found.start() if found else 0].count("\n") + 1
        raise ConfigError(
            f"{path}: a number in line {line} has more than a thousand digits; shorten it"
        ) from None
    except RecursionError:
        raise _nested(path) from None
    _check_values(tables, path)
    return tables


def _check_values(tables: dict[str, Any], path: Path) -> None:
    """Raises `ConfigError` for numbers that are none of 64 bits, and for what is nested deep."""
    waiting: list[tuple[str, int, Any]] = [("", 0, tables)]
    while waiting:
        key, depth, value = waiting.pop()
        if depth > _DEEPEST:
            raise _nested(path)
        if isinstance(value, dict):
            start = f"{key}." if key else ""
            # The key only where it can be read.
            waiting += [(start + shown(k)[1:-1], depth + 1, v) for k, v in value.items()]
        elif isinstance(value, list):
            waiting += [(f"{key}[{i}]", depth + 1, v) for i, v in enumerate(value)]
        elif isinstance(value, float) and not math.isfinite(value):
            raise ConfigError(f"{path}: {key} is {value}; it must be finite")
        elif isinstance(value, float) and abs(value) > LARGEST:
            raise ConfigError(f"{path}: {key} is {value}; it must be at most {LARGEST:g}")
        elif isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise ConfigError(
                f"{path}: {key} is a whole number beyond 64 bits; give a smaller one, or write it "
                "with a decimal point"
            )


def _nested(path: Path) -> ConfigError:
    return ConfigError(
        f"{path}: lists and tables are nested more than {_DEEPEST} deep, which no configuration "
        "needs; close brackets, and shorten keys with dots"
    )


def instances(
    path: Path,
    tables: dict[str, Any],
    single: dict[str, type],
    repeated: dict[str, type],
    others: tuple[str, ...] = (),
) -> dict[str, Any]:
    """What a file gives for the tables [name] of the single and [[name]] of the repeated classes.

    others: names of tables that are read elsewhere. Raises `ConfigError` for a table that is not
    known (with the nearest one) or of the other kind, and as its keys and values demand.
    """
    for name, rows in tables.items():
        if name not in single and name not in repeated:
            near = nearest(name, [*single, *repeated, *others])
            raise ConfigError(f"{path}: there is no table [{name}]{near}")
        if name in single and not isinstance(rows, dict):
            raise ConfigError(f"{path}: {name} must be a table: write [{name}]")
        if name in repeated:
            rows_of(rows, name, path)
    parts: dict[str, Any] = {
        name: instance(cls, tables.get(name, {}), path, name) for name, cls in single.items()
    }
    for name, cls in repeated.items():
        each = enumerate(tables.get(name, []))
        parts[name] = [instance(cls, row, path, f"{name}[{i}]") for i, row in each]
    return parts


def rows_of(rows: Any, name: str, path: Path) -> list[dict[str, Any]]:
    """The tables [[name]] of a file; raises `ConfigError` where they are something else."""
    if not _is_list_of_tables(rows):
        raise ConfigError(f"{path}: {name} must be a list of tables: write [[{name}]]")
    return rows


def instance(cls: type, given: dict[str, Any], path: Path, name: str) -> Any:
    """An instance of a dataclass or module with what the table [name] of the file gives.

    Raises `ConfigError` for an unknown or missing key (with the nearest known one), a value that is
    not of the field's type or not what its `number` declares, and what the class refuses.
    """
    required = fields_of(cls, f"{path}: {name}: ")
    for key in given:
        if key not in required:
            raise ConfigError(f"{path}: [{name}] has no key {shown(key)}{nearest(key, required)}")
    for key, needed in required.items():
        if needed and key not in given:
            raise ConfigError(f"{path}: [{name}] lacks the key {shown(key)}")
    values = {}
    for key, f in _keys(cls).items():
        if key in given:
            kind, check = _kind(f)
            if not check(given[key]):
                raise ConfigError(f"{path}: {name}.{key} is {shown(given[key])}; it must be {kind}")
            values[f.name] = given[key]
            if check is _is_path and f.metadata.get("converter"):
                values[f.name] = [(point.get("body"), point["point"]) for point in given[key]]
    try:
        return cls(**values)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{path}: {name}: {error}") from None


def fields_of(cls: type, where: str = "") -> dict[str, bool]:
    """The keys of a table that describes an instance, and whether each must be given.

    Fields whose name is no key have this in their metadata, as "key". Raises `ConfigError`, which
    begins with `where`, for a class that needs what no table can say.
    """
    required = {}
    for key, f in _keys(cls).items():
        default = f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
        if _kind(f) is None:
            if default:
                raise ConfigError(
                    f"{where}{cls.__name__}: a file cannot say its field {f.name!r} of the type "
                    f"{_annotation(f)}; give it a default, or a converter dl.number()"
                )
            continue
        required[key] = default
    return required


def _keys(cls: type) -> dict[str, dataclasses.Field]:
    return {f.metadata.get("key", f.name): f for f in dataclasses.fields(cls) if f.init}


def _annotation(f: dataclasses.Field) -> str:
    if isinstance(f.type, str):
        return f.type
    return f.type.__name__ if type(f.type) is type else str(f.type)


def _kind(f: dataclasses.Field) -> Any:
    """What a value of the field must be, in words and as a check; None for what has no words."""
    about = f.metadata.get("converter")
    if isinstance(about, Number):
        rank = None if about.shape is None else len(about.shape)
        return _NUMBERS.get(rank, _NUMBERS[None])
    if about is as_path:
        return _KINDS["list[dict[str, Any]]"]
    if about is as_axis:
        return _AXIS
    return _KINDS.get(_annotation(f))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and all(_is_number(x) for x in value)


def _is_list_of_tables(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(x, dict) for x in value)


def _is_path(value: Any) -> bool:
    return _is_list_of_tables(value) and all(
        set(x) in ({"point"}, {"point", "body"})
        and isinstance(x.get("body", ""), str)
        and _is_list(x["point"])
        and len(x["point"]) == 3
        for x in value
    )


def _is_axis(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and {"body"} <= value.keys() <= {"body", "position", "direction"}
        and isinstance(value["body"], str)
        and all(_is_list(x) and len(x) == 3 for key, x in value.items() if key != "body")
    )


def _is_nested(value: Any) -> bool:
    return isinstance(value, list) and all(_is_number(x) or _is_nested(x) for x in value)


# The numbers of a field that `number` declares, by how many indices they have.
_NUMBERS: dict[int | None, tuple[str, Callable[[Any], bool]]] = {
    0: ("a number", _is_number),
    1: ("a list of numbers", _is_list),
    2: ("a list of lists of numbers", lambda v: isinstance(v, list) and all(map(_is_list, v))),
    None: ("a number, or numbers in lists", lambda v: _is_number(v) or _is_nested(v)),
}
_AXIS = (
    'an axis {body = "NAME", position = [x, y, z], direction = [x, y, z]} of a body',
    _is_axis,
)
# What is counted: iterations, rows.
_COUNT = (
    f"a whole number below {2**31}",
    lambda v: isinstance(v, int) and not isinstance(v, bool) and abs(v) < 2**31,
)
_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "str": ("a string", lambda v: isinstance(v, str)),
    "str | None": ("a string", lambda v: isinstance(v, str)),
    "int": _COUNT,
    "float": ("a number", _is_number),
    "float | None": ("a number", _is_number),
    "bool": ("true or false", lambda v: isinstance(v, bool)),
    "int | None": _COUNT,
    "float | list[float]": (
        "a number or a list of numbers",
        lambda v: _is_number(v) or _is_list(v),
    ),
    "float | list[float] | None": (
        "a number or a list of numbers",
        lambda v: _is_number(v) or _is_list(v),
    ),
    "list[str]": (
        "a list of strings",
        lambda v: isinstance(v, list) and all(isinstance(x, str) for x in v),
    ),
    "list[dict[str, Any]]": (
        'a list of points {body = "NAME", point = [x, y, z]}, those of the world without a body',
        _is_path,
    ),
    "tuple[str, ...] | None": (
        "a list of strings",
        lambda v: isinstance(v, list) and all(isinstance(x, str) for x in v),
    ),
    "list[str] | None": (
        "a list of strings",
        lambda v: isinstance(v, list) and all(isinstance(x, str) for x in v),
    ),
    "list[float]": ("a list of numbers", _is_list),
    "list[float] | None": ("a list of numbers", _is_list),
    "dict[str, Any]": ("a table", lambda v: isinstance(v, dict)),
    "dict[str, float]": (
        "a table of numbers",
        lambda v: isinstance(v, dict) and all(_is_number(x) for x in v.values()),
    ),
}
