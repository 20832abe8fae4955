"""The page of a simulation: how it ended, its motion, and what it kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ..io.results import provenance
from ..quantities import Curve
from .flat_sections import Overview, Section
from .flat_sections import write_report as write_page
from .plots import drift_figure, violation_figure
from .report import Worked, sentences


class Simulated(NamedTuple):
    """What a page shows of a run beside its results, at m times.

    motion: a picture of it. states: curves (m, n) whose ends are listed. drifts: by name with unit,
    how far what should stay is from its start (m,). violations: by name with unit, those of
    constraints (m,), of positions and of velocities, none without any. limits: the distances (m, n)
    to the nearer position limit.
    """

    motion: Figure
    states: Sequence[Curve]
    t: NDArray
    drifts: Mapping[str, NDArray]
    violations: Mapping[str, NDArray]
    limits: Curve


def write_report(
    folder: Path,
    results: Mapping[str, Any],
    run: Simulated,
    about: Mapping[str, object] = MappingProxyType({}),
    machine: Sequence[Section] = (),
) -> Path:
    """Writes `report.html` with `motion.png` and other pictures; returns its path.

    results: as `difflie run --json` writes them. about: the configuration. machine: what shows how
    the machine looks, first of all sections.
    """
    sections = [*machine, *_sections(results, run)]
    h, steps = results["dt"], results["steps"]
    energy = results["energy"]
    change = (
        f"energy {energy['start']:.6g} J at the start, {energy['end']:.6g} J at the end; largest "
        f"change {energy['largest_change']:.3g} J"
    )
    overview = Overview(
        f"{results['system']} was simulated by {results['method']}: {steps} steps of {h:g} s.",
        _worked(results),
        sentences([*results["messages"], change]),
        list(_pointers(sections)),
    )
    origin = provenance(results["machine"], **about)
    return write_page(folder, f"Motion of {results['system']}", overview, sections, origin)


def _worked(results: Mapping[str, Any]) -> Worked:
    if not results["ok"]:
        return Worked.NO
    # The first message is how it ended, and all others are warnings.
    return Worked.PARTLY if results["messages"][1:] else Worked.YES


_LOOKED_AT = {
    "Machine": "how it stands",
    "Motion": "coordinates, velocities, forces and energy over time",
    "Drift": "what a free motion keeps: a line that climbs all the time asks for a smaller step",
    "Constraints": "how well they are kept",
    "Limits": "how near the joints came to theirs",
}


def _pointers(sections: Sequence[Section]) -> Iterator[tuple[str, str]]:
    titles = {section.title for section in sections}
    yield from ((text, title) for title, text in _LOOKED_AT.items() if title in titles)


def _sections(results: Mapping[str, Any], run: Simulated) -> Iterator[Section]:
    yield Section("Motion", picture=run.motion, file="motion.png")
    yield Section(
        "Drift",
        ("quantity", "largest change", "change at the end"),
        [(name, x.max(), x[-1]) for name, x in run.drifts.items()],
        (
            "The energy stays only where nothing drives or brakes the machine, and momenta where "
            "nothing acts on it from outside.",
        ),
        drift_figure(run.t, run.drifts, title="Drift from the start"),
        "drift.png",
    )
    if run.violations:
        yield _constraints(results, run)
    limited = _limits(run.limits)
    if limited:
        head = "joint", "unit", "least distance to a position limit", "at t [s]"
        yield Section("Limits", head, limited, ("Negative is beyond the limit.",))
    yield Section(
        "State",
        ("quantity", "entry", "unit", "start", "end", "least", "greatest"),
        [
            (curve.name, name, unit, x[0], x[-1], x.min(), x.max())
            for curve in run.states
            for (name, unit), x in zip(curve.labels, curve.values.T, strict=True)
        ],
    )


def _constraints(results: Mapping[str, Any], run: Simulated) -> Section:
    moved = results["assembly"]
    positions, velocities = run.violations.items()
    return Section(
        "Constraints",
        ("violation", "start", "largest", "end"),
        [(name, x[0], x.max(), x[-1]) for name, x in run.violations.items()],
        (
            "Assembly moved the initial coordinates by up to "
            f"{moved['configuration']:.3g}, and the velocities by up to {moved['velocity']:.3g}.",
        ),
        violation_figure(run.t, dict([positions]), dict([velocities])),
        "constraints.png",
    )


def _limits(distance: Curve) -> list[tuple[str, str, float, float]]:
    """Of each joint with position limits the least distance to one, and when it was there."""
    rows = []
    for (name, unit), x in zip(distance.labels, distance.values.T, strict=True):
        if np.isfinite(x).any():
            k = int(np.nanargmin(x))
            rows.append((name, unit, float(x[k]), float(distance.t[k])))
    return rows
