"""The results of an identification, as figures and as a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from .plots import colours, figure, label
from .report import Cell, Section
from .report import write_report as write_page

_PAIRS = 6


def write_report(
    folder: Path,
    results: Mapping[str, Any],
    runs: Sequence[tuple[str, Mapping[str, Any]]],
    correlations: NDArray | None,
) -> Path:
    """Writes `report.html` with its pictures, and these also as PNG files; returns its path.

    results: as `difflie identify --json` writes them, of which system, fit (None where nothing was
    fitted), parameters, training, validation, left_out, sensors and machine are shown. runs: the
    name and the arguments of `run_figure` for each run. correlations (p, p): of the parameters,
    None where they were not fitted.
    """
    made = {"configuration": results.get("name"), **results["machine"]}
    provenance = {key: value for key, value in made.items() if value is not None}
    sections = _sections(results, runs, correlations)
    return write_page(folder, results["system"], sections, provenance)


def _sections(
    results: Mapping[str, Any],
    runs: Sequence[tuple[str, Mapping[str, Any]]],
    correlations: NDArray | None,
) -> Iterator[Section]:
    parameters = results["parameters"]
    yield Section(text=_outcome(results["fit"]))
    yield Section(
        "Parameters",
        ("parameter", "unit", "start", "value", "standard error", "95 % interval", "prior's share"),
        [
            (name, p["unit"], p["start"], p["value"], _error(p["std_error"]), *_told(p))
            for name, p in parameters.items()
        ],
        (
            "Standard errors and intervals allow for residuals that are alike over many rows. At a "
            "bound the interval is one-sided. The prior's share is 1 where only it holds a value.",
        ),
    )
    tables = {
        "Runs": [*results.get("training", ()), *results.get("validation", ())],
        "Runs left out, each judged by the fit to the others": results.get("left_out", ()),
    }
    for title, rows in tables.items():
        if rows:
            yield Section(
                title,
                ("run", "joint", "torque RMSE", "its autocorrelation", "position RMSE"),
                [list(row.values()) for row in rows],
                (
                    "Autocorrelations, the largest of twenty, are in bounds of white noise: far "
                    "above 1 the model lacks something, or the data is smoothed, which standard "
                    "errors allow for.",
                ),
            )
    if results.get("sensors"):
        yield Section(
            "Sensors",
            ("run", "use", "sensor", "unit", "RMSE, measured motion", "RMSE, simulated motion"),
            [
                [row[key] for key in ("run", "use", "sensor", "unit", "rmse", "simulated_rmse")]
                for row in results["sensors"]
            ],
        )
    for k, (name, arrays) in enumerate(runs):
        yield Section(f"Run {k}: {name}", picture=run_figure(**arrays), file=f"run_{k}.png")
    if correlations is None or len(correlations) < 2:
        return
    picture = correlation_figure(list(parameters), correlations)
    yield Section("Correlations", picture=picture, file="correlations.png")
    ellipses = ellipse_figure(parameters, correlations)
    if ellipses is not None:
        title = "Confidence of the pairs most correlated, by standard errors"
        yield Section(title, picture=ellipses, file="ellipses.png")


def _told(p: Mapping[str, Any]) -> tuple[Cell, Cell]:
    """The interval and the prior's share of a parameter; empty where it was not fitted."""
    if p["interval"] is None:
        return None, None
    lower, upper = p["interval"]
    bound = ", at its bound" if p["at_bound"] else ""
    return f"{lower:.4g} to {upper:.4g}{bound}", round(p["prior_share"], 3)


def _error(value: float | None) -> Cell:
    return "not identifiable" if value is not None and np.isinf(value) else value


def _outcome(fit: Mapping[str, Any] | None) -> list[str]:
    if fit is None:
        return ["Given parameters, judged; nothing was fitted."]
    sentences = [
        f"{fit['message']}; cost {fit['cost']:.6g}, variance of the residuals in their deviations "
        f"{fit['variance']:.4g}."
    ]
    return sentences + [note[0].upper() + note[1:] + "." for note in fit["notes"]]


def run_figure(
    joints: Sequence[str],
    t: NDArray,
    torque: NDArray,
    effort: NDArray,
    q: NDArray | None,
    motions: NDArray,
    window: int,
) -> Figure:
    """Measured and predicted torque and motion, joint by joint, and the torque's error.

    t (n,) in s; torque (n, nv): what the motion needs, effort (n, nv): what the measured torque
    delivers at the joints, NaN where unknown; q (n, nv): the measured motion, None where
    coordinates are not one per joint, such as quaternions; motions (w, window + 1, nv): those
    predicted in windows of so many rows, or their errors if q is None.
    """
    columns = 3 if np.isfinite(torque).any() else 1
    canvas, axes = figure(len(joints), columns, (3.6 * columns + 1.2, 2.4 * len(joints)))
    measured, predicted = colours(2)
    for k, (name, row) in enumerate(zip(joints, axes, strict=True)):
        last, drawn = row[-1], {"linewidth": 1.0}
        row[0].set_title(name, loc="left", fontsize="medium", fontweight="bold")
        if columns > 1:
            row[0].plot(t, effort[:, k], color=measured, label="measured", **drawn)
            row[0].plot(t, torque[:, k], color=predicted, label="predicted", **drawn)
            row[1].plot(t, torque[:, k] - effort[:, k], color=measured, **drawn)
            label(row[0], "t [s]", "effort [N m or N]", legend=False)
            label(row[1], "t [s]", "error [N m or N]", legend=False)
        if q is not None:
            last.plot(t, q[:, k], color=measured, label="measured", **drawn)
        for i, motion in enumerate(motions):
            times = t[i * window : i * window + window + 1]
            title = "predicted" if i == 0 and q is not None else None
            last.plot(times, motion[: len(times), k], color=predicted, label=title, **drawn)
        label(last, "t [s]", f"{'error of ' if q is None else ''}q [rad or m]", legend=False)
    lines, names = axes[0, 0].get_legend_handles_labels()
    if names:
        canvas.legend(lines, names, loc="outside right upper", frameon=False, fontsize="small")
    return canvas


