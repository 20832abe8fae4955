"""What MuJoCo would silently ignore in an MJCF file, or read too slowly."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any
from xml.parsers import expat

from ...system.validation import ModelError
from ..xml import plain, refuse_other_files

_MOST_COPIES = 3_000


def check_mjcf(path: Path) -> None:
    """Raises `ModelError` for what MuJoCo would silently ignore, in the files inside, too.

    That is entities, which MuJoCo does not expand, and content after the root element. Also for
    more copies by <replicate> and <attach> than can be made in reasonable time. What is inside are
    the files of <include> and <model>; MuJoCo reports those that are missing.
    """
    _check(path, path.absolute().parent, 1, (path.resolve(),), {})


def _check(
    path: Path, folder: Path, given: int, within: tuple[Path, ...], seen: dict[Path, int]
) -> None:
    """Checks a file, and those inside.

    folder: of the model that it is a part of, from which MuJoCo finds what it includes; given: its
    number of copies; within: the file, and those that it is inside of; seen: the files that were
    checked, with their copies.
    """
    parser = expat.ParserCreate()
    refuse_other_files(parser, path)
    copies = [given]
    included: list[tuple[Path, int]] = []  # with the copies of each
    models: dict[Path, str] = {}
    attached: Counter[str] = Counter()  # the copies of models, by name

    def start(name: str, attributes: dict[str, str]) -> None:
        count = attributes.get("count", "") if name == "replicate" else ""
        copies.append(copies[-1] * (int(count[:9]) if count.isdecimal() else 1))
        if copies[-1] > _MOST_COPIES:
            raise ModelError(
                f"{path}:{parser.CurrentLineNumber}: <replicate> makes {copies[-1]} copies, more "
                f"than {_MOST_COPIES}; take a smaller count"
            )
        file = attributes.get("file", "")
        if name == "include" and file:
            # MuJoCo looks beside the model first, then beside the file that includes.
            places = folder / file, path.absolute().parent / file
            included.append((next(filter(Path.is_file, places), places[0]), copies[-1]))
        elif name == "model" and file:
            models[folder / file] = attributes.get("name", "")
        elif name == "attach":
            attached[attributes.get("model", "")] += copies[-1]
            if attached.total() > _MOST_COPIES:
                raise ModelError(
                    f"{path}:{parser.CurrentLineNumber}: <attach> makes {attached.total()} copies, "
                    f"more than {_MOST_COPIES}; attach fewer"
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
    # A model without a name is called as its file says, so that it may be any that is attached.
    parts = [(file, folder, count) for file, count in included]
    for file, name in models.items():
        count = attached[name] if name else attached.total()
        parts.append((file, file.parent, max(count, 1)))
    for file, home, count in parts:
        if file.resolve() in within:
            raise ModelError(f"{path}: it takes in {file}, which it is a part of; take that out")
        # Not once more for each way that leads to a file.
        if file.is_file() and count > seen.get(file, 0):
            seen[file] = count
            _check(file, home, count, (*within, file.resolve()), seen)
