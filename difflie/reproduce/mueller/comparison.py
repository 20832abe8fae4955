"""The maps on the heavy top, and what the two groups make of the joints of two machines."""

from __future__ import annotations

import time
import timeit
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...io.results import Results
from ...view.figures import figure, label
from ...view.plots import draw_errors
from ...view.plots import slope as fitted_slope
from ...view.report import Section, Table, notes
from ..papers import Agreement, Computed, Progress, cells, each, number, printed
from .bodies import MACHINES, Machine, march, violation
from .transition import ATTITUDES, LOCAL, TRANSITION_MAPS

# How many steps the runs have, at which of them the table gives the violation of the constraints,
# and how many states of a run are looked at.
STEPS, SHOWN, ROWS = np.array([100, 200, 400, 800, 1600]), 2, 100

# The run that shows the norms of the quaternions; the step is in s.
LONG_STEP, LONG_STEPS = 1e-4, 100_000

TIMED_RUNS = 5

# Constraint errors below, at all step sizes, are rounding.
ROUNDING = 1e-11

PRINTED = printed(__file__)

# The largest errors at the end, of attitudes in rad and of positions in m, (2, n), and the largest
# |g| and |A v| on the way, (n_joints, 2, n): with each of STEPS.
Study = tuple[np.ndarray, np.ndarray]


def study(name: str, machine: Machine) -> Study:
    """The runs of a machine under the map `name`."""
    ends, joints, exact = [], [], machine.end.ravel()
    for n in STEPS:
        poses, twists = _run(name, machine, machine.duration / n, n)
        apart = machine.free.manifold.difference(exact, poses[-1].ravel()).reshape(-1, 2, 3)
        ends.append(np.max(np.linalg.norm(apart, axis=2), axis=0))
        joints.append([violation(joint, poses, twists) for joint in machine.joints.values()])
    return np.stack(ends, -1), np.stack(joints, -1)