def estimate_figure(parameters: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Estimates with 95 % intervals and starts, parameters of one unit on one axis, as a figure.

    parameters: by name the unit, value, start and std_error of each, scalars, and the interval
    (2,); the error is infinite where it is not identifiable.
    """
    units = list(dict.fromkeys(p["unit"] for p in parameters.values()))
    groups = [{n: p for n, p in parameters.items() if p["unit"] == unit} for unit in units]
    size = 7.0, 0.9 * len(groups) + 0.28 * len(parameters)
    canvas, axes = figure(len(groups), 1, size, [len(group) + 2.0 for group in groups])
    for a, unit, group in zip(axes[:, 0], units, groups, strict=True):
        places = np.arange(len(group))
        value, start, error = (
            np.array([p[key] for p in group.values()]) for key in ("value", "start", "std_error")
        )
        known = np.isfinite(error)
        if known.any():
            ends = np.array([p["interval"] for p in group.values()])[known].T
            a.errorbar(
                value[known],
                places[known],
                xerr=np.maximum((value[known] - ends[0], ends[1] - value[known]), 0),
                fmt="o",
                capsize=3,
                label="estimate, 95 %",
            )
        if not known.all():
            a.plot(value[~known], places[~known], "o", mfc="none", label="not identifiable")
        a.plot(start, places, "x", color="#38761d", label="start")
        a.set_yticks(places, list(group))
        a.set_ylim(len(group) - 0.5, -0.5)
        label(a, f"[{unit}]" if unit else "without unit", "", legend=a is axes[0, 0])
    return canvas


def correlation_figure(names: Sequence[str], correlations: NDArray) -> Figure:
    """The correlations (p, p) of all parameters, as a figure."""
    size = max(6.5, 2.5 + 0.18 * len(names))
    canvas, axes = figure(1, 1, (size, size - 1))
    only = axes[0, 0]
    only.grid(visible=False)
    image = only.imshow(correlations, vmin=-1, vmax=1, cmap="RdBu")
    canvas.colorbar(image, ax=only)
    only.set_xticks(range(len(names)), names, rotation=90, fontsize="x-small")
    only.set_yticks(range(len(names)), names, fontsize="x-small")
    return canvas


def ellipse_figure(
    parameters: Mapping[str, Mapping[str, Any]], correlations: NDArray
) -> Figure | None:
    """The 95 % confidence ellipses of the most correlated pairs of parameters, six at most.

    parameters: as for `estimate_figure`; correlations (p, p). None where no two numbers are
    identifiable.
    """
    r = np.nan_to_num(np.triu(correlations, 1))
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
    return canvas


def _ellipse(axes: Axes, first: tuple, second: tuple, r: float, legend: bool) -> None:
    centre, start, size = (
        np.array([p[key] + 0.0 for _, p in (first, second)])
        for key in ("value", "start", "std_error")
    )
    angle = np.linspace(0, 2 * np.pi, 200)
    x = np.cos(angle)
    y = r * x + np.sqrt(max(1 - r * r, 0)) * np.sin(angle)
    # Chi-squared of two numbers is -2 log(1 - probability).
    radius = np.sqrt(-2 * np.log(0.05)) * size
    axes.plot(centre[0] + radius[0] * x, centre[1] + radius[1] * y, label="95 %", linewidth=1.4)
    axes.plot(*centre, "C1o", label="estimate")
    least, most = centre - 1.3 * radius, centre + 1.3 * radius
    # If the start is far off, the ellipse would shrink to a point.
    edge = np.clip(start, least, most)
    axes.plot(*edge, "C2x", label="start", clip_on=False, markeredgewidth=2)
    if not np.array_equal(edge, start):
        text = f"start beyond: {start[0]:.4g}, {start[1]:.4g}"
        free = {"y": 0.96, "va": "top"} if r > 0 else {"y": 0.04, "va": "bottom"}
        axes.text(x=0.03, s=text, transform=axes.transAxes, fontsize="small", color="C2", **free)
    axes.set_xlim(least[0], most[0])
    axes.set_ylim(least[1], most[1])
    axes.ticklabel_format(useOffset=False)
    axes.locator_params(axis="x", nbins=4)
    x, y = (f"{name} [{p['unit']}]" if p["unit"] else name for name, p in (first, second))
    label(axes, x, y, f"correlation {r:+.2f}", legend=legend)
