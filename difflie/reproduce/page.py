"""The page of a published result: how many numbers agree, its tables, and its figures."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from ..io.results import machine, provenance
from ..view.flat_sections import Overview, Section
from ..view.flat_sections import write_report as write_page
from ..view.report import Worked
from .tables import Agreement, Kept

_AGREEMENT, _TEXT = "Agreement", "What is recomputed"


def write_report(
    folder: Path, name: str, paper: ModuleType, results: dict[str, Any], figures: Mapping[str, Any]
) -> Path:
    """Writes `report.html` of a paper and its figures, also as PNG files; returns its path.

    name: of the paper on the command line. figures: by file name.
    """
    agreements = paper.agreements(results) if hasattr(paper, "agreements") else []
    console = Kept()
    paper.show(results, console)
    first, *others = _paragraphs(paper)
    sections = [
        *_agreement(agreements),
        *console.sections,
        *(
            Section(file.replace("_", " ").capitalize(), picture=picture, file=f"{file}.png")
            for file, picture in figures.items()
        ),
        Section(_TEXT, text=others),
    ]
    overview = Overview(
        first, _worked(agreements), list(_verdict(agreements)), list(_pointers(sections))
    )
    return write_page(folder, f"Reproduction: {name}", overview, sections, provenance(machine()))


def _worked(agreements: Sequence[Agreement]) -> Worked:
    agree, compared = sum(a.agree for a in agreements), sum(a.compared for a in agreements)
    if not compared:
        return Worked.UNJUDGED
    if not agree:
        return Worked.NO
    return Worked.YES if agree == compared else Worked.PARTLY


def _verdict(agreements: Sequence[Agreement]) -> Iterator[str]:
    if not agreements:
        yield (
            "It was computed to its end, and no number was compared: the tables show what is "
            "published beside what is computed, where there is any."
        )
    for a in agreements:
        yield f"{a.what}: {a.agree} of {a.compared} agree ({a.rule})."


def _pointers(sections: Sequence[Section]) -> Iterator[tuple[str, str]]:
    """To what agrees, the first table, the first figure, and the text."""
    texts = {_AGREEMENT: "what was compared, and how"}
    tables = [s.title for s in sections if s.head and s.title != _AGREEMENT]
    texts |= dict.fromkeys(tables[:1], "the first of the tables of computed numbers")
    figures = [s.title for s in sections if s.picture is not None]
    texts |= dict.fromkeys(figures[:1], "the first of the figures")
    texts |= {_TEXT: "the source, and what it leaves open"}
    titles = {section.title for section in sections if section.text or section.head or section.file}
    yield from ((text, title) for title, text in texts.items() if title in titles)


def _agreement(agreements: Sequence[Agreement]) -> Iterator[Section]:
    if agreements:
        yield Section(
            _AGREEMENT,
            ("numbers", "agree", "compared", "how they are compared"),
            [(a.what, str(a.agree), str(a.compared), a.rule) for a in agreements],
            (
                "In the tables computed numbers stand above published ones; ✓ marks those that "
                "agree, ✗ others that were compared.",
            ),
        )


def _paragraphs(paper: ModuleType) -> list[str]:
    """The text at the head of a paper's code, in paragraphs; points of lists are such, too."""
    text = inspect.getdoc(paper) or paper.__name__
    parts = text.replace("\n* ", "\n\n* ").split("\n\n")
    return [" ".join(part.split()) for part in parts]
