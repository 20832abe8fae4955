"""Numbers by name in a JSON file: of an earlier identification, or written by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..system.validation import format_value, nearest
from .tables import ConfigError


def read_numbers(path: Path, names: Sequence[str]) -> NDArray:
    """The numbers (n,) in a file, one for each of the names (n,).

    {"NAME": number, ...}, or {"NAME": {"value": number}, ...}, also below the key "parameters", as
    in files of results. Raises `ConfigError` for a file that is missing or broken, an unknown name
    (with the nearest one), and a name without a number.
    """
    whole = _read(path)
    numbers = whole.get("parameters", whole)
    if not isinstance(numbers, dict):
        raise ConfigError(f"{path}: this is no table of parameters, {{name: number}}")
    for name in numbers:
        if name not in names:
            raise ConfigError(
                f"{path}: there is no parameter {format_value(name)}{nearest(name, names)}"
            )
    values = []
    for name in names:
        value = numbers.get(name)
        value = value.get("value") if isinstance(value, dict) else value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ConfigError(
                f"{path}: the parameter {format_value(name)} is {format_value(value)}; give a "
                "number"
            )
        values.append(float(value))
    return np.array(values)


def read_states(path: Path) -> list[NDArray] | None:
    """The states of an earlier fit, an array (m,) for each of its problems; None without any.

    Raises `ConfigError` for a file that is missing or broken, and for states that are no numbers.
    """
    states = _read(path).get("states")
    try:
        return None if states is None else [np.asarray(own, float) for own in states]
    except (TypeError, ValueError):
        raise ConfigError(f"{path}: states are no lists of numbers; leave them out") from None


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file") from None
    except OSError as error:
        raise ConfigError(f"{path}: this cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: this is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: this is no table of parameters, {{name: number}}")
    return content
