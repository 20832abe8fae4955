"""Report pages: one style of HTML for all, with embedded pictures."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from ..io.files import write_whole

Cell = str | float | None

_STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em}
table{border-collapse:collapse}td,th{padding:.2em .9em;border-bottom:1px solid #ddd;
text-align:right}td:first-child,th:first-child{text-align:left}img{max-width:100%}
footer{margin-top:3em;color:#5f6368;font-size:13px}"""


@dataclass(frozen=True)
class Section:
    """A part of a report: a title, a table, paragraphs, a picture, all optional.

    head (n,) and rows (m, n): of the table. file: the name of the picture's PNG file.
    """

    title: str = ""
    head: Sequence[str] = ()
    rows: Sequence[Sequence[Cell]] = ()
    text: Sequence[str] = ()
    picture: Figure | None = None
    file: str = ""


def write_report(
    folder: Path, title: str, sections: Iterable[Section], provenance: Mapping[str, object]
) -> Path:
    """Writes `report.html` with its pictures, and these also as PNG files; returns its path.

    provenance: by name, what the results were made from and with, shown at the end of the page.
    """
    body = "\n".join(part for section in sections for part in _section(folder, section))
    made = "<br>\n".join(f"{html.escape(k)}: {html.escape(str(v))}" for k, v in provenance.items())
    title = html.escape(title)
    path = folder / "report.html"
    write_whole(
        path,
        f'<!doctype html><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>\n'
        f"<h1>{title}</h1>\n{body}\n<footer>{made}</footer>\n",
    )
    return path


def sentences(texts: Iterable[str]) -> list[str]:
    """Remarks as sentences, with a capital and a full stop."""
    return [text[0].upper() + text[1:] + "." for text in texts]


def _section(folder: Path, section: Section) -> Iterable[str]:
    title = html.escape(section.title)
    if title:
        yield f"<h2>{title}</h2>"
    if section.head:
        rows = [_row("th", section.head), *(_row("td", row) for row in section.rows)]
        yield f"<table>{''.join(rows)}</table>"
    for paragraph in section.text:
        yield f"<p>{html.escape(paragraph)}</p>"
    if section.picture is not None:
        buffer = io.BytesIO()
        section.picture.savefig(buffer, format="png")
        write_whole(folder / section.file, buffer.getvalue())
        data = base64.b64encode(buffer.getvalue()).decode()
        yield f'<img alt="{title}" src="data:image/png;base64,{data}">'


def _row(tag: str, cells: Sequence[Cell]) -> str:
    return f"<tr>{''.join(f'<{tag}>{html.escape(_shown(cell))}</{tag}>' for cell in cells)}</tr>"


def _shown(cell: Cell) -> str:
    if cell is None or isinstance(cell, str):
        return cell or ""
    return "not known" if np.isnan(cell) else f"{cell + 0.0:.5g}"  # 0, not -0
