"""Parallel coordinates: a line for each row of a table, through an axis for each column."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from numpy.typing import NDArray

from .columns import COLOURS, MISSING, Column, caption, colour_bar, places, scaled, subsample, ticks
from .figures import figure, plain

# Pieces of lines between axes: more would be a carpet.
_PIECES = 6000
_SPACE = 4.0


def parallel_figure(numbers: Sequence[Column], outputs: Sequence[Column]) -> Figure:
    """Parallel coordinates of numbers and outputs (m,), coloured by the first of the outputs.

    Of many rows some are drawn, always the same. The lines of the least and greatest values are on
    top. Rows whose first output is not finite are grey and dashed; a line has a gap where another
    value is not finite. The title says how many of what are shown.
    """
    columns, colour = [*numbers, *outputs], outputs[0]
    canvas, [[a]] = figure(size=(min(11.0, 3.5 + 0.9 * len(columns)), 5.2))
    there = np.flatnonzero(colour.there)
    lost = np.flatnonzero(~colour.there)
    most = _PIECES // len(columns)
    shown, grey = subsample(there, most), subsample(lost, most // 5)
    if there.size:
        # Its ends are in the picture whatever is drawn.
        ends = there[[np.argmin(colour.values[there]), np.argmax(colour.values[there])]]
        shown = np.union1d(shown, ends)
    lines = np.stack([_line_ends(c, (shown, grey)) for c in columns], axis=-1)
    height, dashed = lines[: len(shown)], lines[len(shown) :]
    grey_ones = np.broadcast_to(to_rgba(MISSING), (len(dashed), 4))
    _draw_lines(a, dashed, grey_ones, linewidths=0.7, linestyles="--", alpha=0.6)
    if there.size:
        norm = scaled(colour)
        values = colour.values[shown]
        rank = np.argsort(np.argsort(values)) / max(1, len(values) - 1)
        order = np.argsort(np.abs(rank - 0.5), kind="stable")
        thin = float(np.clip(60 / len(shown), 0.5, 1.5))
        opaque = float(np.clip(300 / len(shown), 0.35, 1.0))
        made = COLOURS(norm(values[order]))
        _draw_lines(a, height[order], made, linewidths=thin, alpha=opaque)
        colour_bar(canvas, a, colour)
    _draw_axes(a, numbers, outputs)
    said = f"{caption(len(shown), len(there))}, coloured by {colour.full}, the extremes on top"
    if not there.size:
        said = f"no row has a value of {colour.full}"
    if lost.size:
        said += f"; grey, dashed, without a value of it: {caption(len(grey), len(lost))}"
    title = plain(textwrap.fill(said, 95))
    a.set_title(title, loc="left", fontsize="medium", fontweight="bold", pad=22)
    return canvas


def _line_ends(column: Column, parts: Sequence[NDArray]) -> NDArray:
    """Where the lines of some rows, in parts, cross the axis of a column."""
    rows = np.concatenate(parts)
    return places(column.at(rows), column.ends, column.is_logarithmic)


def _draw_lines(axes: Axes, height: NDArray, colours: NDArray, **style: Any) -> None:
    """Lines through heights (m, k) over 0 ... k - 1, with gaps; single points in gaps are dots."""
    x = np.broadcast_to(np.arange(height.shape[1]), height.shape)
    lines = LineCollection(list(np.stack((x, height), axis=-1)), colors=colours, **style)
    axes.add_collection(lines, autolim=False)
    there = np.pad(np.isfinite(height), ((0, 0), (1, 1)))
    row, k = np.nonzero(there[:, 1:-1] & ~there[:, :-2] & ~there[:, 2:])
    axes.scatter(k, height[row, k], s=10, c=colours[row], linewidths=0, alpha=style["alpha"])


def _draw_axes(axes: Axes, numbers: Sequence[Column], outputs: Sequence[Column]) -> None:
    columns = [*numbers, *outputs]
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.set_yticks([])
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlim(-0.3, len(columns) - 0.4)
    small = 7 if len(columns) > 10 else 8
    for k, column in enumerate(columns):
        axes.axvline(k, color="#222222", linewidth=1.0, zorder=3)
        values, texts = ticks(column)
        at = places(column._replace(values=values), column.ends, column.is_logarithmic)
        for height, said in zip(at, texts, strict=True):
            axes.annotate(
                said,
                (k, height),
                (_SPACE, 0),
                textcoords="offset points",
                va="center",
                fontsize=small,
                zorder=4,
                bbox={"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 0.8},
            )
    axes.set_xticks(range(len(columns)), [c.label for c in columns])
    long = max(len(line) for c in columns for line in c.label.splitlines())
    if len(columns) * long > 90 or len(columns) > 6:
        axes.tick_params(axis="x", labelrotation=35, labelsize=8)
        for text in axes.get_xticklabels():
            text.set_horizontalalignment("right")
            text.set_rotation_mode("anchor")
    axes.tick_params(axis="x", length=0)
    for first, last, title in (
        (0, len(numbers), "numbers"),
        (len(numbers), len(columns), "outputs"),
    ):
        if last > first:
            axes.annotate(
                title, ((first + last - 1) / 2, 1.03), (0, 4), textcoords="offset points",
                ha="center", color="#5f6368", fontsize="small", annotation_clip=False,
            )  # fmt: skip
    axes.axvspan(len(numbers) - 0.35, len(columns) - 0.4, color="#f3f3f3", zorder=0)
