"""Pictures of motions, energies and errors: one function each, from arrays and names.

Every function returns a figure with a title, units, and a legend beside the axes. A curve that is
not finite from some time on is drawn up to there, and the picture says so. All raise ValueError for
arrays that do not fit each other, and where nothing is finite.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from ..quantities import Curve
from .compared import compared_figure as compared_figure
from .estimates import estimate_figure as estimate_figure
from .figures import FLOOR, colours, draw_curve, draw_drift, entitle, figure, label, plain, single
from .series import numbers, points, series, whole
from .sweep import map_figure as map_figure

_TOTAL = {"color": "#111111", "linewidth": 2.0}


def curve_figure(curves: Sequence[Curve], title: str = "") -> Figure:
    """Curves (m, n) over time, such as the state of a motion, one below the other."""
    if not curves:
        raise ValueError("a picture of curves: there is nothing to draw; give at least one")
    cut = [whole(curve) for curve in curves]
    canvas, axes = figure(len(curves), 1, (8.0, 2.8 * len(curves)))
    for a, (curve, _) in zip(axes[:, 0], cut, strict=True):
        draw_curve(a, curve)
    entitle(canvas, title, [note for _, notes in cut for note in notes])
    return canvas


def energy_figure(
    t: Any,
    stored: Mapping[str, Any],
    flows: Mapping[str, Any] | None = None,
    title: str = "Energy budget",
) -> Figure:
    """The energies (m,) of a machine in J over time (m,) in s, their sum, and what is unaccounted.

    stored: parts such as kinetic, potential and elastic energy. flows: what has come in since the
    start, such as the work of motors, and with a minus sign what has gone, such as by friction; by
    default nothing. Below stands the change of the sum less the sum of the flows: the error.
    """
    flows = flows or {}
    if both := stored.keys() & flows.keys():
        raise ValueError(f"energy: {sorted(both)[0]!r} is stored and a flow; rename one")
    s = series("energy", t, {**stored, **flows})
    total = np.sum([s.columns[name] for name in stored], axis=0)
    start = [name for name in stored if not np.isfinite(s.columns[name][0])]
    if start or not stored:
        raise ValueError(
            f"energy: {start[0]} is not finite at the start, so there is no budget"
            if start
            else "energy: nothing is stored; give at least the kinetic energy"
        )
    gone = np.sum([s.columns[name] - s.columns[name][0] for name in flows], axis=0)
    canvas, (above, below) = figure(2, 1, (8.0, 5.6), [2.2, 1.0])
    above, below = above[0], below[0]
    palette = colours(len(s.columns))
    for (name, column), colour in zip(s.columns.items(), palette, strict=True):
        style = {"linestyle": "--" if name in flows else "-", "marker": single(column)}
        above.plot(s.x, column, color=colour, linewidth=1.3, label=plain(name), **style)
    if len(stored) > 1:
        above.plot(s.x, total, label="total stored", marker=single(total), **_TOTAL)
    label(above, "", "energy [J]")
    above.tick_params(labelbottom=False)
    left = total - total[0] - gone
    style = {"color": "#111111", "linewidth": 1.3, "marker": single(left)}
    below.plot(s.x, left, label="unaccounted", **style)
    below.sharex(above)
    label(below, "t [s]", "change - flows [J]" if flows else "change [J]")
    entitle(canvas, title, s.notes)
    return canvas


def drift_figure(t: Any, drifts: Mapping[str, Any], unit: str = "", title: str = "Drift") -> Figure:
    """Absolute drifts (m,) by name over time (m,) in s, on a logarithmic axis.

    unit: of all drifts; "" for relative ones, or where their names say it. Zeros stand at the lower
    edge.
    """
    s = series("drift", t, {name: np.abs(numbers("drift", name, d)) for name, d in drifts.items()})
    canvas, [[a]] = figure(size=(8.0, 3.6))
    draw_drift(a, s.x, s.columns)
    _fit_to(a, s.columns.values())
    label(a, "t [s]", f"|drift| [{unit}]" if unit else "|drift|")
    entitle(canvas, title, [*s.notes, *_zeros(s.columns)])
    return canvas


def violation_figure(
    t: Any,
    position: Mapping[str, Any],
    velocity: Mapping[str, Any] | None = None,
    tolerance: float | None = None,
    title: str = "Constraint violation",
) -> Figure:
    """The violations (m,) of constraints by name over time (m,) in s, on logarithmic axes.

    position: residuals g in m, rad or without unit; velocity: their rates, below. tolerance: of
    positions, drawn as a dashed line.
    """
    parts = [("|g| [m, rad, 1]", position)]
    parts += [("|dg/dt| [m/s, rad/s, 1/s]", velocity)] if velocity else []
    canvas, axes = figure(len(parts), 1, (8.0, 0.6 + 2.9 * len(parts)))
    notes: list[str] = []
    for a, (named, columns) in zip(axes[:, 0], parts, strict=True):
        s = series("constraint violation", t, _sizes(columns))
        draw_drift(a, s.x, s.columns)
        _fit_to(a, [*s.columns.values(), (tolerance or 0.0) if columns is position else 0.0])
        if tolerance is not None and columns is position:
            a.axhline(tolerance, color="#5f6368", linestyle="--", linewidth=1.0, label="tolerance")
        label(a, "t [s]", named)
        notes += [*s.notes, *_zeros(s.columns)]
    entitle(canvas, title, dict.fromkeys(notes))
    return canvas


def _sizes(columns: Mapping[str, Any]) -> dict[str, Any]:
    return {k: np.abs(numbers("constraint violation", k, c)) for k, c in columns.items()}


def phase_figure(
    q: Any, v: Any, labels: Sequence[tuple[str, str]], title: str = "Phase portrait"
) -> Figure:
    """Velocities v (m, n) over coordinates q (m, n), a panel for each unit.

    labels (n,): the name and the unit of each coordinate. A dot is the start, a cross the end.
    """
    q, v = numbers("phase portrait", "q", q), numbers("phase portrait", "v", v)
    if q.ndim != 2 or q.shape != v.shape or q.shape[1] != len(labels) or not q.size:
        raise ValueError(
            f"phase portrait: q has shape {q.shape}, v {v.shape}, and there are {len(labels)} "
            "names; give a column of each for each name, of coordinates that are plain numbers"
        )
    rows = np.arange(len(q))
    both = {f"{k} {n}": np.where(np.isfinite(q[:, k]), v[:, k], np.nan)
            for k, (n, _) in enumerate(labels)}  # fmt: skip
    cut = series("phase portrait", rows, both, "row")
    units = list(dict.fromkeys(unit for _, unit in labels))
    canvas, axes = figure(1, len(units), (1.5 + 5.5 * len(units), 4.5))
    for a, unit in zip(axes[0], units, strict=True):
        own = [k for k, (_, u) in enumerate(labels) if u == unit]
        for k, colour in zip(own, colours(len(own)), strict=True):
            rate = list(cut.columns.values())[k]
            there = np.flatnonzero(np.isfinite(rate))
            a.plot(q[:, k], rate, color=colour, linewidth=1.2, label=plain(labels[k][0]))
            for row, mark in zip(there[[0, -1]] if there.size else (), "ox", strict=False):
                a.plot(q[row, k], rate[row], mark, color=colour, markersize=6)
        label(a, f"q [{unit}]", f"v [{unit}/s]")
    notes = [note.split(" ", 1)[1] for note in cut.notes]
    entitle(canvas, title, ["Dots: the start; crosses: the end.", *notes])
    return canvas


def order_figure(
    h: Any,
    errors: Mapping[str, Any],
    unit: str = "",
    *,
    orders: Sequence[float] = (),
    rounding: float = 0.0,
    across: str = "step h [s]",
    title: str = "Error over step size",
) -> Figure:
    """Errors (n,) by method over step sizes h (n,), on logarithmic axes, with their fitted slopes.

    orders: slopes of lines to compare with, which end at the largest error. rounding: errors up to
    here are of rounding, and do not count in the slopes. across: what h is. A slope needs three
    errors; a method without them has none.
    """
    s = points("order plot", h, errors, "h")
    if (s.x <= 0).any():
        raise ValueError("order plot: h has values that are not positive; give step sizes")
    canvas, [[a]] = figure(size=(8.0, 4.8))
    order = np.argsort(s.x)
    for (name, column), colour in zip(s.columns.items(), colours(len(s.columns)), strict=True):
        x, y = s.x[order], np.abs(column[order])
        known = np.isfinite(y) & (y > max(rounding, 0.0))
        fitted = f": slope {slope(x[known], y[known]):.2f}" if known.sum() > 2 else ""
        draw_errors(a, x, y, f"{name}{fitted}", color=colour, marker="o", markersize=4)
    # The line that a fast method reaches last would otherwise leave the picture.
    largest = max(np.nanmax(np.abs(c)) for c in s.columns.values() if np.isfinite(c).any())
    for k, exponent in enumerate(orders):
        style = {"color": "#5f6368", "linewidth": 1.0, "linestyle": (0, (4, 2 + 2 * k))}
        draw_slope(a, s.x[order], float(largest), exponent, label=f"order {exponent:g}", **style)
    if rounding > 0:
        a.axhline(rounding, color="#999999", linestyle=":", linewidth=1.0, label="rounding")
    _fit_to(a, [*s.columns.values(), np.array(rounding)])
    label(a, across, f"error [{unit}]" if unit else "error")
    entitle(canvas, title, [*s.notes, *_zeros(s.columns)])
    return canvas


def error_figure(
    errors: Mapping[str, tuple[Any, Any]],
    unit: str = "",
    *,
    across: str = "t [s]",
    logarithmic: bool = False,
    title: str = "Error over time",
) -> Figure:
    """Errors (m,) by name, each over its own x (m,), such as times in s, on a logarithmic axis.

    errors: (x, errors) by name. across: what x is, such as "computing time [s]", for which
    logarithmic=True makes that axis logarithmic, too. Zeros stand at the lower edge.
    """
    if not errors:
        raise ValueError("error plot: there is nothing to draw; give errors by name")
    canvas, [[a]] = figure(size=(8.0, 4.4))
    sizes = {name: np.abs(numbers("error plot", name, e)) for name, (_, e) in errors.items()}
    known = [name for name, size in sizes.items() if np.isfinite(size).any()]
    notes = [f"{name}: no value is finite." for name in sizes if name not in known]
    drawn = []
    check = points if logarithmic else series
    axis = across.split(" [")[0]
    for name, colour in zip(known or sizes, colours(len(known or sizes)), strict=True):
        s = check("error plot", errors[name][0], {name: sizes[name]}, axis)
        if logarithmic and (s.x <= 0).any():
            raise ValueError(
                f"error plot: {axis} of {name} has values that are not positive; give positive "
                "ones, or logarithmic=False"
            )
        if logarithmic:
            draw_errors(a, s.x, s.columns[name], name, color=colour, marker="o", markersize=4)
        else:
            draw_drift(a, s.x, s.columns)
            a.lines[-1].set_color(colour)
        notes += [*s.notes, *_zeros(s.columns)]
        drawn.append(s.columns[name])
    _fit_to(a, drawn)
    label(a, across, f"|error| [{unit}]" if unit else "|error|")
    entitle(canvas, title, notes)
    return canvas


def _zeros(columns: Mapping[str, NDArray]) -> list[str]:
    """Notes on columns that are zero throughout, as no logarithmic axis shows that."""
    there = {name: column[np.isfinite(column)] for name, column in columns.items()}
    return [f"{name}: zero throughout." for name, x in there.items() if x.size and not x.any()]


def _fit_to(axes: Axes, columns: Iterable[Any]) -> None:
    """Keeps zeros, such as that of the start, from stretching a logarithmic axis."""
    sizes = np.abs(np.concatenate([np.ravel(c) for c in columns]))
    positive = sizes[np.isfinite(sizes) & (sizes > 0)]
    if positive.size:
        axes.set_ylim(max(positive.min(), FLOOR) / 2, max(positive.max(), FLOOR) * 2)


def state_figure(
    t: Any,
    q: Any,
    v: Any,
    q_labels: Sequence[tuple[str, str]],
    v_labels: Sequence[tuple[str, str]],
    title: str = "Motion",
) -> Figure:
    """Coordinates q (m, nq) and velocities v (m, nv) over time (m,) in s, one below the other.

    q_labels (nq,), v_labels (nv,): the name and the unit of each.
    """
    rows = (("q", q, q_labels), ("v", v, v_labels))
    return curve_figure([Curve(name, t, x, tuple(labels)) for name, x, labels in rows], title)


def slope(h: Any, errors: Any) -> float:
    """The exponent k of errors (n,) ~ h^k, by least squares in the logarithms; h (n,) > 0."""
    return float(np.polyfit(np.log(h), np.log(errors), 1)[0])


def draw_errors(axes: Axes, x: Any, errors: Any, label: str | None = None, **style: Any) -> Line2D:
    """Errors (n,) over x (n,), such as step sizes or times; zeros stand at the lower edge.

    style: as `Axes.plot` takes it.
    """
    style = {"linewidth": 1.3, **style}
    name = None if label is None else plain(label)
    return axes.loglog(x, np.maximum(errors, FLOOR), label=name, **style)[0]


def draw_slope(axes: Axes, h: Any, last: float, order: float, **style: Any) -> None:
    """The line of errors ~ h^order over h (n,) whose value at the last h is given.

    style: as `Axes.plot` takes it; named by the order where it has no label.
    """
    h = np.asarray(h)
    name = style.pop("label", f"slope {order:g}")
    draw_errors(axes, h, last * (h / h[-1]) ** order, name, **style)


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
