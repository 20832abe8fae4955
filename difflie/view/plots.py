"""Figures, drawn without pyplot, so that no global state changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

_COLOURS = ("#0b5394", "#cc4125", "#38761d", "#8e63a6", "#b45f06", "#0097a7", "#5f6368")


def figure(rows: int = 1, columns: int = 1, size: tuple[float, float] = (8.0, 4.5)):
    """A `Figure` and its axes, an array (rows, columns)."""
    canvas = Figure(figsize=size, layout="constrained", dpi=130)
    axes = canvas.subplots(rows, columns, squeeze=False)
    for a in axes.ravel():
        a.grid(visible=True, color="#dddddd", linewidth=0.6)
        a.set_axisbelow(True)
        a.spines[["top", "right"]].set_visible(False)
        a.set_prop_cycle(color=_COLOURS)
    return canvas, axes


def save(canvas: Figure, path: Path) -> Path:
    """Writes a figure as PNG, the folder included."""
    path.parent.mkdir(parents=True, exist_ok=True)
    canvas.savefig(path)
    return path


def label(axes: Axes, x: str, y: str, title: str = "", *, legend: bool = True) -> None:
    """Axis labels with units, a title, and a legend where there is something to name."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if title:
        axes.set_title(title, loc="left", fontsize="medium", fontweight="bold")
    if legend and axes.get_legend_handles_labels()[1]:
        axes.legend(framealpha=0.8, edgecolor="none", fontsize="small")


def draw_lines(axes: Axes, t: np.ndarray, values: np.ndarray, names: Sequence[str]) -> None:
    """One line over t (m,) for each column of values (m, n)."""
    for column, name in zip(np.asarray(values).T, names, strict=True):
        axes.plot(t, column, label=name, linewidth=1.3)


def draw_drift(axes: Axes, t: np.ndarray, drifts: Mapping[str, np.ndarray]) -> None:
    """Absolute drifts (m,) by name on a logarithmic axis; zeros stand at the lower edge."""
    for name, drift in drifts.items():
        drift = np.asarray(drift)
        axes.semilogy(t, np.maximum(drift, 1e-17), label=name, linewidth=1.3)


def motion_figure(
    t: np.ndarray, q: np.ndarray, v: np.ndarray, energies: np.ndarray, names: Sequence[str]
) -> Figure:
    """Coordinates (m, nq), velocities (m, nv) and energies (m, 2) over t (m,) in s."""
    canvas, axes = figure(3, 1, (8.0, 8.5))
    top, middle, bottom = axes[:, 0]
    few = q.shape[1] <= len(_COLOURS)
    draw_lines(
        top, t, q, names if q.shape[1] == len(names) else [f"q{i}" for i in range(q.shape[1])]
    )
    label(top, "t [s]", "q [rad or m]", "Coordinates", legend=few)
    draw_lines(middle, t, v, [f"v{i}" for i in range(v.shape[1])])
    label(middle, "t [s]", "v [rad/s or m/s]", "Velocities", legend=False)
    total = energies.sum(axis=1, keepdims=True)
    draw_lines(bottom, t, np.concatenate((energies, total), 1), ("kinetic", "potential", "total"))
    label(bottom, "t [s]", "energy [J]", "Energy")
    return canvas
