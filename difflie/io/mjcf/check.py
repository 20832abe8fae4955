"""What MuJoCo would silently ignore in an MJCF file, or read too slowly."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.parsers import expat

from ...system.validation import ModelError
from ..xml import plain, refuse_other_files

_MOST_COPIES = 3_000


def check_mjcf(path: Path) -> None:
    """Raises `ModelError` for what MuJoCo would silently ignore.

    That is entities, which MuJoCo does not expand, and content after the root element. Also for
    more copies by <replicate> than can be made in reasonable time.
    """
    parser = expat.ParserCreate()
    refuse_other_files(parser, path)
    copies = [1]

    def start(name: str, attributes: dict[str, str]) -> None:
        count = attributes.get("count", "") if name == "replicate" else ""
        copies.append(copies[-1] * (int(count[:9]) if count.isdecimal() else 1))
        if copies[-1] > _MOST_COPIES:
            raise ModelError(
                f"{path}:{parser.CurrentLineNumber}: <replicate> makes {copies[-1]} copies, more "
                f"than {_MOST_COPIES}; take a smaller count"
            )

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda name: copies.pop()

    def entity(name: str, *others: Any) -> None:
        raise ModelError(
            f"{path}:{parser.CurrentLineNumber}: <!ENTITY {plain(name)}> is not expanded in MJCF; "
            f"replace &{plain(name)}; by what it stands for"
        )

    parser.EntityDeclHandler = entity
    try:
        parser.Parse(path.read_bytes(), True)
    except ModelError:
        raise
    except expat.ExpatError as error:
        # MuJoCo accepts more than XML, and reports what it cannot read.
        if expat.errors.messages[error.code] == expat.errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT:
            raise ModelError(
                f"{path}:{error.lineno}: something follows the root element; take it out, or put "
                "it in"
            ) from None
    except (LookupError, ValueError):
        pass  # An encoding that expat does not know.
