"""Text of objects that are printed: short enough for a screen, whatever they hold."""

from __future__ import annotations

from collections.abc import Sequence

_MOST = 16


def subsample(head: Sequence[str], rows: Sequence[Sequence[str]], what: str) -> list[str]:
    """The lines of a table of words; of many rows the first, and how many more there are.

    Columns that are empty below their head are left out. what: the rows in words, "numbers".
    """
    seen = rows[:_MOST]
    kept = [k for k in range(len(head)) if not k or any(row[k] for row in seen)]
    table = [[row[k] for k in kept] for row in (head, *seen)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]
    more = [f"... and {len(rows) - _MOST} more {what}"] if len(rows) > _MOST else []
    return [*lines, *more] if rows else []


def some(names: Sequence[str], most: int = 6) -> str:
    """The first of some names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
