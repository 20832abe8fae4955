"""A page for each published result that `difflie reproduce` recomputes: its code, its numbers."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import published

import difflie
from difflie.reproduce import REPRODUCTIONS

# The package that is imported: an installed one lies elsewhere than these pages.
PACKAGE = Path(difflie.__file__).parent
# How pages are called, by the name on the command line.
TITLES = {
    "goetz": "Goetz 2024",
    "long-run": "A million steps",
    "mechanisms": "Reference mechanisms",
    "mueller": "Mueller: transition maps",
    "park-chung": "Park and Chung 2005",
    "pleiades": "Pleiades",
    "reuss": "Reuss 2002",
}


def pages() -> dict[str, str]:
    """By the name on the command line: what is recomputed, what was left open or misprinted."""
    return {name: _page(name) for name in REPRODUCTIONS}


def _page(name: str) -> str:
    paper = REPRODUCTIONS[name].paper
    first, *rest = (inspect.getdoc(paper) or name).split("\n\n")
    file = Path(inspect.getfile(paper))
    files = sorted(file.parent.glob("*.py")) if file.name == "__init__.py" else [file]
    where = []
    for source in files:
        said = inspect.cleandoc(_docstring(source)).split("\n\n")[0]
        where.append(f"| `{source.relative_to(PACKAGE.parent)}` | {' '.join(said.split())} |")
    return "\n\n".join(
        (
            f"# {TITLES.get(name, name)}",
            first,
            *rest,
            *([published.section(name)] if name in published.names() else []),
            "## Recompute it",
            f"```\ndifflie reproduce {name} --out {name} --json {name}.json\n```",
            "It prints computed beside published numbers, and writes a report with all tables and "
            f"figures. [The keys of the numbers](../results.md#difflie-reproduce-{name}).",
            "## What is implemented where",
            "| file | what |\n|---|---|\n" + "\n".join(where),
        )
    )


def _docstring(source: Path) -> str:
    """The docstring of a file, which is not imported."""
    return ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
