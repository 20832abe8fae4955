"""Estimates with their confidence, as figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ..io.results import Results
from .figures import broken, colours, entitle, figure, label, plain

_PAIRS = 6


@dataclass(frozen=True)
class Estimated(Results):
    """A number that was estimated, and how far it can be trusted; None where nothing was fitted.

    start and value in its SI unit. std_error: infinite where it is not identifiable, NaN where none
    is known; std_error_white: that of white noise. interval (2,): of 95 %, None where none is
    known. bounds (2,), infinite where there are none. prior_share: the part of priors in the
    variance. of_log: whether it belongs to a log, rather than to a machine.
    """

    unit: str
    start: float
    value: float
    std_error: float | None = None
    std_error_white: float | None = None
    interval: Sequence[float] | None = None
    bounds: Sequence[float] | None = None
    at_bound: bool | None = None
    prior_share: float | None = None
    of_log: bool = False


def estimate_figure(
    parameters: Mapping[str, Estimated], title: str = "Estimates and their start"
) -> Figure:
    """Estimates with 95 % intervals and starts, parameters of one unit on one axis, as a figure.

    parameters: the estimates by name. Raises ValueError without any.
    """
    if not parameters:
        raise ValueError("estimates: there is nothing to draw; give at least one parameter")
    units = list(dict.fromkeys(p.unit for p in parameters.values()))
    groups = [{n: p for n, p in parameters.items() if p.unit == unit} for unit in units]
    size = 7.0, 0.4 + 0.9 * len(groups) + 0.28 * len(parameters)
    canvas, axes = figure(len(groups), 1, size, [len(group) + 2.0 for group in groups])
    known_colour, start_colour, unknown_colour = colours(3)
    errors = np.array([p.std_error for p in parameters.values()], float)
    anywhere = np.isfinite(errors)
    unknown = "without standard error" if np.isnan(errors).any() else "not identifiable"
    marks = {"color": unknown_colour, "mfc": "none", "label": unknown}
    for a, unit, group in zip(axes[:, 0], units, groups, strict=True):
        places = np.arange(len(group))
        value, start, error = (
            np.array([getattr(p, key) for p in group.values()], float)
            for key in ("value", "start", "std_error")
        )
        known = np.isfinite(error)
        if known.any():
            own = [p.interval for p, there in zip(group.values(), known, strict=True) if there]
            ends = np.array(own).T
            a.errorbar(
                value[known],
                places[known],
                xerr=np.maximum((value[known] - ends[0], ends[1] - value[known]), 0),
                fmt="o",
                color=known_colour,
                capsize=3,
                label="estimate, 95 %",
            )
        elif anywhere.any():  # for the legend, which stands once
            a.plot([], [], "o", color=known_colour, label="estimate, 95 %")
        if not anywhere.all():
            a.plot(value[~known], places[~known], "o", **marks)
        a.plot(start, places, "x", color=start_colour, label="start", zorder=3)
        a.set_yticks(places, [broken(plain(name)) for name in group])
        a.set_ylim(len(group) - 0.5, -0.5)
        label(a, f"[{unit}]" if unit else "without unit", "", legend=a is axes[0, 0])
    entitle(canvas, title)
    return canvas


def correlation_figure(names: Sequence[str], correlations: NDArray) -> Figure:
    """The correlations (p, p) of all parameters, as a figure."""
    size = max(6.5, 2.5 + 0.18 * len(names))
    canvas, axes = figure(1, 1, (size, size - 1))
    only = axes[0, 0]
    only.grid(visible=False)
    image = only.imshow(correlations, vmin=-1, vmax=1, cmap="RdBu")
    canvas.colorbar(image, ax=only, label="correlation")
    shown = [broken(plain(name)) for name in names]
    only.set_xticks(range(len(names)), shown, rotation=90, fontsize="x-small")
    only.set_yticks(range(len(names)), shown, fontsize="x-small")
    entitle(canvas, "Correlations of the estimates")
    return canvas


def ellipse_figure(parameters: Mapping[str, Estimated], correlations: NDArray) -> Figure | None:
    """The 95 % confidence ellipses of the most correlated pairs of parameters, six at most.

    parameters: as for `estimate_figure`; correlations (p, p). None where no two numbers have
    standard errors.
    """
    known = np.isfinite(np.array([p.std_error for p in parameters.values()], float))
    r = np.nan_to_num(np.triu(correlations, 1)) * np.outer(known, known)
    order = np.argsort(-np.abs(r), axis=None)[:_PAIRS]
    pairs = [(i, j) for i, j in zip(*np.unravel_index(order, r.shape), strict=True) if r[i, j]]
    if not pairs:
        return None
    columns = min(len(pairs), 3)
    rows = -(-len(pairs) // columns)
    canvas, axes = figure(rows, columns, (4.5 * columns + 1.5, 3.9 * rows))
    named = list(parameters.items())
    for k, a in enumerate(axes.ravel()):
        if k < len(pairs):
            i, j = pairs[k]
            _ellipse(a, named[i], named[j], float(r[i, j]), legend=k == columns - 1)
        else:
            a.set_visible(False)
    entitle(canvas, "Confidence of the pairs most correlated, by standard errors")
    return canvas


def _ellipse(
    axes: Axes,
    first: tuple[str, Estimated],
    second: tuple[str, Estimated],
    r: float,
    legend: bool,
) -> None:
    centre, start, size = (
        np.array([getattr(p, key) + 0.0 for _, p in (first, second)])
        for key in ("value", "start", "std_error")
    )
    angle = np.linspace(0, 2 * np.pi, 200)
    x = np.cos(angle)
    y = r * x + np.sqrt(max(1 - r * r, 0)) * np.sin(angle)
    # Chi-squared of two numbers is -2 log(1 - probability).
    radius = np.sqrt(-2 * np.log(0.05)) * size
    axes.plot(centre[0] + radius[0] * x, centre[1] + radius[1] * y, label="95 %", linewidth=1.4)
    blue, other = colours(2)
    axes.plot(*centre, "o", color=blue, label="estimate")
    least, most = centre - 1.3 * radius, centre + 1.3 * radius
    # If the start is far off, the ellipse would shrink to a point.
    edge = np.clip(start, least, most)
    axes.plot(*edge, "x", color=other, label="start", clip_on=False, markeredgewidth=2)
    if not np.array_equal(edge, start):
        text = f"start beyond: {start[0]:.4g}, {start[1]:.4g}"
        free = {"y": 0.96, "va": "top"} if r > 0 else {"y": 0.04, "va": "bottom"}
        axes.text(x=0.03, s=text, transform=axes.transAxes, fontsize="small", color=other, **free)
    axes.set_xlim(least[0], most[0])
    axes.set_ylim(least[1], most[1])
    axes.ticklabel_format(useOffset=False)
    axes.locator_params(axis="x", nbins=4)
    named = (f"{name} [{p.unit}]" if p.unit else name for name, p in (first, second))
    x, y = (broken(plain(name)) for name in named)
    label(axes, x, y, f"correlation {r:+.2f}", legend=legend)
