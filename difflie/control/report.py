"""What the solution of a control problem came to: its results for JSON, and its report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

import jax
import numpy as np

from ..io.appearance.shape import Appearance
from ..io.results import Results, machine, provenance
from ..quantities import Curve
from ..simulate import Trajectory
from ..view.drawing import machine_section
from ..view.plots import Bounded, plan_figure
from ..view.report import Figure, Report, Section, Table, Worked, sentences
from ..view.scenes import scene
from .outcome import Commanded, outcome
from .problem import Problem
from .result import Result, Status

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture


@dataclass(frozen=True, kw_only=True)
class ConditionsLeft(Results):
    """What is left of the conditions of an optimum, as of `KKT`."""

    stationarity: float
    gap: float
    violation: float
    complementarity: float
    stationarity_knot: int
    gap_knot: int
    violation_knot: int


@dataclass(frozen=True, kw_only=True)
class SolveTimes(Results):
    """In s: of the solution with what is compiled, of all iterations but the first, of one.

    iteration is the median; None where there was one at most.
    """

    cold: float
    warm: float
    iteration: float | None


@dataclass(frozen=True, kw_only=True)
class ControlResults(Results):
    """The results of a control problem, as `difflie control --json` writes them.

    duration in s; time: None where it was not measured. See docs/results.md.
    """

    problem: str
    system: str
    solver: str
    status: str
    message: str
    iterations: int
    cost: float
    duration: float
    kkt: ConditionsLeft
    time: SolveTimes | None
    machine: dict[str, str]


def control_results(
    problem: Problem,
    plan: Planned,
    name: str = "",
    solver: str = "",
    time: SolveTimes | None = None,
) -> ControlResults:
    """The results of a plan; name: of the problem, by default that of its system."""
    result = plan.result
    left = {key: np.asarray(value).item() for key, value in result.kkt._asdict().items()}
    return ControlResults(
        problem=name or problem.system.name,
        system=problem.system.name,
        solver=solver,
        status=Status(int(result.status)).name,
        message=str(result),
        iterations=int(result.iterations),
        cost=float(plan.cost),
        duration=float(plan.duration),
        kkt=ConditionsLeft(**left),
        time=time,
        machine=machine(),
    )


def control_report(
    problem: Problem,
    plan: Planned,
    results: ControlResults,
    about: Mapping[str, object],
    appearance: Appearance | None = None,
    whole: bool = True,
) -> Report:
    """How a search ended, the plan, and what is left of the conditions of an optimum.

    results: of `control_results`. about: what it was made from, by name. appearance: as of
    `difflie.view.scene`. whole: whether with the sections that terminals leave out.
    """
    solver, time = results.solver, results.time
    converged = results.status == Status.CONVERGED.name
    sections = [
        Section(
            "What is left of the conditions of an optimum",
            [Table(("condition", "value"), list(_conditions(results.kkt)))],
            "all near zero at an optimum",
        )
    ]
    if whole:
        look = "the motion, the controls, their bounds, and the cost of every iteration"
        picture = Figure(partial(plot, problem, plan), "plan.png")
        first = Section("Plan", [picture], look, brief=False)
        machine = machine_section(scene(problem.system, plan, appearance))
        sections = [first, machine, *sections]
    if time is not None:
        times = ("cold", time.cold), ("warm", time.warm), ("iteration", time.iteration)
        sections.append(Section("Time", [Table(("part", "s"), times)], brief=False))
    return Report(
        f"Plan for {results.system}",
        f"The controls of least cost for {results.system} were looked for"
        f"{f', with {solver}' if solver else ''}.",
        Worked.judged(converged or bool(plan.result.nearly_optimal), doubtful=not converged),
        (
            *sentences([f"{solver}: {results.message}" if solver else results.message]),
            *sentences(outcome(problem, plan)),
            f"Cost {results.cost:.9g}, duration {results.duration:.6g} s.",
        ),
        sections,
        provenance(results.machine, **about),
    )


def _conditions(left: ConditionsLeft) -> Iterator[tuple[str, float]]:
    for name in ("stationarity", "gap", "violation", "complementarity"):
        yield name, getattr(left, name)


class Planned(Commanded, Protocol):
    """What is shown of a `Plan`."""

    @property
    def cost(self) -> jax.Array: ...
    @property
    def duration(self) -> jax.Array: ...
    @property
    def result(self) -> Result: ...


def curves_of(problem: Problem, plan: Planned) -> list[Bounded]:
    """q, v and u of a plan at its knots, with their limits; controls held are so over a step."""
    t, limits, topology = np.asarray(plan.t), problem.limits, problem.system.topology
    u = np.asarray(plan.u)
    held = len(u) < len(t)
    u = np.concatenate((u, u[-1:])) if held else u
    positions = np.full((2, topology.nq), np.inf) * [[-1], [1]]
    dofs = np.flatnonzero(np.isin(np.arange(topology.n_dofs), topology.mimic_dofs, invert=True))
    dofs = dofs[topology.dof_coordinate[dofs] >= 0]
    for row, bound in zip(positions, (limits.q_lower, limits.q_upper), strict=True):
        if bound is not None:
            row[topology.dof_coordinate[dofs]] = np.broadcast_to(bound, topology.n_dofs)[dofs]
    speed = np.broadcast_to(np.inf if limits.v is None else limits.v, topology.nv)
    box = [np.asarray(b) for b in limits.of_controls(problem.system, problem.inputs)]
    return [
        Bounded(Curve("q", t, np.asarray(plan.q), topology.coordinate_labels), *positions),
        Bounded(Curve("v", t, np.asarray(plan.v), topology.velocity_labels), -speed, speed),
        Bounded(
            Curve("u", t, u, problem.inputs.labels(problem.system)),
            *box,
            held=held,
        ),
    ]


def plot(problem: Problem, plan: Planned, run: Trajectory | None = None) -> Picture:
    """q, v and u of a plan over time with their limits, and the cost of every iteration.

    run: a `replay` of it, drawn as dots.
    """
    curves = curves_of(problem, plan)
    if run is not None:
        seen = np.asarray(run.q), np.asarray(run.v)
        curves[:2] = [replace(b, seen=x) for b, x in zip(curves, seen, strict=False)]
    title = f"{problem.system.name}: plan, {plan.result.ending}"
    return plan_figure(curves, np.asarray(plan.result.costs), title)
