"""Printed numbers, and tables of computed ones beside them."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Sequence
from io import StringIO
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.text import Text

from ..view.flat_sections import Section
from ..view.printed import print_table


class Agreement(NamedTuple):
    """How many numbers were compared with published ones, and how many of them agree.

    what: the numbers, such as "Tables VI to VIII". rule: when two agree, such as "in all digits".
    """

    what: str
    agree: int
    compared: int
    rule: str


class Kept(Console):
    """A console that keeps tables and notes as sections of a page, and prints nothing."""

    def __init__(self) -> None:
        super().__init__(file=StringIO())
        self.sections: list[Section] = []


def printed(file: str) -> dict[str, Any]:
    """The numbers that a paper prints: `printed.toml` beside its code, as printed(__file__)."""
    return tomllib.loads(Path(file).with_name("printed.toml").read_text(encoding="utf-8"))


def number(value: float | None, form: str = ".1e") -> str:
    """A number in a format of Python's; a dash for None."""
    return "-" if value is None else format(value, form)


def cells(row: dict[str, Any], formats: dict[str, str]) -> list[str]:
    """The entries of a row by key, in these formats: words as they are, nothing for a missing one,
    a dash for None."""
    values = (row.get(key, "") for key in formats)
    forms = formats.values()
    return [v if isinstance(v, str) else number(v, f) for v, f in zip(values, forms, strict=True)]


def headed(
    rows: Iterable[dict[str, Any]], column: str, heading: Callable[[dict[str, Any]], str]
) -> list[dict[str, Any]]:
    """The rows, with one more before each change of heading(row): this, dim, in a column by key."""
    lines: list[dict[str, Any]] = []
    for title, group in groupby(rows, heading):
        lines += [{column: f"[dim]{title}[/]"}, *group]
    return lines


def beside(computed: str, published: str, agree: bool | None = None) -> str:
    """A cell with a computed number above the published one.

    Green where the numbers agree, red where they do not, in no colour where they are not compared.
    """
    colour = {True: "green", False: "red", None: "default"}[agree]
    return f"[{colour}]{computed}[/]\n[dim]{published}[/]"


def show_table(
    console: Console,
    title: str,
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    words: int = 1,
) -> None:
    """Prints a table, in the one format of all papers.

    heads (n,) and cells have line breaks where they are to; a row with fewer than n cells is filled
    up. The first `words` columns are words, the others numbers, which stand right.
    """
    if isinstance(console, Kept):
        lines = [(*map(_plain, row), *[""] * (len(heads) - len(row))) for row in rows]
        console.sections.append(Section(title, [head.strip("\n") for head in heads], lines))
        return
    # Before the table, and not its title, which would be broken where the table is narrow.
    console.print(title, style="italic", highlight=False, markup=False)
    print_table(console, heads, rows, words, gap=0)


def note(console: Console, *lines: str) -> None:
    """Prints lines below a table as they are: no number is coloured."""
    if isinstance(console, Kept):
        console.sections.append(Section(text=lines))
        return
    console.print("\n".join(lines), highlight=False, markup=False)


def _plain(cell: str) -> str:
    """A cell without colours, which marks say."""
    text = Text.from_markup(cell)
    marks = {"green": "✓ ", "red": "✗ "}
    mark = "".join(marks.get(str(span.style), "") for span in text.spans)
    first, *others = text.plain.split("\n")
    return "\n".join([mark + first, *others])
