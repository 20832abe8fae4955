"""What of an MJCF file would change the motion and is not modelled, and where it stands."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from xml.parsers import expat

from .check import CONTACTS, Acting, features
from .limits import NUMBERS
from .names import element_name, listed

# What of `features` no motion depends on.
_STILL = {
    *("skins", "cameras", "lights"),
    *("custom numbers", "custom texts", "custom tuples"),
    "times of keyframes",
    "poses of mocap bodies of keyframes",
    "delays and intervals of sensors",
}
# The sections of the file with the elements of a kind, or their tags.
_SECTIONS = {"actuator": "actuator", "tendon": "tendon", "eq": "equality", "pair": "contact"}
_TAGS = {"jnt": ("joint", "freejoint"), "geom": ("geom",), "body": ("body",), "flex": ("flex",)}
_MOST = 5


class Missing(NamedTuple):
    """A feature that a system does not have: what it is, and which elements of a kind have it."""

    what: str
    kind: str
    at: tuple[int, ...]
    title: str

    def __str__(self) -> str:
        return self.title

    @property
    def remedy(self) -> str:
        """How it would be modelled, if it can be."""
        if self.what == CONTACTS:
            return "read the file with contacts = True, "
        if self.what == NUMBERS or self.what.startswith("limits of"):
            return "read the file with limits = True, "
        drives = self.what.startswith("actuators") and " but for " in self.what
        return "read the file with actuators = True, " if drives else ""


def not_modelled(
    model: Any, disabled: set[str], acting: Acting, drives: Iterable[tuple[str, str, list[int]]]
) -> list[Missing]:
    """The features of a model that would change the motion.

    disabled: the flags that are off; acting: what of its contacts and limits the system has;
    drives: the features of its actuators.
    """
    found = []
    for what, kind, which in (*features(model, disabled, acting), *drives):
        at = tuple(map(int, which))
        if at and what not in _STILL:
            found.append(Missing(what, kind, at, f"{what} ({listed(model, kind, at)})"))
    return found


def refusals(model: Any, missing: list[Missing], path: Path) -> Iterator[str]:
    """A fault for each feature, with the lines of its elements in the file, or in those inside."""
    lines = _Lines(path)
    for feature in missing:
        places = [_place(model, feature.kind, k, lines) for k in feature.at[:_MOST]]
        first = next(filter(None, places), str(path))
        more = f" and {len(feature.at) - _MOST} more" if len(feature.at) > _MOST else ""
        where = ", ".join(dict.fromkeys(filter(None, places)))
        yield (
            f"{first}: {feature.title} would change the motion, and is not modelled"
            f"{f' (at {where}{more})' if where else ''}; {feature.remedy}take it out, or read the "
            "file with strict = False"
        )


def _place(model: Any, kind: str, number: int, lines: _Lines) -> str:
    """The file and line of an element, or of the body of one without a name; "" if not found."""
    name = element_name(model, kind, number)
    if name and (place := lines.of(kind, name)):
        return place
    owners = getattr(model, f"{kind}_bodyid", None)
    if owners is None or not owners[number]:
        return ""
    return lines.of("body", element_name(model, "body", int(owners[number])))


class _Lines:
    """The lines of the elements with names in a file and those that it includes."""

    def __init__(self, path: Path) -> None:
        self._found: dict[tuple[str, str], str] = {}
        self._seen: set[Path] = set()
        self._read(path, path.absolute().parent)

    def of(self, kind: str, name: str) -> str:
        """The file and line of an element of a kind, as in the fields of a model; "" if unknown."""
        keys = [_SECTIONS[kind]] if kind in _SECTIONS else _TAGS.get(kind, (kind,))
        return next((self._found[k, name] for k in keys if (k, name) in self._found), "")

    def _read(self, path: Path, folder: Path) -> None:
        if path.resolve() in self._seen or not path.is_file():
            return
        self._seen.add(path.resolve())
        parser, above = expat.ParserCreate(), []
        included: list[Path] = []

        def start(tag: str, attributes: dict[str, str]) -> None:
            place = f"{path}:{parser.CurrentLineNumber}"
            for key in (tag, *above[-1:]):
                self._found.setdefault((key, attributes.get("name", "")), place)
            if tag == "include" and attributes.get("file"):
                file = attributes["file"]
                places = folder / file, path.absolute().parent / file
                included.append(next(filter(Path.is_file, places), places[0]))
            above.append(tag)

        def end(tag: str) -> None:
            above.pop()

        parser.StartElementHandler, parser.EndElementHandler = start, end
        # MuJoCo accepts more than XML; then lines are not known.
        with contextlib.suppress(expat.ExpatError, LookupError, ValueError):
            parser.Parse(path.read_bytes(), True)
        for file in included:
            self._read(file, folder)
