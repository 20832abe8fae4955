"""Figures, made without pyplot, so that no global state changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..io.files import written
from ..quantities import Curve

_COLOURS = ("#0b5394", "#cc4125", "#38761d", "#8e63a6", "#b45f06", "#0097a7", "#5f6368")
_MOST_NAMES = 32


def figure(
    rows: int = 1,
    columns: int = 1,
    size: tuple[float, float] = (8.0, 4.5),
    heights: Sequence[float] | None = None,
    widths: Sequence[float] | None = None,
):
    """A `Figure` and its axes, an array (rows, columns).

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


def new_figure(size: tuple[float, float]) -> Figure:
    """A `Figure` without axes; size in inches."""
    return Figure(figsize=size, layout="constrained", dpi=130)


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


def colours(n: int) -> list[Any]:
    """n different colours (n,)."""
    if n <= len(_COLOURS):
        return list(_COLOURS[:n])
    return list(colormaps["turbo"](np.linspace(0.05, 0.95, n)))


def draw_lines(axes: Axes, t: np.ndarray, values: np.ndarray, names: Sequence[str]) -> None:
    """One line over t (m,) for each column of values (m, n), each in its own colour."""
    for column, name, colour in zip(np.asarray(values).T, names, colours(len(names)), strict=True):
        # A dollar sign would start a formula.
        axes.plot(t, column, label=name.replace("$", r"\$"), color=colour, linewidth=1.3)


def draw_drift(axes: Axes, t: np.ndarray, drifts: Mapping[str, np.ndarray]) -> None:
    """Absolute drifts (m,) by name on a logarithmic axis; zeros stand at the lower edge."""
    for name, drift in drifts.items():
        drift = np.asarray(drift)
        axes.semilogy(t, np.maximum(drift, 1e-17), label=name, linewidth=1.3)


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


def curve_figure(curves: Sequence[Curve]) -> Figure:
    """Curves (m, n) over time, one below the other."""
    canvas, axes = figure(len(curves), 1, (8.0, 2.8 * len(curves)))
    for a, curve in zip(axes[:, 0], curves, strict=True):
        draw_curve(a, curve)
    return canvas
