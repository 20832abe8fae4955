"""Reports and tables that are printed: names and numbers stay whole, whatever the width."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from . import report
from .report import Cell, Checked, Report, Worked, cell_text

_COLOURS = {
    Worked.YES: "green",
    Worked.PARTLY: "yellow",
    Worked.NO: "red",
    Worked.UNJUDGED: "default",
}


def print_report(console: Console, shown: Report) -> None:
    """Prints what was done, whether and how it worked, and the tables and notes that are brief."""
    _say(console, shown.done)
    _say(console, f"{shown.worked.value[2]}.", f"bold {_COLOURS[shown.worked]}")
    for sentence in shown.verdict:
        _say(console, sentence)
    for section in shown.sections:
        if section.brief:
            _print_section(console, section)


def _print_section(console: Console, section: report.Section) -> None:
    if section.title and any(not isinstance(part, report.Figure) for part in section.parts):
        # Before the table, and not its title, which would be broken where the table is narrow.
        _say(console, section.title, "italic")
    for part in section.parts:
        if isinstance(part, report.Note):
            _say(console, part.text)
        elif isinstance(part, report.Table):
            rows = [[_marked_up(cell) for cell in row] for row in part.rows]
            print_table(console, list(map(escape, part.head)), rows, part.names, gap=0)


def _say(console: Console, text: str, style: str | None = None) -> None:
    """Prints lines as they are: no number is coloured, and no line is broken."""
    console.print(text, style=style, highlight=False, markup=False, soft_wrap=True)


def _marked_up(cell: Cell) -> str:
    """A cell in the markup of rich: green where it agrees with its reference, red where not."""
    if not isinstance(cell, Checked):
        return escape(cell_text(cell))
    colour = {True: "green", False: "red", None: "default"}[cell.agrees]
    text = f"[{colour}]{escape(cell.text)}[/]"
    return f"{text}\n[dim]{escape(cell.reference)}[/]" if cell.reference else text


def print_table(
    console: Console,
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    words: int = 1,
    gap: int = 1,
) -> None:
    """Prints a table; where it is wider than the terminal in parts, each with its names.

    heads (n,) and cells, in the markup of rich, have line breaks where they are to; a row with
    fewer than n cells is filled up. The first `words` columns are names and are in all parts, the
    others stand right; gap: the spaces between columns, less one. Into a pipe or a file the table
    goes as it is, however wide, so that programs find each row in one line.
    """
    lines = [(*row, *[""] * (len(heads) - len(row))) for row in rows]
    widths = [max(map(_width, column)) + gap for column in zip(heads, *lines, strict=True)]
    room = console.width if console.is_terminal else sum(widths) + 2 * len(widths) + 2
    for part in _parts(widths, words, room):
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, gap, 0, 0))
        for k in part:
            table.add_column(heads[k], justify="left" if k < words else "right", no_wrap=True)
        for line in lines:
            table.add_row(*(line[k] for k in part))
        whole = _Wide(table, sum(widths) + 2 * len(widths) + 2)
        console.print(whole, crop=False, no_wrap=True, overflow="ignore", highlight=False)


@dataclass(frozen=True)
class _Wide:
    """A table of any width, for a console that may be narrower."""

    table: Table
    width: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from console.render(self.table, options.update(width=self.width))


def _parts(widths: Sequence[int], words: int, room: int) -> Iterator[list[int]]:
    """The columns of each part: the first `words`, and of the others as many as there is room for.

    At least one, so that a name that is too long is still printed whole.
    """
    names = list(range(words))
    start = sum(widths[:words]) + words + 1
    part, used = list(names), start
    for k in range(words, len(widths)):
        if len(part) > words and used + widths[k] + 1 > room:
            yield part
            part, used = list(names), start
        part.append(k)
        used += widths[k] + 1
    yield part


def _width(cell: str) -> int:
    return max(Text.from_markup(line).cell_len for line in f"{cell}\n".split("\n"))
