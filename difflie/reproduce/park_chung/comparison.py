"""Tables VI to VIII and Figures 4 to 8: drifts of energy and momentum, computed beside printed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from ...io.results import Results
from ...simulate import simulate
from ...system import Body, Free, Revolute, System, chain
from ...view.figures import figure, label
from ...view.plots import draw_errors
from ...view.report import Checked, Section, Table, notes
from ..papers import Agreement, Computed, Progress, each
from .operations import PRINTED, Count, lie_method, operation_rows

METHODS = tuple(PRINTED["V"])

# In s.
STEP_SIZES = (1.0, 0.1, 0.01, 0.001)

# Smaller drifts are reported but not compared: their last printed digits are round-off.
SMALLEST_COMPARED = 1e-8

# Velocities at the start: of the base, at rest or not, and of the joints. The paper puts v before
# omega; here omega comes first.
AT_REST = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.4, 0.4)
MOVING = (0.3, 0.3, 0.3, 0.1, 0.1, 0.1, 0.4, 0.4)
LONG_STEP = 0.05
# Enough for t = 200 s. All runs have this length, so that each method is compiled once; the runs of
# the tables are read at t = 1 s.
STEPS = 4000

# The quantity and its unit, by table.
DRIFTS = {
    "VI": ("kinetic energy", "J"),
    "VII": ("linear momentum", "N s"),
    "VIII": ("angular momentum", "N m s"),
}


@dataclass(frozen=True, kw_only=True)
class Drift(Results):
    """A drift at t = 1 s of Tables VI to VIII, in SI units, with the step h in s."""

    table: str
    quantity: str
    method: str
    h: float
    computed: float
    printed: float


@dataclass(frozen=True, kw_only=True)
class Agreed(Results):
    """How many drifts were compared, because at least `SMALLEST_COMPARED` is printed, and how many
    of them are equal in all five digits."""

    compared: int
    equal: int


@dataclass(frozen=True, kw_only=True)
class ParkChungResults(Results):
    """The 108 drifts of Tables VI to VIII, and the counts of Tables X and V."""

    name: str = "park-chung"
    rows: list[Drift]
    operations: list[Count]
    agreement: Agreed


def compute(progress: Progress) -> Computed:
    """The tables, computed beside printed; about a minute on two cores."""
    drifts = dict(zip(METHODS, each(progress, "methods", table_drifts, METHODS), strict=True))
    rows = [
        Drift(
            table=table,
            quantity=quantity,
            method=method,
            h=h,
            computed=float(drifts[method][i, j]),
            printed=PRINTED[table][method][j],
        )
        for i, (table, (quantity, _)) in enumerate(DRIFTS.items())
        for method in METHODS
        for j, h in enumerate(STEP_SIZES)
    ]
    equal = [agreement(r) for r in rows if r.printed >= SMALLEST_COMPARED]
    results = ParkChungResults(
        rows=rows,
        operations=operation_rows(),
        agreement=Agreed(compared=len(equal), equal=sum(map(bool, equal))),
    )
    return results, lambda: figures(drifts)


def three_spheres() -> System:
    """Three solid spheres (radius 1 m, 10 kg) on two revolute joints, free, without gravity.

    Frames are in the joints. Joint 1 turns about z through the centre of sphere 1, sphere 2 lies at
    (2, 0, 0) in it; joint 2 turns about x through the centre of sphere 2, sphere 3 lies at
    (0, 0, -2) in it.
    """
    sphere: dict[str, Any] = {"mass": 10.0, "inertia": 4.0 * np.eye(3)}
    return chain(
        [
            Body(name="sphere 1", joint=Free(), **sphere),
            Body(name="sphere 2", joint=Revolute(axis=(0, 0, 1)), com=(2, 0, 0), **sphere),
            Body(
                name="sphere 3",
                joint=Revolute(axis=(1, 0, 0)),
                position=(2, 0, 0),
                com=(0, 0, -2),
                **sphere,
            ),
        ],
        name="three spheres",
        gravity=(0, 0, 0),
    )


def changes(method: str, start: tuple[float, ...], h: float) -> np.ndarray:
    """How far each quantity of `DRIFTS` is from its start in steps of h (s), (3, STEPS + 1).

    In J, N s and N m s. Of the kinetic energy the difference, of the momenta (world frame, angular
    momentum about the world origin) the norm of the difference. start (8,): velocities.
    """
    system = three_spheres()
    motion = simulate(
        system, system.neutral(), jnp.array(start), dt=h, steps=STEPS, method=lie_method(method)
    )
    energy, momentum = motion.energy(system)[0], motion.momentum(system)
    # The runs of the tables go on after t = 1 s, and with large steps to huge numbers.
    with np.errstate(over="ignore", invalid="ignore"):
        angular, linear = np.split(np.asarray(momentum - momentum[0]), 2, axis=1)
        norms = np.linalg.norm(linear, axis=1), np.linalg.norm(angular, axis=1)
    return np.stack((energy - energy[0], *norms))


def table_drifts(method: str) -> np.ndarray:
    """The drifts at t = 1 s (3, 4), by quantity and for each of STEP_SIZES."""
    return np.abs(
        np.stack([changes(method, AT_REST, h)[:, round(1 / h)] for h in STEP_SIZES], axis=1)
    )


def as_printed(value: float) -> str:
    """Counts, and drifts in five digits, as the tables print them: 1.2345E-6."""
    digits = np.format_float_scientific(value, precision=4, unique=False, exp_digits=1).upper()
    return digits if isinstance(value, float) else str(value)


def agreement(row: Drift | Count) -> bool | None:
    """Whether a row has the printed number in all digits; None where they are not compared."""
    same = as_printed(row.computed) == as_printed(row.printed)
    return None if 0 < row.printed < SMALLEST_COMPARED else same


def agreements(results: ParkChungResults) -> list[Agreement]:
    """The drifts and the counts of operations that are as printed."""
    agreed, counts = results.agreement, results.operations
    equal = sum(r.computed == r.printed for r in counts)
    rule = f"in all five digits; smaller ones than {SMALLEST_COMPARED:g} are not compared"
    return [
        Agreement("Drifts of Tables VI to VIII", agreed.equal, agreed.compared, rule),
        Agreement("Counts of Tables V and X", equal, len(counts), "exactly"),
    ]


def sections(results: ParkChungResults) -> list[Section]:
    """A section for each table, every number above the printed one."""
    rows, operations, agreed = results.rows, results.operations, results.agreement
    titles = {
        **{k: f"{q} drift at t = 1 s [{unit}]" for k, (q, unit) in DRIFTS.items()},
        "V": "elementary operations of a step, for N joints",
        "X": "operations of a step",
    }
    tables = []
    for table, title in titles.items():
        columns: dict[str, dict[str, Checked]] = {}
        for r in (*rows, *operations):
            if r.table == table:
                cell = Checked(as_printed(r.computed), as_printed(r.printed), agreement(r))
                columns.setdefault(_column(r), {})[r.method] = cell
        lines = [[method, *(c[method] for c in columns.values())] for method in METHODS]
        tables.append(Section(f"Table {table}: {title}", [Table(("Method", *columns), lines)]))
    differing = [r for r in operations if r.computed != r.printed]
    said = notes(
        "Each number stands above the printed one.",
        f"Tables VI-VIII: {agreed.equal} of {agreed.compared} drifts agree in all five digits; the "
        f"other {len(rows) - agreed.compared}, printed below 1e-8, are not compared.",
        f"Tables V and X: {len(operations) - len(differing)} of {len(operations)} counts agree.",
        *(
            f"{r.method} {r.quantity}: {r.computed}, printed {r.printed}: {r.note}"
            for r in differing
        ),
    )
    return [*tables, Section("Counts that agree", said)]


def _column(row: Drift | Count) -> str:
    """The heading of its column. Of Table V only sums and products depend on the joints."""
    if isinstance(row, Drift):
        return f"h = {row.h:g} s"
    joints = f"\nN = {row.joints}" if row.quantity in ("add", "mult") and row.joints else ""
    return row.quantity.replace("(", "\n(") + joints


def figures(drifts: dict[str, np.ndarray]) -> dict[str, Any]:
    """Figures 4 to 8 by file name; drifts (3, 4) by method, as `table_drifts` gives them."""
    return {
        "figure_4": _by_step("Crouch-Grossman", METHODS[:3], drifts),
        "figure_5": _by_step("Commutator-free", METHODS[3:6], drifts),
        "figure_6": _by_step("RKMK", METHODS[6:], drifts),
        "figure_7": _over_time(3),
        "figure_8": _over_time(4),
    }


def _by_step(family: str, methods: tuple[str, ...], drifts: dict[str, np.ndarray]) -> Any:
    canvas, axes = figure(1, 3, (11.0, 4.2))
    canvas.suptitle(f"{family} methods: drift at t = 1 s")
    for i, (table, (quantity, unit)) in enumerate(DRIFTS.items()):
        a, points = axes[0, i], {"marker": "o", "linestyle": "", "fillstyle": "none"}
        for method in methods:
            line = draw_errors(a, STEP_SIZES, drifts[method][i], method)
            draw_errors(a, STEP_SIZES, PRINTED[table][method], color=line.get_color(), **points)
        a.plot([], [], color="#5f6368", label="printed", **points)
        label(a, "step h [s]", f"drift [{unit}]", quantity.capitalize(), legend=i == 2)
    return canvas


def _over_time(order: int) -> Any:
    canvas, axes = figure(3, 1, (8.0, 9.0))
    canvas.suptitle(f"Methods of order {order}, h = {LONG_STEP} s")
    t = LONG_STEP * np.arange(STEPS + 1)
    # CF and MK nearly coincide.
    for family, style in (("CG", "-"), ("CF", "-"), ("MK", "--")):
        runs = changes(f"{family}{order}", MOVING, LONG_STEP)
        for a, change, (quantity, unit) in zip(axes[:, 0], runs, DRIFTS.values(), strict=True):
            a.plot(t, change, style, label=f"{family}{order}", linewidth=1.5)
            a.set_xlim(t[0], t[-1])
            title = f"{'Variation' if unit == 'J' else 'Drift'} of the {quantity}"
            label(a, "t [s]", f"change [{unit}]", title, legend=unit == "J")
    canvas.align_ylabels()
    return canvas
