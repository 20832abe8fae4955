"""Report pages: one style of HTML for all, with embedded pictures.

A page says first what was done, whether it worked and what to look at, then all else, and at the
end where it comes from. It is one file that needs no other and no network: pictures are in it, and
a click enlarges them.
"""

from __future__ import annotations

import base64
import enum
import html
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import numpy as np
from matplotlib.figure import Figure

from ..io.files import write_whole

Cell = str | float | None

# Of pictures, in dots per inch: they are looked at larger than they are on the page.
_DENSITY = 160
_ORIGIN = "Where this comes from"
# Of cells that are broken into lines, in characters.
_LONG = 30
# Lines of cells that are numbers, or stand for one.
_NUMERIC = re.compile(r"([✓✗] )?([-+±]?\d[\d.,]*(e[-+]?\d+)?( ?%)?|-|not known)?", re.I)


class Worked(enum.Enum):
    """Whether it worked: the class of the sign on the page, its mark, and its word."""

    YES = "yes", "✓", "Worked"
    PARTLY = "partly", "!", "Worked, with warnings"
    NO = "no", "✗", "Did not work"
    UNJUDGED = "unjudged", "?", "Not judged"


@dataclass(frozen=True)
class Overview:
    """What the first screen says.

    done: what was done, in a sentence. verdict: sentences on how it worked. look: what to look at,
    each a sentence, or a sentence and the title of the section to which it leads.
    """

    done: str
    worked: Worked
    verdict: Sequence[str] = ()
    look: Sequence[str | tuple[str, str]] = ()


@dataclass(frozen=True)
class Section:
    """A part of a report: a title, a table, paragraphs, a picture, all optional.

    head (n,) and rows (m, n): of the table. file: the name of the picture's PNG file; words:
    whether it has some, which must not become too small to be read.
    """

    title: str = ""
    head: Sequence[str] = ()
    rows: Sequence[Sequence[Cell]] = ()
    text: Sequence[str] = ()
    picture: Figure | None = None
    file: str = ""
    words: bool = True


def write_report(
    folder: Path,
    title: str,
    overview: Overview,
    sections: Iterable[Section],
    provenance: Mapping[str, object],
) -> Path:
    """Writes `report.html` with its pictures, and these also as PNG files; returns its path.

    provenance: by name, what the results were made from and with, as of `io.results.provenance`;
    of several lines only the number is shown until they are asked for. Raises ValueError where the
    overview leads to a section that is not there, and OSError for a folder that cannot be written.
    """
    sections = tuple(sections)
    titles = [*(section.title for section in sections), _ORIGIN]
    anchors = _anchors(titles)
    named = dict(zip(titles, anchors, strict=True))
    shown = html.escape(title)
    style, script = (
        Path(__file__).with_suffix(kind).read_text(encoding="utf-8") for kind in (".css", ".js")
    )
    parts = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{shown}</title>\n<style>\n{style}</style>\n</head>\n<body>",
        f"<header>\n<h1>{shown}</h1>",
        *_first_screen(overview, named),
        "</header>",
        *_contents(titles, anchors),
        "<main>",
        *(
            part
            for section, anchor in zip(sections, anchors, strict=False)
            for part in _section(folder, section, anchor)
        ),
        *_origin(provenance, anchors[-1]),
        f"</main>\n{_DIALOG}\n<script>\n{script}</script>\n</body>\n</html>\n",
    ]
    path = folder / "report.html"
    write_whole(path, "\n".join(parts))
    return path


def sentences(texts: Iterable[str]) -> list[str]:
    """Remarks as sentences, with a capital and a full stop, but after a question mark."""
    return [text[0].upper() + text[1:] + "." * (not text.endswith("?")) for text in texts]


# What it shows is put in by the script.
_DIALOG = """<dialog aria-label="Picture, enlarged">
<form method="dialog"><span></span>
<button type="button" class="smaller" aria-label="smaller">&minus;</button>
<button type="button" class="larger" aria-label="larger">+</button>
<button autofocus>Close</button></form>
<div class="stage"></div>
</dialog>"""


def _anchors(titles: Sequence[str]) -> list[str]:
    """A name for each title, different from all others."""
    anchors: list[str] = []
    for title in titles:
        anchor = name = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "section"
        k = 2
        while anchor in anchors:
            anchor, k = f"{name}-{k}", k + 1
        anchors.append(anchor)
    return anchors


