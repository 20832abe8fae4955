"""What an identification found, as pictures and one HTML page."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse

from ..identify import Fit
from .plots import figure, label

_STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em}
table{border-collapse:collapse}td,th{padding:.2em .9em;border-bottom:1px solid #ddd;
text-align:right}td:first-child,th:first-child{text-align:left}img{max-width:100%}"""


def report(
    folder: Path,
    figures: dict[str, Any],
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
    parts = [f"<h1>{html.escape(figures['system'])}</h1>", *_outcome(figures)]
    parts.append(_rows_of_parameters(figures["parameters"]))
    parts.append(_rows_of_runs([*figures["training"], *figures["validation"]]))
    for title, (name, canvas) in pictures.items():
        buffer = io.BytesIO()
        canvas.savefig(buffer, format="png")
        (folder / name).write_bytes(buffer.getvalue())
        data = base64.b64encode(buffer.getvalue()).decode()
        title = html.escape(title)
        parts.append(f'<h2>{title}</h2><img alt="{title}" src="data:image/png;base64,{data}">')
    page = "\n".join(parts)
    path = folder / "report.html"
    path.write_text(
        f'<!doctype html><meta charset="utf-8"><title>{html.escape(figures["name"])}</title>'
        f"<style>{_STYLE}</style>\n{page}\n"
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
    """All correlations, and the 95 % ellipse of the two numbers most correlated."""
    names, found_r = found.parameters.names, found.correlations
    canvas, axes = figure(1, 2, (11.0, 4.8))
    left, right = axes[0]
    left.grid(visible=False)
    image = left.imshow(found_r, vmin=-1, vmax=1, cmap="RdBu")
    canvas.colorbar(image, ax=left)
    left.set_xticks(range(len(names)), names, rotation=90, fontsize="x-small")
    left.set_yticks(range(len(names)), names, fontsize="x-small")
    left.set_title("Correlations", loc="left", fontsize="medium", fontweight="bold")
    size = np.abs(np.nan_to_num(np.triu(found_r, 1)))
    i, j = np.unravel_index(int(np.argmax(size)), size.shape)
    a, b, r = found.standard_errors[i], found.standard_errors[j], found_r[i, j]
    if np.isfinite((a, b, r)).all():
        values, vectors = np.linalg.eigh(np.array(((a * a, r * a * b), (r * a * b, b * b))))
        axes_lengths = 2 * np.sqrt(5.991 * np.maximum(values, 0))  # chi-squared, 2 numbers, 95 %
        angle = float(np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1])))
        centre = float(found.values[i]), float(found.values[j])
        right.add_patch(
            Ellipse(centre, axes_lengths[1], axes_lengths[0], angle=angle, fill=False, color="C0")
        )
        right.plot(*centre, "C1o")
        right.margins(0.3)
        right.autoscale_view()
        right.set_xlim(centre[0] - 3 * a, centre[0] + 3 * a)
        right.set_ylim(centre[1] - 3 * b, centre[1] + 3 * b)
    label(right, names[i], names[j], "The most correlated: 95 %")
    return canvas


def _outcome(figures: dict[str, Any]) -> list[str]:
    fitted = figures["fit"]
    if fitted is None:
        return ["<p>Given parameters, judged; nothing was fitted.</p>"]
    said = [f"<p>{html.escape(fitted['message'])}; cost {fitted['cost']:.6g}, variance of the "]
    said.append(f"residuals in their deviations {fitted['variance']:.4g}.</p>")
    for row in fitted["unidentifiable"]:
        names = ", ".join(f"{html.escape(name)} ({share:+.2f})" for name, share in row.items())
        said.append(f"<p>The measurements do not tell: {names}.</p>")
    return said


def _rows_of_parameters(parameters: dict[str, dict[str, Any]]) -> str:
    rows = "".join(
        f"<tr><td>{html.escape(name)}</td><td>{_number(p['start'])}</td>"
        f"<td>{_number(p['value'])}</td><td>{_number(p['std_error'])}</td>"
        f"<td>{_number(p['std_error_blockwise'])}</td></tr>"
        for name, p in parameters.items()
    )
    head = (
        "<tr><th>parameter</th><th>start</th><th>value</th><th>standard error</th>"
        "<th>by blocks</th></tr>"
    )
    said = (
        "<p>Standard errors by blocks allow for residuals that are alike over up to a fiftieth of "
        "the measurements; where they are much larger they are the ones to believe.</p>"
    )
    return f"<h2>Parameters</h2><table>{head}{rows}</table>{said}"


def _rows_of_runs(runs: Sequence[dict[str, Any]]) -> str:
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
        "model lacks something, or the data is smoothed: believe the standard errors by blocks.</p>"
    )
    return f"<h2>Runs</h2><table>{head}{rows}</table>{said}"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    if np.isnan(value):
        return "not known"
    return f"{value:.5g}" if np.isfinite(value) else "not identifiable"
