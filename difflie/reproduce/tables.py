"""Printed numbers, agreements with them, and numbers as cells of tables."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..io.results import Results


class Agreement(NamedTuple):
    """How many numbers were compared with published ones, and how many of them agree.

    what: the numbers, such as "Tables VI to VIII". rule: when two agree, such as "in all digits".
    """

    what: str
    agree: int
    compared: int
    rule: str


def printed(file: str) -> dict[str, Any]:
    """The numbers that a paper prints: `printed.toml` beside its code, as printed(__file__)."""
    return tomllib.loads(Path(file).with_name("printed.toml").read_text(encoding="utf-8"))


def number(value: float | None, form: str = ".1e") -> str:
    """A number in a format of Python's; a dash for None."""
    return "-" if value is None else format(value, form)


def cells(row: Results, formats: Mapping[str, str]) -> list[str]:
    """The fields of a row by name, in these formats: words as they are, a dash for None."""
    values = [getattr(row, name) for name in formats]
    forms = formats.values()
    return [v if isinstance(v, str) else number(v, f) for v, f in zip(values, forms, strict=True)]
