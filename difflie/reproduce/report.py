"""The report of a published result: how many numbers agree, its tables, and its figures."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import ModuleType

from matplotlib.figure import Figure as Picture

from ..io.results import Results, machine, provenance
from ..view.report import Figure, Note, Report, Section, Table, Worked, notes
from .papers import Agreement


def paper_report(
    name: str, paper: ModuleType, results: Results, figures: Mapping[str, Picture]
) -> Report:
    """The report of a paper; name: on the command line. figures: by file name."""
    agreements = paper.agreements(results) if hasattr(paper, "agreements") else []
    first, *others = _paragraphs(paper)
    tables = list(paper.sections(results))
    tables[:1] = [
        replace(s, look="the first of the tables of computed numbers") for s in tables[:1]
    ]
    drawn = [_figure(file, picture) for file, picture in figures.items()]
    drawn[:1] = [replace(s, look="the first of the figures") for s in drawn[:1]]
    sections = [*_agreement(agreements), *tables, *drawn]
    if others:
        look = "the source, and what it leaves open"
        sections.append(Section("What is recomputed", notes(*others), look, brief=False))
    return Report(
        f"Reproduction: {name}",
        first,
        _worked(agreements),
        list(_verdict(agreements)),
        sections,
        provenance(machine()),
    )


def _figure(file: str, picture: Picture) -> Section:
    return Section(file.replace("_", " ").capitalize(), [Figure(lambda: picture, f"{file}.png")])


def _worked(agreements: Sequence[Agreement]) -> Worked:
    agree, compared = sum(a.agree for a in agreements), sum(a.compared for a in agreements)
    if not compared:
        return Worked.UNJUDGED
    return Worked.judged(agree > 0, agree < compared)


def _verdict(agreements: Sequence[Agreement]) -> Iterator[str]:
    if not agreements:
        yield (
            "It was computed to its end, and no number was compared: the tables show what is "
            "published beside what is computed, where there is any."
        )
    for a in agreements:
        yield f"{a.what}: {a.agree} of {a.compared} agree ({a.rule})."


def _agreement(agreements: Sequence[Agreement]) -> Iterator[Section]:
    if agreements:
        rows = [(a.what, str(a.agree), str(a.compared), a.rule) for a in agreements]
        said = (
            "In the tables computed numbers stand above published ones; ✓ marks those that agree, "
            "✗ others that were compared."
        )
        table = Table(("numbers", "agree", "compared", "how they are compared"), rows)
        yield Section("Agreement", [table, Note(said)], "what was compared, and how", brief=False)


def _paragraphs(paper: ModuleType) -> list[str]:
    """The text at the head of a paper's code, in paragraphs; points of lists are such, too."""
    text = inspect.getdoc(paper) or paper.__name__
    parts = text.replace("\n* ", "\n\n* ").split("\n\n")
    return [" ".join(part.split()) for part in parts]
