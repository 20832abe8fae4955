"""The kind of a robot file, by its root element."""

from __future__ import annotations

from pathlib import Path
from xml.parsers import expat


def root_tag(path: Path) -> str | None:
    """The root element's tag; None where there is none, which the reader will report."""
    found: list[str] = []
    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda tag, attributes: found.append(tag)
    try:
        with path.open("rb") as file:
            while not found and (chunk := file.read(4096)):
                parser.Parse(chunk)
    except (OSError, expat.ExpatError, LookupError, ValueError):
        pass
    return found[0] if found else None