def _first_screen(overview: Overview, anchors: Mapping[str, str]) -> Iterator[str]:
    kind, mark, word = overview.worked.value
    yield f"<p>{html.escape(overview.done)}</p>"
    yield (
        f'<div class="sign {kind}">\n<strong><span aria-hidden="true">{mark}</span> {word}</strong>'
    )
    yield from _listed([html.escape(sentence) for sentence in overview.verdict])
    yield "</div>"
    if overview.look:
        yield "<h2>What to look at</h2>"
        yield f"<ul>{''.join(f'<li>{_pointer(each, anchors)}</li>' for each in overview.look)}</ul>"


def _pointer(look: str | tuple[str, str], anchors: Mapping[str, str]) -> str:
    if isinstance(look, str):
        return html.escape(look)
    text, title = look
    if title not in anchors:
        raise ValueError(f"a report has no section {title!r} to look at")
    return f'<a href="#{anchors[title]}">{html.escape(title)}</a>: {html.escape(text)}'


def _listed(items: Sequence[str]) -> Iterator[str]:
    """HTML as a paragraph, or as a list of several."""
    if len(items) == 1:
        yield f"<p>{items[0]}</p>"
    elif items:
        yield f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>"


def _contents(titles: Sequence[str], anchors: Sequence[str]) -> Iterator[str]:
    links = "\n".join(
        f'<a href="#{anchor}">{html.escape(title)}</a>'
        for title, anchor in zip(titles, anchors, strict=True)
        if title
    )
    yield f'<nav aria-label="Contents">\n<details><summary>Contents</summary>\n{links}'
    yield "</details>\n</nav>"


def _section(folder: Path, section: Section, anchor: str) -> Iterator[str]:
    title = html.escape(section.title)
    yield f'<section id="{anchor}">'
    if title:
        yield f"<h2>{title}</h2>"
    if section.head:
        yield from _table(section)
    for paragraph in section.text:
        yield f"<p>{_lines(paragraph)}</p>"
    if section.picture is not None:
        buffer = io.BytesIO()
        section.picture.savefig(buffer, format="png", dpi=_DENSITY)
        write_whole(folder / section.file, buffer.getvalue())
        data = base64.b64encode(buffer.getvalue()).decode()
        kind = "picture words" if section.words else "picture"
        yield (
            f'<a class="{kind}" href="{html.escape(quote(section.file))}" title="Enlarge">'
            f'<img alt="{title or html.escape(section.file)}" src="data:image/png;base64,{data}">'
            "</a>"
        )
    yield "</section>"


def _table(section: Section) -> Iterator[str]:
    """Columns of numbers stand right, and long texts are broken into lines."""
    cells = [[_shown(row[k]) for row in section.rows] for k in range(len(section.head))]
    marks = [_kind(column) for column in cells]
    heads = zip(section.head, marks, strict=True)
    named = html.escape(section.title) or "table"
    yield f'<div class="table" tabindex="0" role="region" aria-label="{named}">'
    yield "<table>\n<thead><tr>"
    yield "".join(f'<th scope="col"{mark}>{_lines(head)}</th>' for head, mark in heads)
    yield "</tr></thead>\n<tbody>"
    for row in zip(*cells, strict=True):
        entries = zip(row, marks, strict=True)
        yield f"<tr>{''.join(f'<td{mark}>{_lines(cell)}</td>' for cell, mark in entries)}</tr>"
    yield "</tbody>\n</table></div>"


def _kind(column: Sequence[str]) -> str:
    """The class of a column as an attribute."""
    lines = [line for cell in column for line in cell.splitlines()]
    if any(lines) and all(map(_NUMERIC.fullmatch, lines)):
        return ' class="n"'
    return ' class="long"' if max(map(len, lines), default=0) > _LONG else ""


def _shown(cell: Cell) -> str:
    if cell is None or isinstance(cell, str):
        return cell or ""
    return "not known" if np.isnan(cell) else f"{cell + 0.0:.5g}"  # 0, not -0


def _lines(text: str) -> str:
    return html.escape(text).replace("\n", "<br>")


def _origin(provenance: Mapping[str, object], anchor: str) -> Iterator[str]:
    yield f'<section id="{anchor}">\n<h2>{_ORIGIN}</h2>\n<table class="origin">'
    for name, value in provenance.items():
        text = str(value).rstrip("\n")
        shown = html.escape(text)
        if lines := text.count("\n"):
            shown = f"<details><summary>{lines + 1} lines</summary><pre>{shown}</pre></details>"
        yield f'<tr><th scope="row">{html.escape(name)}</th><td>{shown}</td></tr>'
    yield "</table>\n</section>"
