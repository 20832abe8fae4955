"""Sections of one table, paragraphs and a picture each, as the pages of fits are written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure as Picture

from . import report
from .html import write_html
from .report import Cell, Worked


@dataclass(frozen=True)
class Overview:
    """What the first screen says.

    done: what was done, in a sentence. verdict: sentences on how it worked. look: what to look at,
    each a sentence and the title of the section to which it leads.
    """

    done: str
    worked: Worked
    verdict: Sequence[str] = ()
    look: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Section:
    """A part of a report: a title, a table, paragraphs, a picture, all optional.

    head (n,) and rows (m, n): of the table. file: the name of the picture's PNG file; words:
    whether it has some.
    """

    title: str = ""
    head: Sequence[str] = ()
    rows: Sequence[Sequence[Cell]] = ()
    text: Sequence[str] = ()
    picture: Picture | None = None
    file: str = ""
    words: bool = True

    def parts(self) -> list[report.Table | report.Note | report.Figure]:
        """The same as parts of a `report.Section`."""
        parts: list[report.Table | report.Note | report.Figure] = []
        if self.head:
            parts.append(report.Table(self.head, self.rows))
        parts += map(report.Note, self.text)
        picture = self.picture
        parts += [] if picture is None else [report.Figure(lambda: picture, self.file, self.words)]
        return parts


def write_report(
    folder: Path,
    title: str,
    overview: Overview,
    sections: Iterable[Section],
    provenance: Mapping[str, object],
) -> Path:
    """Writes `report.html` with its pictures, and these also as PNG files; returns its path.

    provenance: by name, what the results were made from and with, as of `io.results.provenance`.
    Raises OSError for a folder that cannot be written.
    """
    look = {title: text for text, title in overview.look}
    typed = [report.Section(s.title, s.parts(), look.get(s.title, "")) for s in sections]
    done, worked, verdict = overview.done, overview.worked, overview.verdict
    return write_html(report.Report(title, done, worked, verdict, typed, provenance), folder)
