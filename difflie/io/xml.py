"""References of XML to other files, which no robot file needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..system.validation import ModelError, format_value


def refuse_other_files(parser: Any, path: Path) -> None:
    """Makes an expat parser raise `ModelError` where XML includes parts of other files.

    They are not read, and the file without them would describe another machine.
    """

    def refuse(what: str) -> None:
        raise ModelError(
            f"{path}:{parser.CurrentLineNumber}: {what} from another file, which is not read; put "
            "what it stands for into this one"
        )

    def doctype(name: str, system: str | None, public: str | None, inside: bool) -> None:
        if system is not None or public is not None:
            refuse("<!DOCTYPE> takes a document type")

    def entity(name: str, parameter: bool, value: str | None, *others: str | None) -> None:
        if value is None:
            refuse(f"<!ENTITY {plain(name)}> takes a part of the text")

    def skipped(name: str, parameter: bool) -> None:
        refuse(f"&{plain(name)}; stands for a part of the text")

    parser.StartDoctypeDeclHandler = doctype
    parser.EntityDeclHandler = entity
    parser.SkippedEntityHandler = skipped


def plain(name: str) -> str:
    """A name as messages show it, without quotes."""
    return format_value(name)[1:-1]
