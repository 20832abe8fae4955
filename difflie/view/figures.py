"""Figures, made without pyplot, so that no global state changes."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..io.files import written
from ..quantities import Curve

# Any two are at least 27 apart in CIE Lab, also as seen without one of the three kinds of cones
# (Machado, Oliveira and Fernandes 2009), and each has a contrast of 3 with white.
_COLOURS = (
    *("#268bfe", "#9d3201", "#226356", "#c58703", "#75269a"),
    *("#f854b2", "#2c204a", "#889661", "#43190d"),
)
# Of names, in characters: longer ones are broken, so that curves keep their room.
_WIDTH = 28
# Of a legend, in inches: the height of a line, the width of a letter, and of what is before them.
_LINE, _LETTER, _HANDLE = 0.19, 0.065, 0.55
# Of a figure, in inches.
_HIGHEST = 60.0
# Of a title, so many in an inch.
_LETTERS = 9
# Where zeros are drawn on a logarithmic axis.
FLOOR = 1e-17


class Picture(Figure):
    """A matplotlib figure that a notebook shows, without pyplot."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png")
        return file.getvalue()


def figure(
    rows: int = 1,
    columns: int = 1,
    size: tuple[float, float] = (8.0, 4.5),
    heights: Sequence[float] | None = None,
    widths: Sequence[float] | None = None,
):
    """A `Picture` and its axes, an array (rows, columns).

    heights (rows,), widths (columns,): their ratios.
    """
    canvas = new_figure(size)
    axes = canvas.subplots(rows, columns, squeeze=False, height_ratios=heights, width_ratios=widths)
    for a in axes.ravel():
        a.grid(visible=True, color="#dddddd", linewidth=0.6)
        a.set_axisbelow(True)
        a.spines[["top", "right"]].set_visible(False)
        a.set_prop_cycle(color=_COLOURS)
    return canvas, axes


def new_figure(size: tuple[float, float]) -> Picture:
    """A `Picture` without axes; size in inches."""
    return Picture(figsize=size, layout="constrained", dpi=130)


def save(canvas: Figure, path: Path) -> Path:
    """Writes a figure as its name says, such as .png, whole or not at all; makes its folder."""
    with written(path) as file:
        canvas.savefig(file, format=path.suffix[1:] or "png")
    return path


