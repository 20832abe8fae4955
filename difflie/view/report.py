"""Reports: what was done, whether it worked, and the tables, figures and notes that show it.

A `Report` is data. `view.html` writes it as a page, `view.printed` prints it to a terminal.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from matplotlib.figure import Figure as Picture


class Worked(enum.Enum):
    """Whether it worked: the class of the sign on a page, its mark, and its word."""

    YES = "yes", "✓", "Worked"
    PARTLY = "partly", "!", "Worked, with warnings"
    NO = "no", "✗", "Did not work"
    UNJUDGED = "unjudged", "?", "Not judged"

    @classmethod
    def judged(cls, ok: bool, doubtful: bool) -> Worked:
        """NO if it is not ok, PARTLY if it is but something is doubtful."""
        if not ok:
            return cls.NO
        return cls.PARTLY if doubtful else cls.YES


@dataclass(frozen=True)
class Checked:
    """A cell that was compared: its text, the reference, and whether they agree.

    agrees: None where they were not compared.
    """

    text: str
    reference: str = ""
    agrees: bool | None = None


Cell = str | float | Checked | None
"""Of a table. NaN is "not known", None is empty."""


@dataclass(frozen=True)
class Table:
    """A table: head (n,) and rows (m, n), in which line breaks stay.

    names: so many of the first columns are names, which a terminal repeats where it has no room
    for the whole table.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    names: int = 1


@dataclass(frozen=True)
class Figure:
    """A picture: what draws it, only where it is shown, and the name of its PNG file.

    words: whether there are words in it, which must not become too small to be read.
    """

    draw: Callable[[], Picture]
    file: str
    words: bool = True


@dataclass(frozen=True)
class Note:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Section:
    """A part of a report: a title, and what is below it.

    look: what there is to see, if the first screen of a page is to lead here. brief: whether a
    terminal shows its tables and notes, too.
    """

    title: str
    parts: Sequence[Table | Figure | Note]
    look: str = ""
    brief: bool = True


@dataclass(frozen=True)
class Report:
    """What was done, in a sentence; whether it worked; sentences on how; and sections.

    origin: by name, what the results were made from and with, as of `io.results.provenance`.
    """

    title: str
    done: str
    worked: Worked
    verdict: Sequence[str]
    sections: Sequence[Section]
    origin: Mapping[str, object] = field(default_factory=dict)


def notes(*texts: str) -> tuple[Note, ...]:
    """Paragraphs."""
    return tuple(map(Note, texts))


def cell_text(cell: str | float | None) -> str:
    """A cell as it is shown: numbers in five digits."""
    if cell is None or isinstance(cell, str):
        return cell or ""
    return "not known" if np.isnan(cell) else f"{cell + 0.0:.5g}"  # 0, not -0


def sentences(texts: Iterable[str]) -> list[str]:
    """Remarks as sentences, with a capital and a full stop, but after a question mark."""
    return [text[0].upper() + text[1:] + "." * (not text.endswith("?")) for text in texts]
