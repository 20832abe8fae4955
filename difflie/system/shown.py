"""How a system shows itself: its tree with joints, masses, units and limits, as text or HTML.

The text of other objects that are printed is kept short in the same way.
"""

from __future__ import annotations

import html
from collections.abc import Container, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.core import Tracer
from numpy.typing import NDArray

from .joints import FORCE_UNITS, UNITS
from .topology import WORLD, NotTouching, Topology

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


def still_idle(contacts: NotTouching | None, idle: Container[str]) -> tuple[str, ...]:
    """One text that names which shapes of a file are idle; none without any."""
    if contacts is None or not any(shape in idle for shape in contacts.shapes):
        return ()
    called = contacts.called and [
        name for shape, name in zip(contacts.shapes, contacts.called, strict=True) if shape in idle
    ]
    return (f"{contacts.what} ({some(called, 4)})" if called else contacts.what,)


_MOST_LINES, _MOST_ROWS, _MOST_NAMED = 60, 200, 6
_HEAD = "body", "joint", "type", "mass [kg]", "limits", "speed", "effort"
_AXES = dict(zip(map(tuple, [*np.eye(3), *-np.eye(3)]), ("x", "y", "z", "-x", "-y", "-z"),
                 strict=True))  # fmt: skip


class _Row(NamedTuple):
    """A body and its joint; guide: the lines of the tree in front of it."""

    guide: str
    cells: tuple[str, ...]


def system_text(system: Any) -> str | None:
    """A `System` as text; None for one whose leaves are no arrays, such as a mask.

    Numbers of a batch are given by their least and greatest, and traced ones left out.
    """
    if not _has_arrays(system):
        return None
    rows = [(row.guide + row.cells[0], *row.cells[1:]) for row in _rows(system)]
    left_out = len(rows) - _MOST_LINES
    rows = _without_empty([_HEAD, *rows[:_MOST_LINES]])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    lines += [f"... and {left_out} more bodies"] if left_out > 0 else []
    return "\n".join([_title(system), *lines, *_others(system)])


def system_html(system: Any) -> str | None:
    """The same as an HTML table."""
    if not _has_arrays(system):
        return None
    rows = _rows(system)
    left_out = len(rows) - _MOST_ROWS
    guides = ["", *(row.guide for row in rows[:_MOST_ROWS])]
    table = _without_empty([_HEAD, *(row.cells for row in rows[:_MOST_ROWS])])
    body = "".join(
        _html_row("td" if k else "th", guide, row)
        for k, (guide, row) in enumerate(zip(guides, table, strict=True))
    )
    after = [f"... and {left_out} more bodies"] if left_out > 0 else []
    said = "".join(f"<div>{html.escape(line)}</div>" for line in [*after, *_others(system)])
    return f"<div><b>{html.escape(_title(system))}</b></div><table>{body}</table>{said}"


def _html_row(tag: str, guide: str, cells: Sequence[str]) -> str:
    styled = f'<{tag} style="text-align:left;white-space:pre">'
    shown = [guide + cells[0], *cells[1:]]
    return f"<tr>{''.join(f'{styled}{html.escape(cell)}</{tag}>' for cell in shown)}</tr>"


def _has_arrays(system: Any) -> bool:
    mass = system.bodies.mass
    return isinstance(mass, jax.Array | np.ndarray) and mass.ndim > 0


