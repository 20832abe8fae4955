"""Names for what a file leaves unnamed."""

from __future__ import annotations

from collections.abc import Container


def distinct(name: str, taken: Container[str]) -> str:
    """The name, with as many underscores behind it as make it none of those that are taken."""
    while name in taken:
        name += "_"
    return name
