"""`difflie docs`: the pages of the documentation, as plain text, without a network."""

from __future__ import annotations

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


def docs(
    word: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="[WORD]")] = None,
) -> None:
    """Print a page of the documentation, or the lines of all pages that have a word.

    Args:
        word: the name of a page, such as `faq` or `explain/gradients`, or what to look for; without
            it the pages are listed.
    """
    pages = _pages()
    if word is None:
        for name, text in pages.items():
            print(f"{name:28} {text.splitlines()[0].lstrip('# ')}")
        return
    named = [name for name in pages if word in (name, name.rpartition("/")[2])]
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


def _lines(pages: dict[str, str], word: str) -> Iterator[str]:
    for name, text in pages.items():
        for line in text.splitlines():
            if word.lower() in line.lower():
                yield f"{name}: {line.strip()}"
