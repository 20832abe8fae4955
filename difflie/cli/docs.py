"""`difflie docs`: the pages of the documentation, as plain text, without a network."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import tyro

from ..io.tables import ConfigError
from ..system.validation import nearest

_PACKAGE = Path(__file__).resolve().parent.parent
# In a checkout the pages stand beside the package.
_PAGES = next((p for p in (_PACKAGE / "docs", _PACKAGE.parent / "docs") if p.is_dir()), None)
_MOST_LINES = 40
_NAMES, _TITLE = "reference/names", "All public names"

# What is public, see docs/versions.md, and the modules of the stub.
PUBLIC = (
    *(
        "system",
        "dynamics",
        "collision",
        "forces",
        "constraints",
        "integrators",
        "simulate",
        "groups",
    ),
    *("identify", "control", "sweep", "quantities", "parameters", "io", "view"),
)
_MODULES = "groups.so3", "groups.se3", "groups.quaternion"


def docs(
    word: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="[WORD]")] = None,
) -> None:
    """Print a page of the documentation, or the lines of all pages that have a word.

    Args:
        word: the name of a page, such as `faq` or `explain/gradients`, or what to look for, also
            among the public names; without it the pages are listed.
    """
    pages = _pages()
    if word is None:
        for name, text in pages.items():
            print(f"{name:28} {text.splitlines()[0].lstrip('# ')}")
        print(f"{_NAMES:28} {_TITLE}")
        return
    named = _named(pages, word)
    if not named:
        pages = {_NAMES: _names(), **pages}  # not before, since it imports all of the package
        named = _named(pages, word)
    if named:
        print(pages[named[0]])
        return
    found = list(_lines(pages, word))
    if not found:
        raise ConfigError(
            f"no page has the name or the word {word!r}{nearest(word, pages)}; `difflie docs` "
            "lists the pages"
        )
    print(*found[:_MOST_LINES], sep="\n")
    if len(found) > _MOST_LINES:
        print(f"... and {len(found) - _MOST_LINES} more lines")


def _pages() -> dict[str, str]:
    """The text of each page by its name."""
    files = sorted(_PAGES.rglob("*.md")) if _PAGES else []
    return {
        file.relative_to(_PAGES).as_posix().removesuffix(".md"): file.read_text(encoding="utf-8")
        for file in files
        if _PAGES is not None
    }


def _named(pages: dict[str, str], word: str) -> list[str]:
    return [name for name in pages if word in (name, name.rpartition("/")[2])]


def names_of(module: str) -> list[str]:
    """The functions and classes that a module defines, or imports as themselves to hand on."""
    names = []
    for node in ast.parse(inspect.getsource(importlib.import_module(f"difflie.{module}"))).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            names += [a.name for a in node.names if a.asname == a.name]
        elif isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name[0] != "_":
            names.append(node.name)
    return list(dict.fromkeys(names))


def _names() -> str:
    """A page of all public names, each with the first line of its docstring."""
    lines = [f"# {_TITLE}", ""]
    for module in (*PUBLIC, *_MODULES):
        home = importlib.import_module(f"difflie.{module}")
        for name in names_of(module):
            said = (inspect.getdoc(getattr(home, name)) or "").partition("\n")[0]
            lines.append(f"difflie.{module}.{name}: {said}".rstrip(": "))
    return "\n".join(lines)


def _lines(pages: dict[str, str], word: str) -> Iterator[str]:
    """The lines that have the word; of several words those that have all of them."""
    words = word.lower().split()
    for name, text in pages.items():
        for line in text.splitlines():
            if all(w in line.lower() for w in words):
                yield f"{name}: {line.strip()}"
