"""A report as a page: one HTML file that needs no other and no network.

It says first what was done, whether it worked and what to look at, then all else, and at the end
where it comes from. Pictures are in it, and a click enlarges them.
"""

from __future__ import annotations

import base64
import html
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from string import Template
from urllib.parse import quote

from ..io.files import write_whole
from .report import Cell, Checked, Figure, Note, Report, Section, Table, cell_text

# Of pictures, in dots per inch: they are looked at larger than they are on the page.
_DENSITY = 160
_ORIGIN = "Where this comes from"
# Of cells that are broken into lines, in characters.
_LONG = 30
# Lines of cells that are numbers, or stand for one.
_NUMERIC = re.compile(r"([✓✗] )?([-+±]?\d[\d.,]*(e[-+]?\d+)?( ?%)?|-|not known)?", re.I)
_MARKS = {True: "✓ ", False: "✗ ", None: ""}


def write_html(report: Report, folder: Path) -> Path:
    """Writes `report.html` with its pictures, and these also as PNG files; returns its path.

    Of an origin of several lines only their number is shown until they are asked for. Raises
    OSError for a folder that cannot be written.
    """
    page, style, script = (
        Path(__file__).with_name(f"report.{kind}").read_text(encoding="utf-8")
        for kind in ("html", "css", "js")
    )
    titles = [*(section.title for section in report.sections), _ORIGIN]
    anchors = _anchors(titles)
    kind, mark, word = report.worked.value
    sections = zip(report.sections, anchors, strict=False)
    text = Template(page).substitute(
        title=html.escape(report.title),
        style=style,
        script=script,
        done=html.escape(report.done),
        kind=kind,
        mark=mark,
        word=word,
        verdict=_listed([html.escape(sentence) for sentence in report.verdict]),
        look=_look(report.sections, anchors),
        contents="\n".join(_link(*each) for each in zip(titles, anchors, strict=True)),
        sections="\n".join(
            (
                *(line for each, anchor in sections for line in _section(each, anchor, folder)),
                *_origin(report.origin, anchors[-1]),
            )
        ),
    )
    path = folder / "report.html"
    write_whole(path, text)
    return path


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


def _link(title: str, anchor: str) -> str:
    return f'<a href="#{anchor}">{html.escape(title)}</a>' if title else ""


def _listed(items: Sequence[str]) -> str:
    """HTML as a paragraph, or as a list of several."""
    if len(items) == 1:
        return f"<p>{items[0]}</p>"
    return f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>" if items else ""


def _look(sections: Sequence[Section], anchors: Sequence[str]) -> str:
    """Links to the sections that say what there is to see."""
    items = [
        f"<li>{_link(each.title, anchor)}: {html.escape(each.look)}</li>"
        for each, anchor in zip(sections, anchors, strict=False)
        if each.look
    ]
    return f"<h2>What to look at</h2>\n<ul>{''.join(items)}</ul>" if items else ""


def _section(section: Section, anchor: str, folder: Path) -> Iterator[str]:
    yield f'<section id="{anchor}">'
    if section.title:
        yield f"<h2>{html.escape(section.title)}</h2>"
    for part in section.parts:
        if isinstance(part, Table):
            yield from _table(part, section.title or "table")
        elif isinstance(part, Figure):
            yield _picture(part, section.title or part.file, folder)
        else:
            yield _paragraph(part)
    yield "</section>"


def _paragraph(note: Note) -> str:
    return f"<p>{_lines(note.text)}</p>"


def _picture(figure: Figure, title: str, folder: Path) -> str:
    buffer = io.BytesIO()
    figure.draw().savefig(buffer, format="png", dpi=_DENSITY)
    write_whole(folder / figure.file, buffer.getvalue())
    data = base64.b64encode(buffer.getvalue()).decode()
    kind = "picture words" if figure.words else "picture"
    return (
        f'<a class="{kind}" href="{html.escape(quote(figure.file))}" title="Enlarge">'
        f'<img alt="{html.escape(title)}" src="data:image/png;base64,{data}"></a>'
    )


def _table(table: Table, title: str) -> Iterator[str]:
    """Columns of numbers stand right, and long texts are broken into lines."""
    cells = [[_text(row[k]) for row in table.rows] for k in range(len(table.head))]
    kinds = [_kind(column) for column in cells]
    heads = zip(table.head, kinds, strict=True)
    yield f'<div class="table" tabindex="0" role="region" aria-label="{html.escape(title)}">'
    yield "<table>\n<thead><tr>"
    yield "".join(f'<th scope="col"{kind}>{_lines(head)}</th>' for head, kind in heads)
    yield "</tr></thead>\n<tbody>"
    for row in zip(*cells, strict=True):
        entries = zip(row, kinds, strict=True)
        yield f"<tr>{''.join(f'<td{kind}>{_lines(cell)}</td>' for cell, kind in entries)}</tr>"
    yield "</tbody>\n</table></div>"


def _text(cell: Cell) -> str:
    """A cell with its reference below it; a mark says what a terminal says by a colour."""
    if isinstance(cell, Checked):
        return "\n".join((_MARKS[cell.agrees] + cell.text, *cell.reference.splitlines()))
    return cell_text(cell)


def _kind(column: Sequence[str]) -> str:
    """The class of a column as an attribute."""
    lines = [line for cell in column for line in cell.splitlines()]
    if any(lines) and all(map(_NUMERIC.fullmatch, lines)):
        return ' class="n"'
    return ' class="long"' if max(map(len, lines), default=0) > _LONG else ""


def _lines(text: str) -> str:
    return html.escape(text).replace("\n", "<br>")


def _origin(origin: Mapping[str, object], anchor: str) -> Iterator[str]:
    yield f'<section id="{anchor}">\n<h2>{_ORIGIN}</h2>\n<table class="origin">'
    for name, value in origin.items():
        text = str(value).rstrip("\n")
        shown = html.escape(text)
        if lines := text.count("\n"):
            shown = f"<details><summary>{lines + 1} lines</summary><pre>{shown}</pre></details>"
        yield f'<tr><th scope="row">{html.escape(name)}</th><td>{shown}</td></tr>'
    yield "</table>\n</section>"
