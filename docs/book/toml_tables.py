"""The keys of all configuration files, as pages, from the fields that declare them."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, Field, fields
from typing import Any

from examples_in_docstrings import EXAMPLE, with_tags

from difflie.control.files import ControlFile
from difflie.control.solve import SOLVERS
from difflie.control.tables import BOUNDS, COSTS, INPUTS
from difflie.identify.files import Study
from difflie.io.config import Config
from difflie.io.couplings import CONSTRAINTS, TABLES
from difflie.io.kinds import Kind
from difflie.io.tables import SHAPES, Inline, InlineEntries, TypedInline, keys_of, value_kind
from difflie.sensors import Encoder
from difflie.sweep.files import QUANTITIES, REDUCTIONS, SweepFile

_OF_FORCES = """In files of all commands, any number of each. Keys that many have:

- `name`: by which parameters, messages and `system.coupling` call it.
- `joint`: the name of a joint; a list of names makes one of each.
- `axis`: of an actuator that acts along an axis of a body, in place of `joint`.
- `path`: the points that it connects or acts at.
- `delay` in s: the command acts that much later, at most `most_steps` steps.
- `z0`: internal states at the start, in their units; by default at rest."""
_SAID = {
    "Shapes": "In files of all commands. `frame`: where its axes are, by default the world's.",
    "Constraints": "In files of `difflie run`, `control` and `sweep`, and in that of `loops`.",
    "Costs": "`weight`: of the squares, one or one for each entry; `at`: all along, or at the end.",
    "Bounds": "`at`: all along, or at the end.",
}

FILES = {
    "difflie run": Config,
    "difflie control": ControlFile,
    "difflie identify": Study,
    "difflie sweep": SweepFile,
}


def page() -> str:
    """All of them."""
    parts = [
        "# Configuration files",
        "Made from the fields that declare the keys. A key without a default must be given, where "
        "its table is there. Units are SI. `difflie examples` lists files to begin with.",
    ]
    told: dict[type, str] = {}
    for command, file in FILES.items():
        parts.append(f"## Files of `{command}`")
        parts += _file(command, file, told)
    parts.append(f"## Forces and actuators\n\n{_OF_FORCES}")
    for name, classes in TABLES.items():
        parts += (_table(f"[[{name}]]", cls) for cls in classes)
    for title, head, classes in (
        ("Shapes", '[shapes.NAME] type = "{}"', SHAPES),
        ("Constraints", '[[constraint]] type = "{}"', CONSTRAINTS),
        ("Costs", '[[cost]] type = "{}"', COSTS),
        ("Bounds", '[[bound]] type = "{}"', BOUNDS),
        ("Inputs", '[[input]] type = "{}"', INPUTS),
        ("Solvers", '[solver] type = "{}"', SOLVERS),
        ("Quantities of a sweep", '[[keep]] quantity = "{}"', QUANTITIES),
    ):
        key = re.findall(r"(\w+) =", head)[0]
        names = ", ".join(map(repr, classes))
        parts.append(f"## {title}\n\n{_SAID.get(title, '')}")
        parts.append(_rows([(key, f"one of {names}", "", "")]))
        parts += (_table(head.format(name), cls) for name, cls in classes.items())
    parts.append("## Reductions of a sweep\n\nOf any quantity, other keys of `[[keep]]`.")
    named = ("name", "a string", "", "as of the reduction"), ("unit", "a string", "", "none")
    parts.append(_rows([("reduction", "one of those below", "", ""), *named]))
    said = {
        name: inspect.cleandoc(cls.__doc__ or "").split("\n\n")[0]
        for name, cls in REDUCTIONS.items()
    }
    parts.append("\n".join(f"- `{name}`: {' '.join(text.split())}" for name, text in said.items()))
    parts.append("## Encoders")
    parts.append(_table("[[encoder]]", Encoder))
    parts.append("## Tables inside of others")
    parts += (_table(_title(cls), cls, f" {{ #{_anchor(cls)} }}") for cls in _inner(told))
    return "\n\n".join(parts) + "\n"


def _file(command: str, file: type, told: dict[type, str]) -> Iterator[str]:
    for f in fields(file):
        kind = value_kind(file, f)
        if not isinstance(kind, Inline):
            continue
        many = kind.one.startswith("a list")
        head, cls = f"[[{f.name}]]" if many else f"[{f.name}]", kind.cls
        if isinstance(kind, TypedInline):
            yield f"### `[{f.name}.NAME]`, {command}\n\n[Shapes](#{f.name}), each with its name."
        elif cls in told:
            yield f"### `{head}`, {command}\n\nAs of `{told[cls]}`, above."
        else:
            told[cls] = command
            yield _table(head, cls)


def _inner(told: Iterable[type]) -> list[type]:
    """The classes of tables that values of keys are, and of those inside of these."""
    outer = [*told, Encoder, *(cls for classes in TABLES.values() for cls in classes)]
    for classes in (SHAPES, CONSTRAINTS, COSTS, BOUNDS, INPUTS, SOLVERS, QUANTITIES):
        outer += classes.values()
    found: list[type] = []
    while outer:
        for kind in [key.kind for key in keys_of(outer.pop()).values()]:
            if isinstance(kind, TypedInline) or not isinstance(kind, Inline):
                continue
            if kind.cls not in found:
                found.append(kind.cls)
                outer.append(kind.cls)
    return sorted(found, key=_title)


def _title(cls: type) -> str:
    return cls.__name__.removesuffix("Table")


def _anchor(cls: type) -> str:
    return f"table-{_title(cls).lower()}"


def _table(head: str, cls: type, mark: str = "") -> str:
    doc = (vars(cls).get("__doc__") or "").strip()
    own = (
        ""
        if doc.startswith(f"{cls.__name__}(")
        else with_tags(EXAMPLE.sub("", inspect.cleandoc(doc)))
    )
    defaults = {f.name: f for f in fields(cls)}
    rows = []
    for name, key in keys_of(cls).items():
        number = key.kind.number
        unit = number.unit if number is not None and number.unit else ""
        rows.append((name, _value(key.kind), unit, _default(defaults[key.field])))
    table = _rows(rows) if rows else "It has no keys of its own."
    return f"### `{head}`{mark}\n\n{own}\n\n{table}"


def _value(kind: Kind) -> str:
    """The values that a key allows; a table inside of another is a link to its keys."""
    if not isinstance(kind, Inline):
        return kind.one.partition(" below ")[0]  # whole numbers are below 2^31
    if isinstance(kind, TypedInline):
        return "a table as [a shape](#shapes)"
    link = f"[{_title(kind.cls)}](#{_anchor(kind.cls)})"
    if isinstance(kind, InlineEntries):
        return f"a table of tables {link}"
    return f"a list of tables {link}" if kind.one.startswith("a list") else f"a table {link}"


def _default(field: Field[Any]) -> str:
    value = field.default
    if value is MISSING and field.default_factory is not MISSING:
        value = field.default_factory()
    if value is MISSING:
        return ""
    if value is None:
        return "none"
    try:
        return f"`{json.dumps(value)}`"
    except TypeError:
        return "as of its class"


def _rows(rows: Iterable[tuple[str, str, str, str]]) -> str:
    """A table in Markdown of keys, values, units and defaults."""
    cells = (f"| `{k}` | {value.replace('|', '/')} | {u} | {d} |" for k, value, u, d in rows)
    return "\n".join(("| key | value | unit | default |", "|---|---|---|---|", *cells))
