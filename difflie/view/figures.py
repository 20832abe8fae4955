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
_MOST_NAMES = 32
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

    No legend for unnamed lines, or for too many.
    """
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if title:
        axes.set_title(title, loc="left", fontsize="medium", fontweight="bold")
    names = len(axes.get_legend_handles_labels()[1])
    if legend and 0 < names <= _MOST_NAMES:
        columns = 1 + (names - 1) // (_MOST_NAMES // 2)
        axes.legend(
            loc="upper left",
            bbox_to_anchor=(1, 1),
            frameon=False,
            fontsize="small",
            ncols=columns,
            handlelength=3.2,
        )


def entitle(canvas: Figure, title: str, notes: Iterable[str] = ()) -> None:
    """A title above all axes, and notes below them, such as what could not be drawn."""
    if title:
        canvas.suptitle(plain(title), x=0.01, ha="left", fontsize="large", fontweight="bold")
    if said := "\n".join(textwrap.fill(plain(note), 100) for note in notes):
        canvas.supxlabel(said, x=0.01, ha="left", fontsize="small", color="#5f6368")


def plain(name: str) -> str:
    """A name as matplotlib shows it unchanged, also in a legend."""
    # A dollar sign would start a formula, and a line whose name starts with _ would have none.
    shown = name.replace("$", r"\$")
    return f"\u200b{shown}" if shown.startswith("_") else shown


def colours(n: int) -> list[Any]:
    """n different colours (n,); up to nine are told apart by all kinds of colour vision."""
    if n <= len(_COLOURS):
        return list(_COLOURS[:n])
    return list(colormaps["turbo"](np.linspace(0.05, 0.95, n)))


def draw_lines(axes: Axes, t: np.ndarray, values: np.ndarray, names: Sequence[str]) -> None:
    """One line over t (m,) for each column of values (m, n), each in its own colour."""
    for column, name, colour in zip(np.asarray(values).T, names, colours(len(names)), strict=True):
        axes.plot(t, column, label=plain(name), color=colour, linewidth=1.3)


def draw_drift(axes: Axes, t: np.ndarray, drifts: Mapping[str, np.ndarray]) -> None:
    """Absolute drifts (m,) by name on a logarithmic axis; zeros stand at the lower edge."""
    for (name, drift), colour in zip(drifts.items(), colours(len(drifts)), strict=True):
        shown = np.maximum(np.asarray(drift), FLOOR)
        axes.semilogy(t, shown, label=plain(name), color=colour, linewidth=1.3)


def draw_curve(axes: Axes, curve: Curve) -> None:
    """A `Curve` (m, n) over time, a line for each of its entries that has a finite number.

    The unit is at the axis, or at each line if there are several.
    """
    finite = np.flatnonzero(np.isfinite(curve.values).any(axis=0))
    labels = [curve.labels[k] for k in finite]
    units = list(dict.fromkeys(unit for _, unit in labels if unit))
    names = [f"{name} [{unit}]" if len(units) > 1 else name for name, unit in labels]
    draw_lines(axes, curve.t, curve.values[:, finite], names)
    label(axes, "t [s]", f"{curve.name} [{', '.join(units)}]" if units else curve.name)
