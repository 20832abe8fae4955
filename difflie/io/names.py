"""Default names for unnamed parts of a file."""

from __future__ import annotations

from collections.abc import Container


def distinct(name: str, taken: Container[str]) -> str:
    """The name, with underscores appended until it is not among the taken ones."""
    while name in taken:
        name += "_"
    return name
