"""Pages of the reference: the API by package, all commands, and the page of every package's names.

The names come from the stub of the package and from the `__init__.py` of its packages.
"""

from __future__ import annotations

import ast
import contextlib
import enum
import importlib
import inspect
import io
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from difflie.cli import COMMANDS, main
from difflie.cli.docs import PUBLIC, names_of

PACKAGE = Path(__file__).parents[2] / "difflie"
ELSEWHERE = "formulations", "native", "reproduce", "solvers", "spatial"


def modules_of(package: str) -> list[str]:
    """The modules that a package hands on: `so3` of `groups`."""
    names = []
    for node in ast.parse((PACKAGE / package / "__init__.py").read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module is None:
            names += [a.name for a in node.names if a.asname == a.name]
    return names


def public_at_top() -> dict[str, list[str]]:
    """The names of the stub, by the package that they are of; modules under an empty name."""
    found: dict[str, list[str]] = {}
    for node in ast.parse((PACKAGE / "__init__.pyi").read_text()).body:
        if isinstance(node, ast.ImportFrom):
            found.setdefault(node.module or "", []).extend(a.name for a in node.names)
    return found


def api(package: str) -> str:
    """The page of a package: its docstring, then each of its names."""
    top = public_at_top().get(package, [])
    parts = [f"# difflie.{package}", f"::: difflie.{package}\n    options:\n      members: false"]
    for module in modules_of(package):
        short = f"`dl.{module}`: " if module in top else ""
        parts.append(f"## {module} {{ #{module} }}\n\n{short}`difflie.{package}.{module}`")
        parts.append(f"::: difflie.{package}.{module}\n    options:\n      heading_level: 3")
    for name in names_of(package):
        where = f"`dl.{name}`, " if name in top else ""
        parts.append(f"## {name} {{ #{name} }}\n\n{where}`difflie.{package}.{name}`")
        parts += _call(getattr(importlib.import_module(f"difflie.{package}"), name))
        parts.append(f"::: {_place(package, name)}")
    return "\n\n".join(parts) + "\n"


def _place(package: str, name: str) -> str:
    """Where a name of a package is found; a file of the same name would be shown in its place."""
    if not (PACKAGE / package / f"{name}.py").exists():
        return f"difflie.{package}.{name}"
    thing = getattr(importlib.import_module(f"difflie.{package}"), name)
    return f"{thing.__module__}.{thing.__name__}"


def _call(thing: Any) -> Iterator[str]:
    """How a function or class is called: mkdocstrings says it of members only."""
    if not inspect.isroutine(thing) and not inspect.isclass(thing):
        return
    if inspect.isclass(thing) and issubclass(thing, BaseException | enum.Enum):
        return
    given = inspect.signature(thing).parameters.values()
    if inspect.isabstract(thing) or not given:
        return
    words = [p.replace(annotation=p.empty) for p in given]
    text = re.sub(
        r"<[^<>]*(<lambda>)? at 0x\w+>", "...", f"{thing.__name__}{inspect.Signature(words)}"
    )
    shown = textwrap.fill(text, 88, subsequent_indent="    ")
    yield f"```text\n{shown}\n```"


def internal() -> str:
    """One page of the packages that are not public: what each is for."""
    parts = [
        "# Packages that are not public",
        "They may change with any version ([Versions](../versions.md)).",
    ]
    for package in ELSEWHERE:
        parts.append(f"## {package} {{ #{package} }}")
        parts.append(f"::: difflie.{package}\n    options:\n      members: false")
        for name in public_at_top().get(package, []):
            parts.append(f"### {name} {{ #{name} }}\n\n`dl.{name}`, `difflie.{package}.{name}`")
            parts += _call(getattr(importlib.import_module(f"difflie.{package}"), name))
            parts.append(f"::: difflie.{package}.{name}\n    options:\n      heading_level: 4")
    return "\n\n".join(parts) + "\n"


def index() -> str:
    """All names of the stub with the page of each."""
    parts = ["# Names of `difflie`", "`import difflie as dl`; each name with its page."]
    for package, names in sorted(public_at_top().items()):
        page = package.replace(".", "/") if package in PUBLIC else "internal"
        if package:
            links = ", ".join(f"[`dl.{name}`]({page}.md#{name})" for name in names)
            parts.append(f"**{package}**: {links}")
        else:
            homes = [(n, f"{n}.md" if n in PUBLIC else f"internal.md#{n}") for n in names]
            parts.append("**packages**: " + ", ".join(f"[`dl.{n}`]({page})" for n, page in homes))
    return "\n\n".join(parts) + "\n"


def commands() -> str:
    """What the help of every command prints."""
    parts = ["# Options of all commands", "As `difflie COMMAND --help` prints them."]
    for name in COMMANDS:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
            main([name, "--help"])
        help_ = printed.getvalue()
        parts.append(f"## difflie {name}\n\n```text\n{help_.strip()}\n```")
    return "\n\n".join(parts) + "\n"
