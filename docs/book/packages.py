"""The map of packages, read from their imports and docstrings when the book is built."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "difflie"
MARK = "<!-- packages -->"


def table() -> str:
    """A row for each package: its sentence, and the packages that its files import."""
    rows = ["| package | what it is | imports |", "|---|---|---|"]
    for folder, imports in _in_order():
        text = (PACKAGE / folder / "__init__.py").read_text(encoding="utf-8")
        said = (ast.get_docstring(ast.parse(text)) or "").partition("\n\n")[0]
        names = ", ".join(f"`{name}`" for name in imports) or "nothing of difflie"
        rows.append(f"| {folder} | {' '.join(said.split())} | {names} |")
    return "\n".join(rows)


def _in_order() -> list[tuple[str, list[str]]]:
    """Packages after those that they import, each with these."""
    left = {p.parent.name: _imports(p.parent) for p in sorted(PACKAGE.glob("*/__init__.py"))}
    packages, done = set(left), []
    while left:
        ready = [name for name, needs in left.items() if not (needs & packages).intersection(left)]
        if not ready:
            raise ValueError(f"packages import each other in a circle: {', '.join(left)}")
        for name in ready:
            needs = left.pop(name)
            done.append((name, [other for other, _ in done if other in needs]))
    return done


def _imports(folder: Path) -> set[str]:
    """The packages beside it that a package's files import, also inside of functions."""
    found = set()
    for file in folder.rglob("*.py"):
        depth = len(file.relative_to(PACKAGE).parts)
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level == depth:
                names = [node.module] if node.module else [a.name for a in node.names]
                found |= {name.partition(".")[0] for name in names}
    return found - {folder.name}
