"""Elements of a URDF or SDF file, which know their line and which of their parts were read."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.parsers import expat

from ..system.validation import LARGEST, ModelError, format_value
from .robot_files import refuse_other_files

_COUNTS = {
    1: "one number",
    2: "two numbers",
    3: "three numbers",
    4: "four numbers",
    6: "six numbers",
    7: "seven numbers",
}

# expat's message for an element that is never closed.
_UNCLOSED = (expat.errors.XML_ERROR_TAG_MISMATCH, expat.errors.XML_ERROR_NO_ELEMENTS)

# Elements of elements; text in all others would be meant for one of their attributes.
_HOLDERS = "robot", "link", "joint", "inertial", "visual", "geometry"

# No robot is nested deeper, and recursion over it would end in a RecursionError.
_DEEPEST = 100


@dataclass
class Element:
    """An XML element. It remembers which parts were read, so that the others can be reported.

    path: of the file; above: its parent element, None for the root. text: what stands in it beside
    its children. asked: the tags and, prefixed with @, the attributes that the reader looked for,
    and "#" if it read the text.
    """

    path: Path
    tag: str
    attributes: dict[str, str]
    line: int
    above: Element | None
    children: list[Element] = field(default_factory=list)
    text: str = ""
    asked: set[str] = field(default_factory=set)

    @property
    def label(self) -> str:
        """Its name in messages: the path of up to three levels, without the root."""
        labels: list[str] = []
        element = self
        while element is not None and (element is self or element.above) and len(labels) < 4:
            name = element.attributes.get("name")
            named = "" if name is None else f" name={format_value(name)}"
            labels.append(f"<{format_value(element.tag)[1:-1]}{named}>")
            element = element.above
        return " of ".join(labels)

    @property
    def source(self) -> str:
        """Its label, with the file and the line in front."""
        return f"{self.path}:{self.line}: {self.label}"

    def get(self, name: str) -> str | None:
        """The text of an attribute, None if it is not there."""
        self.asked.add(f"@{name}")
        text = self.attributes.get(name)
        if text is not None and ("${" in text or "$(" in text):
            raise xacro(self, f"{name}={format_value(text)}")
        return text

    def needed(self, name: str) -> str:
        """The text of a required attribute."""
        text = self.get(name)
        if text is None:
            raise ModelError(f'{self.source}: the attribute {name} is missing; add {name}="..."')
        return text

    def numbers(
        self, name: str, count: int, default: Any = None, *, finite: bool = True
    ) -> list[float]:
        """The numbers (count,) in an attribute; required if there is no default."""
        text = self.get(name) if default is not None else self.needed(name)
        if text is None:
            return list(default or ())
        return self._read(name, text, count, finite)

    def _read(self, name: str, text: str, count: int, finite: bool) -> list[float]:
        """The numbers (count,) in a text; name: what it is, for messages."""
        try:
            values = [_number(word) for word in text.split()]
        except ValueError:
            values = []
        if len(values) != count:
            fix = "; write decimal points, and spaces in between" if "," in text else ""
            raise ModelError(
                f"{self.source}: {name} needs {_COUNTS[count]}, got {format_value(text)}{fix}"
            )
        if any(math.isnan(v) or (finite and math.isinf(v)) for v in values):
            raise ModelError(f"{self.source}: {name} must be finite, got {format_value(text)}")
        if finite and any(abs(v) > LARGEST for v in values):
            raise ModelError(
                f"{self.source}: {name} must be at most {LARGEST:g}, got {format_value(text)}"
            )
        return values

    def number(self, name: str, default: float | None = None, *, finite: bool = True) -> float:
        """The one number in an attribute."""
        return self.numbers(name, 1, None if default is None else [default], finite=finite)[0]

    def all(self, tag: str) -> list[Element]:
        """The children with a tag; raises `ModelError` for text in place of attributes."""
        found = self.leaves(tag)
        for c in found:
            if c.text and c.tag not in _HOLDERS:
                raise ModelError(
                    f"{c.source}: its text {format_value(c.text)} is not read; put numbers and "
                    "names where they belong, or take it out"
                )
        return found

    def leaves(self, tag: str) -> list[Element]:
        """The children with a tag, which may have a text."""
        self.asked.add(tag)
        return [c for c in self.children if c.tag == tag]

    def child(self, tag: str) -> Element | None:
        """The child with a tag, None if there is none; it has no text."""
        return _only(self.all(tag))

    def leaf(self, tag: str) -> Element | None:
        """The child with a tag, None if there is none; it may have a text."""
        return _only(self.leaves(tag))

    def words(self) -> str:
        """Its text, without the space around it."""
        self.asked.add("#")
        if "${" in self.text or "$(" in self.text:
            raise xacro(self, format_value(self.text))
        return self.text

    def values(self, count: int, *, finite: bool = True) -> list[float]:
        """The numbers (count,) in its text."""
        return self._read("its text", self.words(), count, finite)

    def words_in(self, tag: str) -> str | None:
        """The text of the child with a tag, None if there is none."""
        found = self.leaf(tag)
        return None if found is None else found.words()

    def value_in(self, tag: str, default: float, *, finite: bool = True) -> float:
        """The number in the text of the child with a tag."""
        found = self.leaf(tag)
        return default if found is None else found.values(1, finite=finite)[0]

    def flag_in(self, tag: str, default: bool = False) -> bool:
        """Whether the text of the child with a tag is "true" or "1", in place of "false" or "0"."""
        found = self.leaf(tag)
        if found is None:
            return default
        words = found.words().lower()
        if words not in _FLAGS:
            raise ModelError(f"{found.source}: it is {format_value(words)}; write true or false")
        return _FLAGS[words]

    def needed_child(self, tag: str, example: str) -> Element:
        """The required child with a tag."""
        found = self.child(tag)
        if found is None:
            raise ModelError(f"{self.source}: the element <{tag}> is missing; add {example}")
        return found

    def waive(self) -> None:
        """Counts it, and all in it, as read: it is without effect."""
        for element in self.walk():
            element.asked |= {"#", *(f"@{name}" for name in element.attributes)}
            element.asked |= {child.tag for child in element.children}

    def walk(self) -> Iterator[Element]:
        """This element and all below it, in the order of the file."""
        yield self
        for c in self.children:
            yield from c.walk()


_FLAGS = {"true": True, "1": True, "false": False, "0": False}


def _only(found: list[Element]) -> Element | None:
    if len(found) > 1:
        raise ModelError(
            f"{found[1].source}: it has another <{found[1].tag}> in line {found[0].line}; "
            "remove one"
        )
    return found[0] if found else None


def _number(word: str) -> float:
    if "_" in word:  # float() would take it for a separator of digits
        raise ValueError(word)
    return float(word)


def root_element(data: bytes, path: Path) -> Element:
    """The root element of a file's content."""
    parser = expat.ParserCreate()
    roots: list[Element] = []
    above: list[Element] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = Element(
            path, tag, attributes, parser.CurrentLineNumber, above[-1] if above else None
        )
        if len(above) == _DEEPEST:
            raise ModelError(
                f"{element.source}: elements are nested more than {_DEEPEST} deep, and those of a "
                "robot no more than some ten; close what is open above"
            )
        (above[-1].children if above else roots).append(element)
        above.append(element)

    def text(given: str) -> None:
        if given.strip():
            above[-1].text = f"{above[-1].text} {given.strip()}".strip()

    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda tag: above.pop()
    parser.CharacterDataHandler = text
    refuse_other_files(parser, path)
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        what = expat.errors.messages[error.code]
        unclosed = error.code in map(expat.errors.codes.get, _UNCLOSED) and above
        fix = f"close the element {above[-1].label}" if unclosed else "correct it there"
        raise ModelError(
            f"{path}:{error.lineno}: not XML: {what} at column {error.offset + 1}; {fix}"
        ) from None
    except ModelError:
        raise
    except (LookupError, ValueError) as error:
        raise ModelError(f"{path}:1: not readable as XML: {error}; save it as UTF-8") from None
    return roots[0]


def xacro(element: Element, what: str) -> ModelError:
    """The error for a xacro macro that was not expanded."""
    return ModelError(
        f"{element.source}: {what} is a xacro macro; expand the file first: xacro FILE > robot.urdf"
    )
