"""What an identification found, as pictures and one HTML page."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..identify import Fit
from ..io.files import write_whole
from .plots import figure, label

_PAIRS = 6
_STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em}
table{border-collapse:collapse}td,th{padding:.2em .9em;border-bottom:1px solid #ddd;
text-align:right}td:first-child,th:first-child{text-align:left}img{max-width:100%}"""


def report(
    folder: Path,
    results: dict[str, Any],
    found: Fit | None,
    judgements: Sequence[dict[str, Any]],
    joints: Sequence[str],
) -> Path:
    """Writes `report.html`, with the pictures in it, and these beside it as PNG."""
    pictures = {}
    for k, judgement in enumerate(judgements):
        title = f"Run {k}: {judgement['recording'].name}"
        pictures[title] = f"run_{k}.png", run_figure(judgement, joints)
    if found is not None and len(found.values) > 1:
        pictures["Correlations"] = "correlations.png", correlation_figure(found)
        ellipses = ellipse_figure(found)
        if ellipses is not None:
            title = "Confidence of the pairs most correlated, by standard errors"
            pictures[title] = "ellipses.png", ellipses
    parts = [f"<h1>{html.escape(results['system'])}</h1>", *_outcome(results)]
    parts.append(_rows_of_parameters(results["parameters"]))
    parts.append(_rows_of_runs("Runs", [*results["training"], *results["validation"]]))
    if results.get("left_out"):
        title = "Runs left out, each judged by the fit to the others"
        parts.append(_rows_of_runs(title, results["left_out"]))
    for title, (name, canvas) in pictures.items():
        buffer = io.BytesIO()
        canvas.savefig(buffer, format="png")
        write_whole(folder / name, buffer.getvalue())
        data = base64.b64encode(buffer.getvalue()).decode()
        title = html.escape(title)
        parts.append(f'<h2>{title}</h2><img alt="{title}" src="data:image/png;base64,{data}">')
    page = "\n".join(parts)
    path = folder / "report.html"
    write_whole(
        path,
        f'<!doctype html><meta charset="utf-8"><title>{html.escape(results["name"])}</title>'
        f"<style>{_STYLE}</style>\n{page}\n",
    )
    return path


def run_figure(judgement: dict[str, Any], joints: Sequence[str]) -> Figure:
    """Measured against predicted torque and motion, joint by joint, and the torque's error.

    Of the measured torque what arrives at the joint is shown. Where coordinates are no numbers
    for joints, such as quaternions, the motion's error stands for it.
    """
    recording, window = judgement["recording"], judgement["window"]
    torque, arrived, q = judgement["torque"], judgement["effort"], recording.q
    numbers = q is not None and q.shape[1] == len(joints)
    motions = judgement["windows" if numbers else "departure"]
    rows, height = (1, 3.0) if torque is None or arrived is None else (3, 8.0)
    canvas, axes = figure(rows, len(joints), (5.5 * len(joints), height))
    t = recording.t
    for k, name in enumerate(joints):
        last, bottom = k == len(joints) - 1, axes[-1, k]
        if torque is not None and arrived is not None:
            top, middle = axes[:2, k]
            top.plot(t, arrived[:, k], label="measured", linewidth=1.0)
            top.plot(t, torque[:, k], label="predicted", linewidth=1.0)
            middle.plot(t, torque[:, k] - arrived[:, k], linewidth=0.8)
            label(top, "t [s]", "effort [N m or N]", legend=last)
            label(middle, "t [s]", "error [N m or N]")
        if q is not None and numbers:
            bottom.plot(t, q[:, k], label="measured", linewidth=1.0)
        for i, motion in enumerate(() if motions is None else motions):
            times = t[i * window : i * window + window + 1]
            title = "predicted" if i == 0 else None
            bottom.plot(times, motion[: len(times), k], "C1", label=title, linewidth=1.0)
        text = "q [rad or m]" if numbers else "error of q [rad or m]"
        label(bottom, "t [s]", text, legend=numbers and last)
        axes[0, k].set_title(name, loc="left", fontsize="medium", fontweight="bold")
    return canvas


def correlation_figure(found: Fit) -> Figure:
    """The correlations of all numbers with each other."""
    names = found.parameters.names
    canvas, axes = figure(1, 1, (6.5, 5.5))
    only = axes[0, 0]
    only.grid(visible=False)
    image = only.imshow(found.correlations, vmin=-1, vmax=1, cmap="RdBu")
    canvas.colorbar(image, ax=only)
    only.set_xticks(range(len(names)), names, rotation=90, fontsize="x-small")
    only.set_yticks(range(len(names)), names, fontsize="x-small")
    return canvas


