"""Tables of a sweep as figures: maps, scatter, histograms, and what became of the rows.

Parallel coordinates are a line for each row, through an axis for each column.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from numpy.typing import NDArray

from .columns import (
    COLOURS,
    MISSING,
    Column,
    bins,
    caption,
    colour_bar,
    edges,
    places,
    scale_axis,
    scaled,
    subsample,
    ticks,
)
from .figures import figure, plain

_POINTS, _TICKS = 3000, 100
_MOST_ON_AXIS = 200
_BLUE, _ORANGE = "#0b5394", "#e69f00"


def map_figure(maps: Sequence[tuple[Column, Column, Column]]) -> Figure:
    """Outputs (m,) as colours over two numbers (m,) each: a map for each (x, y, output).

    Cells where the two numbers form a grid, with the mean of the rows in each; otherwise points, of
    many rows some, always the same. Where no value is finite a cell is hatched, a point a cross.
    Raises ValueError without any map, and for columns of different lengths.
    """
    if not maps:
        raise ValueError("maps: there is nothing to draw; give at least one (x, y, output)")
    for each in maps:
        shapes = [np.shape(column.values) for column in each]
        if len(set(shapes)) > 1 or len(shapes[0]) != 1:
            named = ", ".join(f"{c.name} {s}" for c, s in zip(each, shapes, strict=True))
            raise ValueError(f"maps: the columns have the shapes {named}; give one number a row")
    columns = min(2, len(maps))
    rows = -(-len(maps) // columns)
    canvas, axes = figure(rows, columns, (5.8 * columns, 4.2 * rows))
    for a, (x, y, output) in zip(axes.ravel(), maps, strict=False):
        ux, uy = np.unique(x.values), np.unique(y.values)
        on_grid = len(ux) * len(uy) <= len(x.values) and 1 < max(len(ux), len(uy)) <= _MOST_ON_AXIS
        said = _draw_cells(a, x, y, output) if on_grid else _draw_points(a, x, y, output)
        colour_bar(canvas, a, output)
        a.set_xlabel(x.label)
        a.set_ylabel(y.label)
        _entitle(a, f"{output.name}: {said}")
    for a in axes.ravel()[len(maps) :]:
        a.set_axis_off()
    return canvas


def _draw_cells(axes: Axes, x: Column, y: Column, output: Column) -> str:
    """The mean output of each combination of two numbers; returns what is shown."""
    ux, i = np.unique(x.values, return_inverse=True)
    uy, j = np.unique(y.values, return_inverse=True)
    at, shape = j * len(ux) + i, (len(uy), len(ux))
    there, count = output.there, len(ux) * len(uy)
    inside = np.bincount(at[there], minlength=count)
    total = np.bincount(at[there], output.finite, minlength=count)
    mean = np.where(inside > 0, total / np.maximum(inside, 1), np.nan).reshape(shape)
    log = x.is_logarithmic, y.is_logarithmic
    for which, log_axis in zip("xy", log, strict=True):
        if log_axis:
            (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    axes.grid(visible=False)
    axes.patch.set(facecolor="#eeeeee", hatch="///", edgecolor=MISSING)
    norm = scaled(output)
    axes.pcolormesh(
        edges(ux, log[0]), edges(uy, log[1]), mean, cmap=COLOURS, norm=norm, rasterized=True
    )
    gaps, most = int((inside == 0).sum()), len(output.values) // count
    said = f"means of about {most} rows" if most > 1 else caption(count, count)
    return f"{said}; hatched, without a value: {gaps} of {count} cells" if gaps else said


def _draw_points(axes: Axes, x: Column, y: Column, output: Column) -> str:
    """A point for each row, or for some; returns what is shown."""
    there, lost = np.flatnonzero(output.there), np.flatnonzero(~output.there)
    shown, crosses = subsample(there, _POINTS), subsample(lost, _POINTS // 5)
    norm = scaled(output)
    axes.scatter(
        x.values[crosses], y.values[crosses], marker="x", s=12, linewidths=0.8, color=MISSING
    )
    axes.scatter(
        x.values[shown],
        y.values[shown],
        c=output.values[shown],
        norm=norm,
        cmap=COLOURS,
        s=_size(len(shown)),
        linewidths=0,
    )
    scale_axis(axes, "x", x)
    scale_axis(axes, "y", y)
    said = caption(len(shown), len(there))
    if lost.size:
        said += f"; crosses, without a value: {caption(len(crosses), len(lost))}"
    return said


def scatter_figure(output: Column, numbers: Sequence[Column]) -> Figure:
    """An output (m,) against each number (m,), with the distribution of each beside the points.

    A line joins the medians of the output over parts of a number with equally many rows, or at its
    values where they are few. Of many rows some are drawn, always the same; distributions and
    medians are of all. Ticks at the lower edge are rows whose output is not finite.
    """
    rows = -(-len(numbers) // 4)
    columns = -(-len(numbers) // rows)
    widths = 3.0 if columns > 1 else 5.0
    canvas, axes = figure(
        2 * rows,
        columns + 1,
        (min(11.0, widths * columns + 1.0), 3.0 * rows + 0.5),
        [1, 4] * rows,
        [4] * columns + [1],
    )
    there, lost = np.flatnonzero(output.there), np.flatnonzero(~output.there)
    shown, ticks = subsample(there, _POINTS), subsample(lost, _TICKS)
    for a in axes.ravel():
        a.set_visible(False)
    low, high = output.limits
    height = np.clip(output.values[shown], low, high)
    for k, number in enumerate(numbers):
        row, column = divmod(k, columns)
        above, a = axes[2 * row : 2 * row + 2, column]
        a.set_visible(True)
        a.plot(number.values[shown], height, ".", color=_BLUE, **_dots(len(shown)))
        a.plot(*_medians(number.at(there), output.at(there)), color=_ORANGE, linewidth=2)
        scale_axis(a, "x", number)
        scale_axis(a, "y", output)
        a.plot(number.values[ticks], np.full(len(ticks), 0.02), "|", color="#222222",
               markersize=7, markeredgewidth=0.7, transform=a.get_xaxis_transform())  # fmt: skip
        a.set_xlabel(number.label, fontsize="small")
        a.tick_params(labelsize="small")
        if column == 0:
            a.set_ylabel(output.label)
        else:
            a.tick_params(labelleft=False)
        _draw_margin(above, number, "x")
    for row in range(len(numbers) // columns):
        _draw_margin(axes[2 * row + 1, columns], output, "y")
    said = f"{output.full}: {caption(len(shown), len(there))}; line: medians"
    if output.beyond:
        said += f"; {output.beyond} beyond are at the edges"
    if lost.size:
        said += f"; ticks below, without a value: {caption(len(ticks), len(lost))}"
    _over(canvas, said, 44 + 16 * columns)
    return canvas


def _draw_margin(axes: Axes, column: Column, which: str) -> None:
    """The distribution of a column along an axis, without numbers, as the axis has them."""
    axes.set_visible(True)
    vertical = which == "x"
    axes.hist(
        column.finite,
        bins(column).tolist(),
        color="#9dbbd8",
        orientation="vertical" if vertical else "horizontal",
    )
    scale_axis(axes, which, column)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.tick_params(which="both", length=0, labelbottom=False, labelleft=False)


def _medians(number: Column, output: Column) -> tuple[NDArray, NDArray]:
    """The medians of an output over parts of a number, and those of the number there."""
    values, at = np.unique(number.values, return_inverse=True)
    if len(values) > 20:
        order = np.argsort(number.values, kind="stable")
        parts = np.array_split(order, min(20, len(order) // 10))
    else:
        parts = [np.flatnonzero(at == k) for k in range(len(values))]
    middle = [(np.median(number.values[p]), np.median(output.values[p])) for p in parts if len(p)]
    x, y = np.array(middle).reshape(-1, 2).T
    return x, y


def histogram_figure(outputs: Sequence[Column]) -> Figure:
    """The distribution of each output (m,), and how many of its values are not finite."""
    columns = min(3, len(outputs))
    rows = -(-len(outputs) // columns)
    canvas, axes = figure(rows, columns, (max(4.5, 4.0 * columns), 2.8 * rows))
    for a, output in zip(axes.ravel(), outputs, strict=False):
        low, lost = output.ends[0], int((~output.there).sum())
        title = output.name
        if lost:
            title += f": {lost} of {len(output.values)} not finite"
        if output.beyond:
            title += f"{', ' if lost else ': '}{output.beyond} beyond the picture"
        _entitle(a, title, 42)
        a.set_xlabel(output.label)
        a.set_ylabel("rows")
        if output.finite.size and not output.is_constant:
            a.hist(output.finite, bins(output).tolist(), color=_BLUE)
            scale_axis(a, "x", output)
            continue
        said = f"{low:.6g} in all rows" if output.finite.size else "no finite value"
        a.text(0.5, 0.5, said, ha="center", transform=a.transAxes)
        a.set_xticks([])
        a.set_yticks([])
    for a in axes.ravel()[len(outputs) :]:
        a.set_axis_off()
    return canvas


def status_figure(counts: Mapping[str, int]) -> Figure:
    """How many rows have ended how, as bars with their numbers and shares."""
    canvas, [[a]] = figure(size=(8.0, 0.9 + 0.4 * len(counts)))
    names, numbers = list(counts), np.array(list(counts.values()))
    a.barh(names, numbers, color=[_BLUE if n == "done" else MISSING for n in names])
    for k, number in enumerate(numbers):
        share = 100 * number / max(1, numbers.sum())
        a.annotate(
            f"{number} ({share:.3g} %)", (number, k), (6, 0), textcoords="offset points",
            va="center", fontsize="small",
        )  # fmt: skip
    a.invert_yaxis()
    a.set_xlim(0, 1.2 * max(1, numbers.max(initial=0)))
    a.set_xlabel("rows")
    a.xaxis.set_major_locator(ticker.MaxNLocator(4, integer=True))
    a.xaxis.set_major_formatter("{x:.0f}")
    a.grid(visible=False, axis="y")
    _entitle(a, "What became of the rows")
    return canvas


def _size(count: int) -> float:
    """The area of points of which there are so many, in square points."""
    return float(np.clip(9000 / max(count, 1), 6, 45))


def _dots(count: int) -> dict[str, Any]:
    """The size and the opacity of points of which there are so many."""
    return {
        "markersize": float(np.clip(90 / np.sqrt(max(count, 1)), 2.5, 9)),
        "alpha": float(np.clip(500 / max(count, 1), 0.35, 0.9)),
        "markeredgewidth": 0,
    }


def _entitle(axes: Axes, said: str, width: int = 60) -> None:
    said = plain(textwrap.fill(said, width))
    axes.set_title(said, loc="left", fontsize="medium", fontweight="bold")


def _over(canvas: Figure, said: str, width: int) -> None:
    text = plain(textwrap.fill(said, width))
    canvas.suptitle(text, x=0.01, ha="left", fontsize="medium", fontweight="bold")


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
