"""TOML files and their faults, which are reported together."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..system.validation import InputError
from .files import absence, present

_DEEPEST = 20
_DIGITS = re.compile(r"\d[\d_]{1000}")


class ConfigError(InputError):
    """An invalid configuration: its faults, a line each, with file, key and fix."""


class Faults:
    """The faults of a file, collected, and raised together by `end`.

    folders: those in which other files that it names may be; first its own.
    """

    def __init__(self, path: Path, error: type[InputError] = ConfigError, *folders: Path):
        self.path, self.error, self.folders = path, error, (path.parent, *folders)
        self.sentences: list[str] = []

    def __len__(self) -> int:
        return len(self.sentences)

    def add(self, *sentences: str) -> None:
        """Adds faults, which begin with the key."""
        self.sentences += [f"{self.path}: {sentence}" for sentence in sentences]

    @contextmanager
    def caught(self, where: str, *errors: type[Exception]) -> Iterator[None]:
        """Collects such errors raised inside, with the table or key `where`, empty for none."""
        try:
            yield
        except errors as error:
            self.add(f"{where}: {error}" if where else str(error))

    def end(self) -> None:
        """Raises the error with all faults, if there are any."""
        if self.sentences:
            raise self.error(*dict.fromkeys(self.sentences))


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file; raises `ConfigError` for one that is missing or broken."""
    if path.is_dir():
        raise ConfigError(f"{path}: this is a directory; name a .toml file in it")
    if not present(path):
        raise ConfigError(f"{path}: there is no such file{absence(path)}")
    try:
        # Some editors write a byte-order mark before UTF-8.
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
        tables = None
    if tables is None or _is_deep(tables):
        raise ConfigError(
            f"{path}: lists and tables are nested more than {_DEEPEST} deep, which no "
            "configuration needs; close brackets, and shorten keys with dots"
        )
    return tables


def _is_deep(tables: dict[str, Any]) -> bool:
    level: list[Any] = [tables]
    for _ in range(_DEEPEST + 1):
        level = [x for value in level for x in _inside(value)]
    return bool(level)


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