def _without_empty(rows: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """The rows without columns that are empty below their head."""
    kept = [k for k in range(len(_HEAD)) if not k or any(row[k] for row in rows[1:])]
    return [tuple(row[k] for k in kept) for row in rows]


def _title(system: Any) -> str:
    t: Topology = system.topology
    said = [
        f"{type(system).__name__} {t.name!r}: {_count(len(t.bodies), 'body', 'bodies')}",
        f"nq = {t.nq}, nv = {t.nv}",
    ]
    mass, gravity = _known(system.bodies.mass, 1), _known(system.gravity, 1)
    if mass is not None:
        total = mass.sum(axis=-1)
        said.append(f"{_range(total)} kg")
    if gravity is not None:
        said.append(f"gravity ({', '.join(_range(g) for g in np.moveaxis(gravity, -1, 0))}) m/s^2")
    leaves = [system.bodies.mass, system.joints.lower, system.gravity]
    shapes = dict.fromkeys(np.shape(a)[:-1] for a in leaves if np.ndim(a) > 1)
    said += [f"a batch of shape {shape}" for shape in shapes]
    if any(isinstance(a, Tracer) for a in leaves):
        said.append("numbers are traced")
    return ", ".join([*said, str(system.dtype)])


def _others(system: Any) -> Iterator[str]:
    """What acts on the bodies, binds or measures them, a line for each kind."""
    for kind in ("couplings", "constraints", "actuators", "sensors"):
        several = [_name(each) for each in getattr(system, kind)]
        if several:
            more = f" and {len(several) - _MOST_NAMED} more" if len(several) > _MOST_NAMED else ""
            yield f"{kind}: {', '.join(several[:_MOST_NAMED])}{more}"
    if system.frames:
        yield f"frames: {some(list(system.frames), _MOST_NAMED)}"
    if system.states:
        yield f"states: {some(list(system.states), _MOST_NAMED)}"


def _name(part: Any) -> str:
    """What a coupling and the like calls itself, or its type where that would be all its fields."""
    speaks = type(part).__str__ is not object.__str__
    return str(part) if speaks else type(part).__name__


def _rows(system: Any) -> list[_Row]:
    """A row for each body, children below their parents; only branches are indented."""
    t: Topology = system.topology
    children: dict[int, list[int]] = {}
    for b, parent in enumerate(t.parents):
        children.setdefault(parent, []).append(b)
    cells = _cells(system)
    rows: list[_Row] = []
    # Of each body that is still to come the lines in front of it, and of its children.
    todo = _branches(children.get(WORLD, []), "")
    while todo:
        b, guide, below = todo.pop()
        rows.append(_Row(guide, cells[b]))
        todo += _branches(children.get(b, []), below)
    return rows


def _branches(children: Sequence[int], guide: str) -> list[tuple[int, str, str]]:
    """The children of a body, the last one first, with the lines before them and below them."""
    if len(children) == 1:
        return [(children[0], guide, guide)]
    *others, last = children or [None]
    todo = [] if last is None else [(last, f"{guide}└ ", f"{guide}  ")]
    return todo + [(b, f"{guide}├ ", f"{guide}│ ") for b in reversed(others) if b is not None]


def _cells(system: Any) -> list[tuple[str, ...]]:
    t: Topology = system.topology
    joints = system.joints
    mass = _known(system.bodies.mass, 1)
    limits = joints.lower, joints.upper, joints.max_velocity, joints.min_effort, joints.max_effort
    lower, upper, speed, least, most = (_known(a, 1) for a in limits)
    rows = []
    for b, body in enumerate(t.bodies):
        dofs = range(t.dof_start[b], t.dof_start[b + 1])
        units = [UNITS[kind] for kind in t.kinds[b]]
        rows.append(
            (
                body,
                t.joints[b],
                _type(system, b),
                "" if mass is None else _range(mass[..., b]),
                _between(lower, upper, dofs, units),
                _at_most(speed, dofs, [f"{unit}/s" for unit in units]),
                _efforts(least, most, dofs, [FORCE_UNITS[unit] for unit in units]),
            )
        )
    return rows


def _type(system: Any, b: int) -> str:
    """The type of a joint, with its axes where they are numbers, and what it mimics."""
    t, joints = system.topology, system.joints
    name, dofs = t.types[b].type_name(), range(t.dof_start[b], t.dof_start[b + 1])
    axes = _known(joints.axis, 2)
    if t.types[b].in_series and len(dofs) < 3 and axes is not None and axes.ndim == 2:
        name += " " + ", ".join(_axis(axes[k]) for k in dofs)
    if t.mimics[b] is None:
        return name
    source, k = t.joints[t.mimics[b]], int(np.searchsorted(t.mimic_dofs, t.dof_start[b]))
    factor, offset = _known(joints.multiplier, 1), _known(joints.offset, 1)
    if factor is None or offset is None:
        return f"{name}, follows {source}"
    shift = f" + {_range(offset[..., k])}" if np.any(offset[..., k]) else ""
    return f"{name}, {_range(factor[..., k])} * {source}{shift}"


def _axis(axis: NDArray) -> str:
    unit = axis / (np.linalg.norm(axis) or 1)
    near = tuple(np.round(unit, 6) + 0.0)
    return _AXES.get(near) or f"({', '.join(f'{x:.3g}' for x in near)})"


def _between(
    lower: NDArray | None, upper: NDArray | None, dofs: range, units: Sequence[str]
) -> str:
    if lower is None or upper is None:
        return ""
    cells = []
    for k, unit in zip(dofs, units, strict=True):
        low, high = lower[..., k], upper[..., k]
        if np.isfinite(low).any() or np.isfinite(high).any():
            cells.append(f"{_range(low)} to {_range(high)} {unit}")
    return "; ".join(dict.fromkeys(cells))


def _efforts(least: NDArray | None, most: NDArray | None, dofs: range, units: Sequence[str]) -> str:
    if least is None or not np.isfinite(least[..., dofs]).any():
        return _at_most(most, dofs, units)
    return _between(least, most, dofs, units)


def _at_most(most: NDArray | None, dofs: range, units: Sequence[str]) -> str:
    if most is None:
        return ""
    pairs = zip(dofs, units, strict=True)
    cells = [f"{_range(most[..., k])} {u}" for k, u in pairs if np.isfinite(most[..., k]).any()]
    return "; ".join(dict.fromkeys(cells))


def _known(leaf: Any, ndim: int) -> NDArray | None:
    """The numbers of a leaf (..., n); None where they are traced, or no array of so many axes."""
    if isinstance(leaf, Tracer) or not isinstance(leaf, jax.Array | np.ndarray):
        return None
    gone = isinstance(leaf, jax.Array) and (leaf.is_deleted() or not leaf.is_fully_addressable)
    return None if gone or leaf.ndim < ndim else np.asarray(leaf)


def _range(values: NDArray) -> str:
    """A number, or the least and the greatest of a batch."""
    if not np.size(values):
        return "-"
    low, high = f"{np.min(values) + 0.0:.4g}", f"{np.max(values) + 0.0:.4g}"
    return low if low == high else f"{low}...{high}"


def _count(n: int, one: str, several: str) -> str:
    return f"{n} {one if n == 1 else several}"
