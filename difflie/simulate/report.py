"""What a simulation came to: its results for JSON, and its report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import equinox as eqx
import jax
import numpy as np
from jax.typing import ArrayLike
from matplotlib.figure import Figure as Picture
from numpy.typing import NDArray

from ..groups import Manifold
from ..io.appearance.shape import Appearance
from ..io.results import Results, machine, provenance
from ..quantities import Curve, LimitMargin, curve
from ..quantities.along import Motion
from ..system.system import System
from ..view.drawing import machine_section
from ..view.plots import drift_figure, violation_figure
from ..view.report import Figure, Note, Report, Section, Table, Worked, sentences
from ..view.scenes import scene
from .error_estimate import Refinement
from .export import recorded
from .result import Result


class SavedRun(Motion, Protocol):
    """What a report needs of a `Trajectory`."""

    @property
    def result(self) -> Result: ...
    @property
    def refinement(self) -> Refinement: ...
    def computed(self) -> SavedRun: ...
    def energy(self, system: System) -> tuple[jax.Array, jax.Array]: ...
    def momentum(self, system: System) -> jax.Array: ...
    def constraint_violation(self, system: System) -> tuple[jax.Array, jax.Array]: ...
    def constraint_error(self, system: System) -> jax.Array: ...
    def plot(self, system: System | None = None) -> Picture: ...


@dataclass(frozen=True, kw_only=True)
class EnergyEnds(Results):
    """The total energy in J at both ends, and its largest change from the start."""

    start: float
    end: float
    largest_change: float


@dataclass(frozen=True, kw_only=True)
class MomentumEnds(Results):
    """Angular momentum about the world origin and linear momentum (6,), world, at both ends."""

    start: NDArray
    end: NDArray


@dataclass(frozen=True, kw_only=True)
class FinalState(Results):
    """t in s, q (nq,) and v (nv,) of the last saved row."""

    t: float
    q: NDArray
    v: NDArray


@dataclass(frozen=True, kw_only=True)
class Assembly(Results):
    """The largest changes by which assembly moved the guess of the start to the constraints."""

    configuration: float
    velocity: float


@dataclass(frozen=True, kw_only=True)
class SimulationResults(Results):
    """The results of a simulation, as `difflie run --json` writes them; see docs/results.md.

    steps: those that were made. assembly: None where the guess is not known, or without
    constraints, and without these also constraint_residual and constraint_rate, the largest
    violations of positions and of velocities. not_modelled: what of the robot's file would change
    the motion and is not in the system.
    """

    name: str
    system: str
    method: str
    dt: float
    steps: int
    ok: bool
    within_limits: bool
    messages: list[str]
    energy: EnergyEnds
    momentum: MomentumEnds
    constraint_error: float
    final: FinalState
    machine: dict[str, str]
    assembly: Assembly | None = None
    constraint_residual: float | None = None
    constraint_rate: float | None = None
    not_modelled: list[str] = field(default_factory=list)


def simulation_results(
    run: SavedRun,
    system: System,
    name: str = "",
    method: str = "",
    guess: tuple[ArrayLike, ArrayLike] | None = None,
) -> SimulationResults:
    """The results of one run.

    name: of the simulation, by default that of the system; method: by default as the run knows it.
    guess: the state (q (nq,), v (nv,)) from which the start was assembled. Raises ValueError for a
    batch of runs, and for the run of another system.
    """
    run.computed()  # which refuses a batch
    energy = next(c for c in recorded(run, system) if c.name == "energy").values[:, -1]
    momentum, result = np.asarray(run.momentum(system)), run.result
    start, end = (tuple(np.asarray(x)[k] for x in (run.t, run.q, run.v)) for k in (0, -1))
    failed = min(int(result.nonfinite_step), int(result.unsolved_step))
    moved, kept = None, (None, None)
    if system.constraints:
        position, velocity = run.constraint_violation(system)
        kept = float(np.max(np.asarray(position))), float(np.max(np.asarray(velocity)))
        if guess is not None:
            q, v = guess
            moved = Assembly(
                configuration=_largest(_difference(system.manifold, q, start[1])),
                velocity=_largest(start[2] - np.asarray(v)),
            )
    return SimulationResults(
        name=name or system.name,
        system=system.name,
        method=method or run.refinement.method,
        dt=float(result.dt),
        steps=min(result.steps, failed - 1),
        ok=bool(result.ok),
        within_limits=bool(result.within_limits),
        messages=result.messages(),
        not_modelled=list(result.not_modelled),
        energy=EnergyEnds(
            start=float(energy[0]),
            end=float(energy[-1]),
            largest_change=float(np.abs(energy - energy[0]).max()),
        ),
        momentum=MomentumEnds(start=momentum[0], end=momentum[-1]),
        constraint_error=float(np.max(np.asarray(run.constraint_error(system)))),
        final=FinalState(t=float(end[0]), q=end[1], v=end[2]),
        machine=machine(),
        assembly=moved,
        constraint_residual=kept[0],
        constraint_rate=kept[1],
    )


@eqx.filter_jit
def _difference(manifold: Manifold, q: ArrayLike, end: ArrayLike) -> jax.Array:
    return manifold.difference(q, end)


def _largest(changes: ArrayLike) -> float:
    return float(np.abs(np.asarray(changes)).max(initial=0))


def simulation_report(
    run: SavedRun,
    system: System,
    results: SimulationResults,
    about: Mapping[str, object],
    appearance: Appearance | None = None,
    whole: bool = True,
) -> Report:
    """How a run ended, its motion, and what it kept.

    results: of `simulation_results`. about: what it was made from, by name. appearance: as of
    `difflie.view.scene`. whole: whether with the sections that terminals leave out.
    """
    seen = run.computed()
    curves = {c.name: c for c in recorded(seen, system)}
    sections = list(_kept(seen, system, curves["energy"], results.assembly))
    if whole:
        first = (
            machine_section(scene(system, seen, appearance), "how it stands"),
            _motion(run, system),
        )
        sections = [*first, *sections, *_limits(seen, system), _states(curves)]
    energy, by = results.energy, f" by {results.method}" if results.method else ""
    change = (
        f"energy {energy.start:.6g} J at the start, {energy.end:.6g} J at the end; largest change "
        f"{energy.largest_change:.3g} J"
    )
    return Report(
        f"Motion of {results.system}",
        f"{results.system} was simulated{by}: {results.steps} steps of {results.dt:g} s.",
        # The first message is how it ended, and all others are warnings.
        Worked.judged(results.ok, len(results.messages) > 1),
        sentences([*results.messages, *run.result.origin(), change]),
        sections,
        provenance(results.machine, **about),
    )


def _motion(run: SavedRun, system: System) -> Section:
    look = "coordinates, velocities, forces and energy over time"
    return Section("Motion", [Figure(partial(run.plot, system), "motion.png")], look, brief=False)


def _kept(
    run: SavedRun, system: System, energy: Curve, moved: Assembly | None
) -> Iterator[Section]:
    """What the computed rows of a run kept."""
    yield _drift(run, system, energy.values[:, -1])
    if system.constraints:
        yield _constraints(run, system, moved)


def _drift(run: SavedRun, system: System, energy: NDArray) -> Section:
    """How far what should stay is from its start; energy (m,) in J."""
    drifts = {"energy [J]": np.abs(energy - energy[0])}
    if not np.any(np.asarray(system.gravity)):
        momentum = np.asarray(run.momentum(system))
        angular, linear = np.split(momentum - momentum[0], 2, axis=1)
        drifts["angular momentum [N m s]"] = np.linalg.norm(angular, axis=1)
        drifts["linear momentum [N s]"] = np.linalg.norm(linear, axis=1)
    return Section(
        "Drift",
        [
            Table(
                ("quantity", "largest change", "change at the end"),
                [(name, x.max(), x[-1]) for name, x in drifts.items()],
            ),
            Note(
                "The energy stays only where nothing drives or brakes the machine, and momenta "
                "where nothing acts on it from outside."
            ),
            Figure(
                partial(drift_figure, np.asarray(run.t), drifts, title="Drift from the start"),
                "drift.png",
            ),
        ],
        "what a free motion keeps: a line that climbs all the time asks for a smaller step",
    )


def _constraints(run: SavedRun, system: System, moved: Assembly | None) -> Section:
    """How well constraints are kept, and by how much assembly moved the start."""
    names = "positions [m or 1]", "velocities [m/s or 1/s]"
    kept = [np.asarray(x) for x in run.constraint_violation(system)]
    positions, velocities = ({name: x} for name, x in zip(names, kept, strict=True))
    said = (
        []
        if moved is None
        else [
            Note(
                "Assembly moved the initial coordinates by up to "
                f"{moved.configuration:.3g}, and the velocities by up to {moved.velocity:.3g}."
            )
        ]
    )
    return Section(
        "Constraints",
        [
            Table(
                ("violation", "start", "largest", "end"),
                [(name, x[0], x.max(), x[-1]) for name, x in zip(names, kept, strict=True)],
            ),
            *said,
            Figure(
                partial(violation_figure, np.asarray(run.t), positions, velocities),
                "constraints.png",
            ),
        ],
        "how well they are kept",
    )


def _limits(run: SavedRun, system: System) -> Iterator[Section]:
    """Of each joint with position limits the least distance to one, and when it was there."""
    distance, rows = curve(LimitMargin(), system, run), []
    for (name, unit), x in zip(distance.labels, distance.values.T, strict=True):
        if np.isfinite(x).any():
            k = int(np.nanargmin(x))
            rows.append((name, unit, float(x[k]), float(distance.t[k])))
    if rows:
        head = "joint", "unit", "least distance to a position limit", "at t [s]"
        parts = [Table(head, rows), Note("Negative is beyond the limit.")]
        yield Section("Limits", parts, "how near the joints came to theirs", brief=False)


def _states(curves: Mapping[str, Curve]) -> Section:
    """The ends of all coordinates and velocities."""
    rows = [
        (each.name, name, unit, x[0], x[-1], x.min(), x.max())
        for each in (curves["q"], curves["v"])
        for (name, unit), x in zip(each.labels, each.values.T, strict=True)
    ]
    head = "quantity", "entry", "unit", "start", "end", "least", "greatest"
    return Section("State", [Table(head, rows, names=3)], brief=False)
