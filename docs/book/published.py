"""Published numbers beside computed ones: stored results of `difflie reproduce`, as tables.

Computing them takes minutes, so that the build of the book reads them. Stored again by

    python docs/book/published.py NAME ...
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from difflie.cli import main
from difflie.io.results import machine
from difflie.view.figures import colours, figure, label
from difflie.view.plots import draw_errors

STORED = Path(__file__).parent / "results"


class Number(NamedTuple):
    """A published number, and the computed one; the forms in which they are shown."""

    what: str
    published: float
    computed: float
    form: str
    published_form: str = ""


def names() -> list[str]:
    """The names of `difflie reproduce` whose results are stored."""
    return sorted(file.stem for file in STORED.glob("*.json"))


def read(name: str) -> dict[str, Any]:
    """The command, the date, the computer with its versions, and the results."""
    return json.loads((STORED / f"{name}.json").read_text(encoding="utf-8"))


def compute(name: str) -> dict[str, Any]:
    """The results as the command writes them today."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{name}.json"
        main(["reproduce", name, "--json", str(file)])
        return json.loads(file.read_text(encoding="utf-8"))


def store(name: str, results: dict[str, Any]) -> None:
    """Writes results with where they come from."""
    about = {
        "command": f"difflie reproduce {name} --json {name}.json",
        "date": date.today().isoformat(),
        "machine": machine(),
        "results": results,
    }
    file = STORED / f"{name}.json"
    file.write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def section(name: str) -> str:
    """The part of a page with the numbers, and their picture if there is one."""
    about = read(name)
    made, results = about["machine"], about["results"]
    parts = [
        "## Computed beside published",
        f"By `{about['command']}` on {about['date']}, with difflie {made['difflie']}, "
        f"jax {made['jax']} and Python {made['python']}.",
        _formulas(results) if name == "reuss" else _table(list(NUMBERS[name](results))),
    ]
    if name in NOTES:
        parts.insert(2, NOTES[name])
    if name in PICTURES:
        said, _ = PICTURES[name]
        parts.insert(2, f"![{said}]({name}.png)\n\n{said}")
    return "\n\n".join(parts)


def pictures() -> Iterator[tuple[str, bytes]]:
    """The name of a result and its picture, as PNG."""
    for name, (_, draw) in PICTURES.items():
        content = io.BytesIO()
        draw(read(name)["results"]).savefig(content, format="png")
        yield name, content.getvalue()


def _table(numbers: list[Number]) -> str:
    lines = ["| what | published | computed | difference |", "|---|--:|--:|--:|"]
    for n in numbers:
        known = format(n.published, n.published_form or n.form)
        apart = n.computed - n.published
        lines.append(f"| {n.what} | {known} | {n.computed:{n.form}} | {apart:.1e} |")
    return "\n".join(lines)


def _pleiades(results: dict[str, Any]) -> Iterator[Number]:
    for r in results["rows"]:
        yield Number(f"star {r['star']}, {r['quantity']}", r["printed"], r["computed"], ".9f")


def _park_chung(results: dict[str, Any]) -> Iterator[Number]:
    """All drifts; of the counts those that differ, as nearly all agree."""
    for r in results["rows"]:
        what = f"Table {r['table']}: {r['quantity']}, {r['method']}, h = {r['h']:g} s"
        yield Number(what, r["printed"], r["computed"], ".4e")
    for r in results["operations"]:
        if r["computed"] != r["printed"]:
            what = f"Table {r['table']}: {r['quantity']}, {r['method']}: {r['note']}"
            yield Number(what, r["printed"], r["computed"], "d")


def _goetz(results: dict[str, Any]) -> Iterator[Number]:
    """What the thesis states; of errors it states powers of ten."""
    known = {
        "max_energy_error": ("largest energy error [J]", ".1e", ".0e"),
        "max_constraint_error": ("largest constraint error", ".1e", ".0e"),
        "energy_order": ("order of the energy error", ".2f", "g"),
        "state_order": ("order of the state", ".2f", "g"),
        "realtime_percent": ("time in % of simulated time, each on its computer", ".2f", ".2f"),
    }
    computed = {(r["case"], r["method"]): r for r in results["rows"]}
    for r in results["printed"]:
        found = computed[r["case"], r["method"]]
        for key, (what, form, published_form) in known.items():
            if r[key] is not None and found[key] is not None:
                said = f"{r['case']}, {r['method']}: {what}"
                yield Number(said, r[key], found[key], form, published_form)