def label(axes: Axes, x: str, y: str, title: str = "", *, legend: bool = True) -> None:
    """Axis labels with units, a title, and a legend beside the axes, where it hides nothing.

    It names every line: where there are many the picture grows higher. Of more than fit into the
    highest picture it names some, evenly spaced, and says so; of unnamed ones there is none.
    """
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if title:
        axes.set_title(title, loc="left", fontsize="medium", fontweight="bold")
    handles, names = axes.get_legend_handles_labels()
    if not legend or not names:
        return
    texts = [broken(name) for name in names]
    rows, most = _room(axes, texts)
    shown, lines = np.arange(len(texts)), sum(map(_lines, texts))
    # A name is in one column.
    rows = _heightened(axes, rows, -(-len(texts) // most) * max(map(_lines, texts)))
    while lines > rows * most and len(shown) > 1:
        shown = np.linspace(0, len(texts) - 1, len(shown) - 1).round().astype(int)
        # One is for the title.
        lines = most + sum(_lines(texts[k]) for k in shown)
    axes.legend(
        [handles[k] for k in shown],
        [texts[k] for k in shown],
        title=f"{len(shown)} of {len(names)} lines" if len(shown) < len(names) else None,
        title_fontsize="small",
        alignment="left",
        loc="upper left",
        bbox_to_anchor=(1, 1),
        frameon=False,
        fontsize="small",
        ncols=min(len(shown), -(-lines // rows)),
        handlelength=3.2,
    )


def _heightened(axes: Axes, rows: int, needed: int) -> int:
    """The rows of a legend that its axes have room for, in a figure that is higher if need be."""
    canvas = axes.figure
    assert isinstance(canvas, Figure)
    height = float(canvas.get_figheight())
    possible = max(rows, int(rows * _HIGHEST / height))
    wanted = min(max(rows, needed), possible)
    if wanted > rows:
        canvas.set_figheight(height * wanted / rows)
    return wanted


def _lines(text: str) -> int:
    return 1 + text.count("\n")


def _room(axes: Axes, texts: Iterable[str]) -> tuple[int, int]:
    """The rows of a legend as high as its axes, and its columns that leave room for curves."""
    width, height = np.array(axes.bbox.size) / axes.figure.dpi
    longest = max(len(line) for text in texts for line in text.split("\n"))
    column = _HANDLE + _LETTER * longest
    return max(3, int(height / _LINE)), max(1, int(0.8 * width / column))


def entitle(canvas: Figure, title: str, notes: Iterable[str] = ()) -> None:
    """A title above all axes, and notes below them, such as what could not be drawn."""
    if title:
        lines = "\n".join(textwrap.wrap(title, int(_LETTERS * canvas.get_figwidth()))) or title
        canvas.suptitle(plain(lines), x=0.01, ha="left", fontsize="large", fontweight="bold")
    if said := "\n".join(textwrap.fill(plain(note), 100) for note in notes):
        canvas.supxlabel(said, x=0.01, ha="left", fontsize="small", color="#5f6368")


def plain(name: str) -> str:
    """A name as matplotlib shows it unchanged, also in a legend."""
    # A dollar sign would start a formula, and a line whose name starts with _ would have none.
    shown = name.replace("$", r"\$")
    return f"\u200b{shown}" if shown.startswith("_") else shown


def broken(name: str) -> str:
    """A `plain` name in lines that are not long, all of it."""
    # A dollar sign must not be torn from what keeps it from starting a formula; paths are broken
    # behind a slash.
    spaced = name.replace(r"\$", "\ue000").replace("/", "/\ue001 ")
    lines = "\n".join(textwrap.wrap(spaced, _WIDTH, break_on_hyphens=False))
    joined = lines.replace("\ue001 ", "").replace("\ue001", "")
    return joined.replace("\ue000", r"\$") or name


def single(column: np.ndarray) -> str | None:
    """The marker of a line: a dot where it has one finite value, which would not be seen."""
    return "." if np.isfinite(column).sum() == 1 else None


def colours(n: int) -> list[Any]:
    """n different colours (n,); up to nine are told apart by all kinds of colour vision."""
    if n <= len(_COLOURS):
        return list(_COLOURS[:n])
    return list(colormaps["turbo"](np.linspace(0.05, 0.95, n)))


def draw_lines(axes: Axes, t: np.ndarray, values: np.ndarray, names: Sequence[str]) -> None:
    """One line over t (m,) for each column of values (m, n), each in its own colour."""
    for column, name, colour in zip(np.asarray(values).T, names, colours(len(names)), strict=True):
        style = {"color": colour, "linewidth": 1.3, "marker": single(column)}
        axes.plot(t, column, label=plain(name), **style)


def draw_drift(axes: Axes, t: np.ndarray, drifts: Mapping[str, np.ndarray]) -> None:
    """Absolute drifts (m,) by name on a logarithmic axis; zeros stand at the lower edge."""
    for (name, drift), colour in zip(drifts.items(), colours(len(drifts)), strict=True):
        shown = np.maximum(np.asarray(drift), FLOOR)
        style = {"color": colour, "linewidth": 1.3, "marker": single(shown)}
        axes.semilogy(t, shown, label=plain(name), **style)


def draw_curve(axes: Axes, curve: Curve) -> None:
    """A `Curve` (m, n) over time, a line for each of its entries that has a finite number.

    The unit is at the axis, or at each line if there are several.
    """
    finite = np.flatnonzero(np.isfinite(curve.values).any(axis=0))
    labels = [curve.labels[k] for k in finite]
    units = list(dict.fromkeys(unit for _, unit in labels if unit))
    names = [f"{name} [{unit}]" if len(units) > 1 and unit else name for name, unit in labels]
    draw_lines(axes, curve.t, curve.values[:, finite], names)
    label(axes, "t [s]", f"{curve.name} [{', '.join(units)}]" if units else curve.name)