def ellipse_figure(found: Fit) -> Figure | None:
    """Where two numbers together are with 95 %, for the pairs most correlated, six at most.

    By the standard errors, not the block-robust ones. None where no two numbers are determined.
    """
    r = np.nan_to_num(np.triu(found.correlations, 1))
    order = np.argsort(-np.abs(r), axis=None)[:_PAIRS]
    pairs = [pair for pair in zip(*np.unravel_index(order, r.shape), strict=True) if r[pair]]
    if not pairs:
        return None
    columns = min(len(pairs), 3)
    rows = -(-len(pairs) // columns)
    canvas, axes = figure(rows, columns, (4.5 * columns + 1.5, 3.9 * rows))
    for k, a in enumerate(axes.ravel()):
        if k < len(pairs):
            _ellipse(a, found, *pairs[k], legend=k == columns - 1)
        else:
            a.set_visible(False)
    return canvas


def _ellipse(axes: Axes, found: Fit, i: int, j: int, legend: bool) -> None:
    pair, r = [i, j], found.correlations[i, j]
    centre, start, size = (
        x[pair] + 0.0 for x in (found.values, found.start, found.standard_errors)
    )
    angle = np.linspace(0, 2 * np.pi, 200)
    x = np.cos(angle)
    y = r * x + np.sqrt(max(1 - r * r, 0)) * np.sin(angle)
    # Chi-squared of two numbers is -2 log(1 - probability).
    radius = np.sqrt(-2 * np.log(0.05)) * size
    axes.plot(centre[0] + radius[0] * x, centre[1] + radius[1] * y, label="95 %", linewidth=1.4)
    axes.plot(*centre, "C1o", label="estimate")
    least, most = centre - 1.3 * radius, centre + 1.3 * radius
    # The start may be so far off that the ellipse would be a point beside it.
    edge = np.clip(start, least, most)
    axes.plot(*edge, "C2x", label="start", clip_on=False, markeredgewidth=2)
    if not np.array_equal(edge, start):
        said = f"start beyond: {start[0]:.4g}, {start[1]:.4g}"
        free = {"y": 0.96, "va": "top"} if r > 0 else {"y": 0.04, "va": "bottom"}
        axes.text(x=0.03, s=said, transform=axes.transAxes, fontsize="small", color="C2", **free)
    axes.set_xlim(least[0], most[0])
    axes.set_ylim(least[1], most[1])
    axes.ticklabel_format(useOffset=False)
    axes.locator_params(axis="x", nbins=4)
    names, units = found.parameters.names, found.parameters.units
    first, second = (f"{names[k]} [{units[k]}]" if units[k] else names[k] for k in pair)
    label(axes, first, second, f"correlation {r:+.2f}", legend=legend)


def _outcome(results: dict[str, Any]) -> list[str]:
    fitted = results["fit"]
    if fitted is None:
        return ["<p>Given parameters, judged; nothing was fitted.</p>"]
    said = [f"<p>{html.escape(fitted['message'])}; cost {fitted['cost']:.6g}, variance of the "]
    said.append(f"residuals in their deviations {fitted['variance']:.4g}.</p>")
    for row in fitted["unidentifiable"]:
        names = ", ".join(f"{html.escape(name)} ({share:+.2f})" for name, share in row.items())
        said.append(f"<p>Not identifiable from this data: {names}.</p>")
    return said


def _rows_of_parameters(parameters: dict[str, dict[str, Any]]) -> str:
    rows = "".join(
        f"<tr><td>{html.escape(name)}</td><td>{html.escape(p['unit'])}</td>"
        f"<td>{_number(p['start'])}</td>"
        f"<td>{_number(p['value'])}</td><td>{_number(p['std_error'])}</td>"
        f"<td>{_number(p['std_error_blockwise'])}</td></tr>"
        for name, p in parameters.items()
    )
    head = (
        "<tr><th>parameter</th><th>unit</th><th>start</th><th>value</th><th>standard error</th>"
        "<th>block-robust</th></tr>"
    )
    said = (
        "<p>Block-robust standard errors allow for residuals that are alike over up to a fiftieth "
        "of the measurements; where they are much larger they are the ones to believe.</p>"
    )
    return f"<h2>Parameters</h2><table>{head}{rows}</table>{said}"


def _rows_of_runs(title: str, runs: Sequence[dict[str, Any]]) -> str:
    rows = "".join(
        f"<tr><td>{html.escape(r['run'])}</td><td>{html.escape(r['joint'])}</td>"
        f"<td>{_number(r['torque_rmse'])}</td><td>{_number(r['torque_autocorrelation'])}</td>"
        f"<td>{_number(r['position_rmse'])}</td></tr>"
        for r in runs
    )
    head = (
        "<tr><th>run</th><th>joint</th><th>torque RMSE</th><th>its autocorrelation</th>"
        "<th>position RMSE</th></tr>"
    )
    said = (
        "<p>Autocorrelations, the largest of twenty, are in bounds of white noise: far above 1 the "
        "model lacks something, or the data is smoothed: believe the block-robust errors.</p>"
    )
    return f"<h2>{title}</h2><table>{head}{rows}</table>{said}"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    if np.isnan(value):
        return "not known"
    return f"{value + 0.0:.5g}" if np.isfinite(value) else "not identifiable"  # 0, not -0