def _run(name: str, machine: Machine, h: float, steps: int) -> list[np.ndarray]:
    how = np.asarray(h), ROWS, np.asarray(steps // ROWS)
    return [np.asarray(a) for a in march(name, machine.free, machine.start, *how)]


def norm_defect(name: str, machine: Machine) -> float:
    """The largest | |p| - 1 | of the quaternions p over LONG_STEPS steps, none renormalised."""
    poses, _ = _run(name, machine, LONG_STEP, LONG_STEPS)
    return float(np.max(np.abs(np.linalg.norm(poses[..., :4], axis=-1) - 1)))


def slope(errors: np.ndarray) -> float | None:
    """The exponent k of errors (n,) ~ h^k over the three smallest steps; None for rounding."""
    return None if np.max(errors) < ROUNDING else fitted_slope(1 / STEPS[-3:], errors[-3:])


@dataclass(frozen=True, kw_only=True)
class MapRow(Results):
    """What a map makes of the heavy top with steps of h in s.

    Its errors are in m and m/s; order: None for rounding; norm_defect: None for rotation vectors.
    """

    map: str
    attitude: str
    local: str
    group: str
    h: float
    order: float | None
    constraint_error: float
    velocity_error: float
    norm_defect: float | None
    microseconds_per_step: float


@dataclass(frozen=True, kw_only=True)
class JointRow(Results):
    """What local coordinates make of a joint of a machine, a value for each of the steps h in s.

    attitude_error in rad and position_error in m are at the end. The orders are None where there is
    rounding alone.
    """

    machine: str
    joint: str
    local: str
    group: str
    h: list[float]
    attitude_error: list[float]
    position_error: list[float]
    constraint_error: list[float]
    velocity_error: list[float]
    constraint_order: float | None
    velocity_order: float | None


@dataclass(frozen=True, kw_only=True)
class CenterRow(Results):
    """The centre of mass of the top at 0.2 s in m, computed on a ball joint, and published."""

    computed: list[float]
    published: list[float]


@dataclass(frozen=True, kw_only=True)
class MuellerResults(Results):
    """The eight maps on the heavy top, and the groups on the joints of all machines."""

    name: str = "mueller"
    rows: list[MapRow]
    comparison: list[JointRow]
    com: CenterRow


def compute(progress: Progress) -> Computed:
    """The table of the maps and the comparison of the groups; a minute or two on two cores."""
    machines = {kind: build() for kind, build in MACHINES.items()}
    top, *others = machines
    # How attitudes are stored does not bear on constraints: the others run with quaternions alone.
    pairs = [(kind, f"1{column}") for kind in others for column in LOCAL]
    pairs += [(top, name) for name in TRANSITION_MAPS]
    runs = each(progress, "maps", lambda pair: study(pair[1], machines[pair[0]]), pairs)
    studies = dict(zip(pairs, runs, strict=True))
    results = MuellerResults(
        rows=each(
            progress,
            "timing",
            lambda name: map_row(name, machines[top], *studies[top, name]),
            TRANSITION_MAPS,
            workers=1,
        ),
        comparison=[
            joint_row(kind, machine, i, column, *studies[kind, f"1{column}"])
            for kind, machine in machines.items()
            for i in range(len(machine.joints))
            for column in LOCAL
        ],
        com=CenterRow(computed=machines[top].end[0, 4:].tolist(), published=PRINTED["com"]),
    )
    return results, lambda: figures(machines, studies)


def map_row(name: str, machine: Machine, ends: np.ndarray, joints: np.ndarray) -> MapRow:
    """A row of the table of the eight maps, from the `Study` of its runs."""
    constraint_error, velocity_error = np.max(joints[..., SHOWN], axis=0).tolist()
    h, n = machine.duration / STEPS, STEPS[-1]
    # Processor time, which other programs on the machine change little, without compilation.
    times = timeit.repeat(
        lambda: _run(name, machine, h[-1], n), repeat=TIMED_RUNS, number=1, timer=time.process_time
    )
    return MapRow(
        map=name,
        attitude=ATTITUDES[name[0]],
        local=LOCAL[name[1]].name,
        group=LOCAL[name[1]].group,
        h=float(h[SHOWN]),
        order=slope(ends.max(axis=0)),
        constraint_error=constraint_error,
        velocity_error=velocity_error,
        norm_defect=norm_defect(name, machine) if name[0] == "1" else None,
        microseconds_per_step=float(min(times) / n * 1e6),
    )


def joint_row(
    kind: str, machine: Machine, i: int, column: str, ends: np.ndarray, joints: np.ndarray
) -> JointRow:
    """What local coordinates make of the joint with the number i, from the `Study` of the runs."""
    return JointRow(
        machine=kind,
        joint=list(machine.joints)[i],
        local=LOCAL[column].name,
        group=LOCAL[column].group,
        h=(machine.duration / STEPS).tolist(),
        attitude_error=ends[0].tolist(),
        position_error=ends[1].tolist(),
        constraint_error=joints[i, 0].tolist(),
        velocity_error=joints[i, 1].tolist(),
        constraint_order=slope(joints[i, 0]),
        velocity_order=slope(joints[i, 1]),
    )


def agreements(results: MuellerResults) -> list[Agreement]:
    """The coordinates of the heavy top's centre that have all published decimals."""
    pairs = list(zip(results.com.computed, results.com.published, strict=True))
    equal = sum(f"{x:.10f}" == f"{known:.10f}" for x, known in pairs)
    return [Agreement("Heavy top's centre of mass", equal, len(pairs), "in ten decimals")]


def sections(results: MuellerResults) -> list[Section]:
    """The table of the eight maps, and what the groups make of joints."""
    return [_maps(results), _joints(results)]


def _maps(results: MuellerResults) -> Section:
    formats = {"map": "", "attitude": "", "local": "", "group": "", "order": ".2f"}
    formats |= {"constraint_error": ".1e", "velocity_error": ".1e", "norm_defect": ".1e"}
    formats |= {"microseconds_per_step": ".0f"}
    words = "map", "attitude", "local\ncoordinates", "group"
    head = *words, "order", "|g|\n[m]", "|A v|\n[m/s]", "norm\ndefect", "us a\nstep"
    said = (
        "|g|, |A v|: the largest in 0.2 s, without stabilisation. Norm defect: of quaternions in "
        f"{LONG_STEPS} steps of {LONG_STEP:g} s. Centre of mass at 0.2 s in m, on a ball joint and "
        "published:"
    )
    com = results.com.computed, results.com.published
    ends = (" ".join(f"{x:14.10f}" for x in place) for place in com)
    title = f"Heavy top, h = {results.rows[0].h:g} s, classical Runge-Kutta tableau"
    table = Table(head, [cells(r, formats) for r in results.rows], names=4)
    return Section(title, [table, *notes(said, *ends)])


def _joints(results: MuellerResults) -> Section:
    rows = [
        (
            *(r.machine, r.joint, r.local, r.group),
            *(number(r.constraint_error[k]) for k in (0, -1)),
            *(number(order, ".2f") for order in (r.constraint_order, r.velocity_order)),
        )
        for r in results.comparison
    ]
    few, many = STEPS[[0, -1]]
    words = "machine", "joint", "local\ncoordinates", "group"
    head = *words, f"|g|\n{few} steps", f"|g|\n{many} steps", "order\nof g", "order\nof A v"
    said = notes("A dash: rounding at every step size.")
    return Section("What each group makes of joints", [Table(head, rows, names=4), *said])


def figures(machines: dict[str, Machine], studies: dict[tuple[str, str], Study]) -> dict[str, Any]:
    """Over the step size the errors at the end, a column for each machine, and the largest |g| and
    |A v|, a column for each joint."""
    columns, of_joints = {}, {}
    for kind, machine in machines.items():
        own = {name: s for (of, name), s in studies.items() if of == kind}
        lines = [(ends, _style(name)) for name, (ends, _) in own.items()]
        largest = np.max([ends[:, -1:] for ends, _ in own.values()], axis=0)
        order = {"label": "slope 4", "linestyle": ":", "color": "#5f6368"}
        h = machine.duration / STEPS
        columns[kind.capitalize()] = h, [*lines, (3 * largest * (h / h[-1]) ** 4, order)]
        for i, joint in enumerate(machine.joints):
            of_joints[f"{kind.capitalize()}: {joint}"] = (
                h,
                [(joints[i], _style(name)) for name, (_, joints) in own.items() if name[0] == "1"],
            )
    quantities = "largest |g| [m, -]", "largest |A v| [m/s, 1/s]"
    return {
        "order": _panels((10.0, 7.5), ("attitude error [rad]", "position error [m]"), columns),
        "constraints": _panels((12.0, 7.5), quantities, of_joints),
    }


def _style(name: str) -> dict[str, Any]:
    """Of the line of a map: the colour tells the group, the kind of line the local coordinates."""
    if name[0] == "2":
        return {
            "label": "rotation vectors stored",
            "linestyle": "",
            "marker": "x",
            "color": "#5f6368",
        }
    local = LOCAL[name[1]]
    return {
        "label": f"{local.name}: {local.group}",
        "linestyle": "-" if "exp" in local.name else "--",
        "marker": "o" if "exp" in local.name else "s",
        "fillstyle": "none",
        "color": "#0b5394" if local.group == "SE(3)" else "#cc4125",
    }


def _panels(size: tuple[float, float], quantities: tuple[str, str], columns: dict[str, Any]) -> Any:
    """A figure of two quantities, one below the other, over the steps h (n,) in s: by title of a
    column h and its lines, each of them values (2, n) and a style."""
    canvas, axes = figure(2, len(columns), size)
    for (title, (h, lines)), column in zip(columns.items(), axes.T, strict=True):
        for a, first, quantity, k in zip(column, axes[:, 0], quantities, (0, 1), strict=True):
            a.sharey(first)
            for values, style in lines:
                draw_errors(a, 1e3 * h, values[k], **style)
            a.set_xticks(1e3 * h, [f"{x:.3g}" for x in 1e3 * h])
            a.minorticks_off()
            label(a, "step h [ms]", quantity, title, legend=False)
    named = {line.get_label(): line for line in axes[0, 0].lines}
    canvas.legend(named.values(), named, loc="outside lower center", frameon=False, ncols=3)
    return canvas