def _mueller(results: dict[str, Any]) -> Iterator[Number]:
    com = results["com"]
    for axis, known, found in zip("xyz", com["published"], com["computed"], strict=True):
        yield Number(
            f"heavy top (Bruels and Cardona 2010), {axis} of its centre at 0.2 s [m]",
            known,
            found,
            ".10f",
        )


def _formulas(results: dict[str, Any]) -> str:
    """Of formulas no number is published: their largest residuals at random states."""
    lines = ["| formula | compared | residual as printed | corrected | what changes |"]
    lines.append("|---|---|--:|--:|---|")
    for r in results["formulas"]:
        residuals = ["-" if r[key] is None else f"{r[key]:.1e}" for key in ("printed", "corrected")]
        cells = r["number"], r["states"], *residuals, r["correction"] or "nothing"
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def _drifts(results: dict[str, Any]):
    """The drifts over the step: lines are computed, circles published."""
    quantities = list(dict.fromkeys(r["quantity"] for r in results["rows"]))
    families = dict(zip(("CG", "CF", "MK"), colours(3), strict=True))
    canvas, axes = figure(1, 3, (11.0, 4.2))
    for a, quantity in zip(axes[0], quantities, strict=True):
        rows = [r for r in results["rows"] if r["quantity"] == quantity]
        for method in dict.fromkeys(r["method"] for r in rows):
            h, computed, printed = np.array(
                [(r["h"], r["computed"], r["printed"]) for r in rows if r["method"] == method]
            ).T
            family = method[:2]
            colour, named = families[family], family if method[2:] == "2" else None
            # CF and MK nearly coincide.
            draw_errors(
                a, h, computed, named, color=colour, linestyle="--" if family == "MK" else "-"
            )
            draw_errors(a, h, printed, color=colour, marker="o", linestyle="", fillstyle="none")
        label(a, "step h [s]", "drift at t = 1 s", quantity, legend=a is axes[0, -1])
    return canvas


def _closed_joints(results: dict[str, Any]):
    """The largest violation of each joint over the step, in both groups."""
    rows = results["comparison"]
    joints = list(dict.fromkeys((r["machine"], r["joint"]) for r in rows))
    groups = list(dict.fromkeys(r["group"] for r in rows))
    canvas, axes = figure(1, len(joints), (3.2 * len(joints), 3.8))
    for a, joint in zip(axes[0], joints, strict=True):
        for group, colour in zip(groups, colours(len(groups)), strict=True):
            found = [r for r in rows if (r["machine"], r["joint"]) == joint and r["group"] == group]
            for k, r in enumerate(found):
                h = 1e3 * np.array(r["h"])
                draw_errors(a, h, r["constraint_error"], None if k else group, color=colour)
                a.set_xticks(h, [f"{x:.2g}" for x in h])
        a.minorticks_off()
        label(a, "step h [ms]", "largest |g|", ": ".join(joint), legend=a is axes[0, -1])
    return canvas


NUMBERS = {
    "goetz": _goetz,
    "mueller": _mueller,
    "park-chung": _park_chung,
    "pleiades": _pleiades,
}
NOTES = {
    "goetz": "Of errors the thesis states powers of ten. Times are those of two computers.",
    "mueller": "The paper has no computed example; the top's centre is from another source.",
    "park-chung": "Of the counts of Tables V and X those are shown that differ.",
    "reuss": "Largest residuals at random states; the paper states formulas, not numbers.",
}
PICTURES = {
    "park-chung": ("Lines: computed. Circles: published.", _drifts),
    "mueller": (
        "How far joints open, by the step and the group; this is not published.",
        _closed_joints,
    ),
}

if __name__ == "__main__":
    for given in sys.argv[1:]:
        store(given, compute(given))
