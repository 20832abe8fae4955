"""The plans of control problems, as figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ..quantities import Curve
from .figures import colours, entitle, figure, label, plain, single
from .series import numbers, whole

_GREY = "#5f6368"


@dataclass(frozen=True)
class Bounded:
    """A curve (m, n) with bounds (n,), infinite where there are none.

    held: whether its values hold until the next time, rather than changing between them. seen (m,
    n): other values at the same times, such as of a simulation, drawn as dots.
    """

    curve: Curve
    lower: NDArray
    upper: NDArray
    held: bool = False
    seen: NDArray | None = None


def plan_figure(curves: Sequence[Bounded], costs: NDArray, title: str = "Plan") -> Figure:
    """Curves over time, with their bounds dashed, and the costs (m,) of a search below them.

    Entries of costs that are not finite are left out, and bounds far outside of their curve. Raises
    ValueError for arrays that do not fit each other, and for a curve without a finite value.
    """
    curves, notes = _checked(curves)
    costs = numbers("plan", "costs", costs)
    canvas, axes = figure(len(curves) + 1, 1, (8.0, 2.6 * (len(curves) + 1)))
    for a, bounded in zip(axes[:, 0], curves, strict=False):
        _draw(a, bounded)
    last, costs = axes[-1, 0], costs[np.isfinite(costs)]
    last.plot(costs, color=colours(1)[0], linewidth=1.3, marker=single(costs))
    if costs.size and costs.min() > 0:
        last.set_yscale("log")
        # A guess with gaps may cost almost nothing.
        last.set_ylim(bottom=max(costs.min(), 1e-3 * costs[-1]) / 2)
    label(last, "iteration", "cost", legend=False)
    entitle(canvas, title, notes)
    return canvas


def _checked(curves: Sequence[Bounded]) -> tuple[list[Bounded], list[str]]:
    """The curves up to their first values that are not finite, and notes on these."""
    checked, notes = [], []
    for bounded in curves:
        curve = bounded.curve
        shape = np.shape(curve.values)
        for name, each, needed in (
            ("lower", bounded.lower, shape[1:]),
            ("upper", bounded.upper, shape[1:]),
            ("seen", bounded.seen, shape),
        ):
            if each is not None and np.shape(each) != needed:
                raise ValueError(
                    f"{curve.name}: {name} has shape {np.shape(each)}, the values {shape}; give "
                    f"{name} of shape {needed}"
                )
        cut, lost = whole(curve, every=True)
        checked.append(replace(bounded, curve=cut))
        notes += lost
    return checked, notes


def _draw(axes: Any, bounded: Bounded) -> None:
    curve = bounded.curve
    style = "steps-post" if bounded.held else "default"
    units = list(dict.fromkeys(unit for _, unit in curve.labels if unit))
    rows = zip(curve.labels, curve.values.T, colours(len(curve.labels)), strict=True)
    for (name, unit), column, colour in rows:
        shown = f"{name} [{unit}]" if len(units) > 1 and unit else name
        drawn = {"linewidth": 1.3, "drawstyle": style, "marker": single(column)}
        axes.plot(curve.t, column, label=plain(shown), color=colour, **drawn)
    if bounded.seen is not None:
        every = max(1, len(curve.t) // 40)
        for column, colour in zip(bounded.seen.T, colours(len(curve.labels)), strict=True):
            axes.plot(curve.t[::every], column[::every], ".", color=colour, markersize=4)
        axes.plot([], [], ".", color=_GREY, markersize=4, label="simulated")
    # A limit that is far away would press the curves together.
    least, most = np.nanmin(curve.values), np.nanmax(curve.values)
    near = max(most - least, 1e-12)
    near_ones = False
    for bound in (bounded.lower, bounded.upper):
        for value, colour in dict(zip(bound.tolist(), colours(len(bound)), strict=True)).items():
            if least - near <= value <= most + near:
                axes.axhline(value, color=colour, linewidth=0.9, linestyle="--")
                near_ones = True
    if near_ones:
        axes.plot([], [], color=_GREY, linewidth=0.9, linestyle="--", label="bounds")
    label(axes, "t [s]", f"{curve.name} [{', '.join(units)}]" if units else curve.name)
