"""Tables V to VIII and X and Figures 4 to 8 of Park and Chung 2005.

J. Park and W.-K. Chung, "Geometric integration on Euclidean group with application to articulated
multibody systems", IEEE Transactions on Robotics 21(5), 2005: how well Lie-group integrators of
three families (Crouch-Grossman, commutator-free, and Munthe-Kaas, here RKMK) keep the energy and
the momentum of three bodies on two revolute joints that move freely in space.

What the paper leaves open and its numbers decide:

* The geometry of Figure 3, see `three_spheres`. Eight geometries, images of one another under
  rotations and reflections, give the tabulated drifts, because these start with the base at rest.
* The methods of order 2 use Heun's tableau, CG2 and CF2 with two exponentials in the update.
* CG4 uses coefficients in full precision, not the fractions of Table I(b). With those of this
  package its drifts fall with h^4 down to round-off, and do not level off before as in Figure 4.

Figures 7 and 8 start with a moving base and so depend on the geometry; they are computed for one of
the eight. In all eight the momenta of CG4 drift 1.5 to 2.2 times as far in 200 s as those of CF4
and MK4, in agreement with the paper, and those of MK4 a few percent further than those of CF4,
where the paper sees a slight advantage of MK4.

Table X counts the operations of one step. The rule of `operations_per_step` gives 75 of its 81
numbers; no rule gives all of them:

* CF4 and MK4 rest on the same tableau, the classical one, so svmultadd(N), which is spent on the
  joints alone, must be the same. The table has 20 and 14. 20 counts the three zeros of the tableau
  too; but 8, for CF3 and MK3, leaves out the two zeros of theirs. svmultadd(6) of CF4 counts the
  same three zeros.
* CF3 and MK3 both have two exponents of one term and one of two. In CF3 the second term is counted
  in svmultadd(6), in MK3 in svmultadd(6) and svmult(6), and in MK2 in svmult(6) alone. MK4 is
  counted as MK3 is.

Table V follows from the printed Table X without exception. With the counts of the rule CF4 is
cheaper than MK4 for 20 joints as well; that the paper finds the opposite comes from the zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure
from rich import box
from rich.console import Console
from rich.table import Table

from ..integrators import CommutatorFree, CrouchGrossman, RungeKuttaMuntheKaas, by_name
from ..integrators.munthe_kaas import dexp_inv_coefficients
from ..result import Trajectory
from ..simulate import simulate
from ..system import Body, Free, Revolute, System, chain
from ..view.plots import figure, label
from .runs import Progress

METHODS = ("CG2", "CG3", "CG4", "CF2", "CF3", "CF4", "MK2", "MK3", "MK4")
"""As the paper calls them; MK stands for the package's RKMK."""

STEP_SIZES = (1.0, 0.1, 0.01, 0.001)
"""In s."""

SMALLEST_COMPARED = 1e-8
"""Smaller drifts are reported but not compared: their last printed digits are round-off."""

JOINT_RATES = (0.4, 0.4)
AT_REST = (0.0,) * 6
# The paper puts v before omega; here omega comes first.
MOVING = (0.3, 0.3, 0.3, 0.1, 0.1, 0.1)
LONG_STEP = 0.05
# Enough for t = 200 s. All runs have this length, so that each method is compiled once; the runs of
# the tables are read at t = 1 s.
STEPS = 4000

DRIFTS = {
    "VI": ("kinetic energy", "J"),
    "VII": ("linear momentum", "N s"),
    "VIII": ("angular momentum", "N m s"),
}
"""The quantity and its unit, by table."""

PRINTED_DRIFTS = {
    "VI": {
        "CG2": (3.4673e-2, 1.1679e-3, 1.2151e-5, 1.2197e-7),
        "CG3": (3.9707e-2, 4.2896e-5, 4.3020e-8, 4.3059e-11),
        "CG4": (1.5120e-3, 2.0035e-7, 2.0421e-11, 1.7764e-14),
        "CF2": (3.4673e-2, 1.1679e-3, 1.2151e-5, 1.2197e-7),
        "CF3": (5.3524e-2, 5.0535e-5, 5.0334e-8, 5.0292e-11),
        "CF4": (3.6308e-3, 3.2133e-7, 3.1989e-11, 1.7764e-14),
        "MK2": (3.4673e-2, 1.1679e-3, 1.2151e-5, 1.2197e-7),
        "MK3": (5.3524e-2, 5.0535e-5, 5.0334e-8, 5.0292e-11),
        "MK4": (3.6308e-3, 3.2133e-7, 3.1996e-11, 1.4211e-14),
    },
    "VII": {
        "CG2": (5.5613e-1, 5.2947e-3, 5.2633e-5, 5.2600e-7),
        "CG3": (5.6523e-2, 4.7138e-5, 4.6619e-8, 4.6510e-11),
        "CG4": (8.4583e-3, 8.2850e-7, 8.3399e-11, 3.2901e-13),
        "CF2": (5.5613e-1, 5.2947e-3, 5.2633e-5, 5.2600e-7),
        "CF3": (5.1921e-2, 5.2437e-5, 5.2982e-8, 5.2981e-11),
        "CF4": (1.5953e-2, 1.5814e-6, 1.5782e-10, 5.7011e-14),
        "MK2": (5.5613e-1, 5.3178e-3, 5.2893e-5, 5.2864e-7),
        "MK3": (5.2334e-2, 5.3244e-5, 5.3800e-8, 5.3802e-11),
        "MK4": (1.5910e-2, 1.5903e-6, 1.5877e-10, 9.0256e-14),
    },
    "VIII": {
        "CG2": (8.3715e-1, 8.1705e-3, 8.3278e-5, 8.3449e-7),
        "CG3": (2.0265e-1, 1.9643e-4, 1.9513e-7, 1.9481e-10),
        "CG4": (2.3172e-2, 2.6873e-6, 2.8057e-10, 2.7154e-12),
        "CF2": (8.3715e-1, 8.1705e-3, 8.3278e-5, 8.3449e-7),
        "CF3": (2.8075e-1, 2.8154e-4, 2.8084e-7, 2.8059e-10),
        "CF4": (3.6510e-2, 3.6710e-6, 3.6619e-10, 3.9933e-13),
        "MK2": (8.3715e-1, 8.1218e-3, 8.2721e-5, 8.2885e-7),
        "MK3": (2.7813e-1, 2.8401e-4, 2.8359e-7, 2.8344e-10),
        "MK4": (3.9118e-2, 3.8141e-6, 3.8025e-10, 1.9654e-13),
    },
}
"""By table and method, one value for each of STEP_SIZES. The tables print CG4 as "GG4"."""

OPERATIONS: tuple[str, ...] = (
    "FDyn",
    "svmultadd(6)",
    "svmultadd(N)",
    "svmult(6)",
    "exp",
    "hmmult",
    "add",
    "dexpinv",
    "mvmult(6x6)",
)
"""The columns of Table X."""

PRINTED_OPERATIONS = {
    "CG2": (2, 3, 6, 3, 3, 3, 2, 0, 0),
    "CG3": (3, 6, 12, 6, 6, 6, 3, 0, 0),
    "CG4": (5, 15, 30, 15, 15, 15, 5, 0, 0),
    "CF2": (2, 3, 6, 3, 3, 3, 2, 0, 0),
    "CF3": (3, 5, 8, 3, 3, 3, 3, 0, 0),
    "CF4": (4, 17, 20, 5, 5, 5, 4, 0, 0),
    "MK2": (2, 3, 6, 3, 2, 2, 2, 1, 1),
    "MK3": (3, 5, 8, 4, 3, 3, 3, 2, 2),
    "MK4": (4, 10, 14, 7, 4, 4, 4, 3, 3),
}

# Columns of Table V; those of a pair are for 2 and for 20 joints.
PRINTED_COSTS = {
    "CG2": {"FDyn": 2, "add": (191, 299), "mult": (270, 378), "div": 6, "sqrt": 3, "trig": 6},
    "CG3": {"FDyn": 3, "add": (381, 597), "mult": (540, 756), "div": 12, "sqrt": 6, "trig": 12},
    "CG4": {"FDyn": 5, "add": (950, 1490), "mult": (1350, 1890), "div": 30, "sqrt": 15, "trig": 30},
    "CF2": {"FDyn": 2, "add": (191, 299), "mult": (270, 378), "div": 6, "sqrt": 3, "trig": 6},
    "CF3": {"FDyn": 3, "add": (208, 352), "mult": (286, 430), "div": 6, "sqrt": 3, "trig": 6},
    "CF4": {"FDyn": 4, "add": (411, 771), "mult": (542, 902), "div": 10, "sqrt": 5, "trig": 10},
    "MK2": {"FDyn": 2, "add": (201, 309), "mult": (265, 373), "div": 7, "sqrt": 2, "trig": 4},
    "MK3": {"FDyn": 3, "add": (334, 478), "mult": (430, 574), "div": 12, "sqrt": 3, "trig": 6},
    "MK4": {"FDyn": 4, "add": (493, 745), "mult": (633, 885), "div": 17, "sqrt": 4, "trig": 8},
}
JOINTS = (2, 20)

_TWICE = "the further terms of the update are counted in svmultadd(6) already"
_ZEROS = "the zeros of the tableau are counted"
OPERATION_NOTES = {
    ("CF4", "svmultadd(6)"): _ZEROS,
    ("CF4", "svmultadd(N)"): _ZEROS,
    ("MK2", "svmultadd(6)"): "the second term of the update is counted in svmult(6)",
    ("MK2", "svmult(6)"): "the second term of the update is counted here",
    ("MK3", "svmult(6)"): _TWICE,
    ("MK4", "svmult(6)"): _TWICE,
}
"""What explains the printed numbers of Table X that the rule does not give."""


def compute(progress: Progress) -> tuple[dict[str, Any], Callable[[], dict[str, Figure]]]:
    """The tables, computed beside printed; about a minute on two cores.

    The dictionary has "rows", the 108 drifts of Tables VI to VIII (SI units, h in s);
    "operations", those of Tables X (from the coefficients) and V (from the printed Table X), where
    a "note" says what differs; and "agreement", how many rows were "compared" because at least
    `SMALLEST_COMPARED` is printed, and how many of them are "equal" in all five digits.
    """
    system = three_spheres()
    drifts, long = {}, {}
    with ThreadPoolExecutor(2) as pool:
        # Most of the time is compilation, which leaves Python free for another method.
        runs = pool.map(lambda name: _runs(system, name), METHODS)
        progress("methods", 0, len(METHODS))
        for done, (name, (short, slow)) in enumerate(zip(METHODS, runs, strict=True), 1):
            at_end = [
                changes(system, run)[round(1 / h)] for h, run in zip(STEP_SIZES, short, strict=True)
            ]
            drifts[name] = np.abs(np.stack(at_end, axis=1))
            if slow is not None:
                long[name] = np.asarray(slow.t), changes(system, slow).T
            progress("methods", done, len(METHODS))
    rows = drift_rows(drifts)
    compared = [r for r in rows if r["printed"] >= SMALLEST_COMPARED]
    results = {
        "rows": rows,
        "operations": operation_rows(),
        "agreement": {
            "compared": len(compared),
            "equal": sum(five_digits(r["computed"]) == five_digits(r["printed"]) for r in compared),
        },
    }
    return results, lambda: figures(drifts, long)


def three_spheres() -> System:
    """Three solid spheres (radius 1 m, 10 kg) on two revolute joints, free, without gravity.

    Frames are in the joints. Joint 1 turns about z through the centre of sphere 1, sphere 2 lies at
    (2, 0, 0) in it; joint 2 turns about x through the centre of sphere 2, sphere 3 lies at
    (0, 0, -2) in it.
    """
    sphere: dict[str, Any] = {"mass": 10.0, "inertia": 4.0 * np.eye(3)}
    about_z, about_x = Revolute(axis=(0, 0, 1)), Revolute(axis=(1, 0, 0))
    bodies = [
        Body(name="sphere 1", joint=Free(), **sphere),
        Body(name="sphere 2", joint=about_z, com=(2, 0, 0), **sphere),
        Body(name="sphere 3", joint=about_x, position=(2, 0, 0), com=(0, 0, -2), **sphere),
    ]
    return chain(bodies, name="three spheres", gravity=(0, 0, 0))


def changes(system: System, motion: Trajectory) -> np.ndarray:
    """How far each quantity of `DRIFTS` is from its start (m + 1, 3): in J, N s and N m s.

    Of the kinetic energy the difference, of the momenta (world frame, angular momentum about the
    world origin) the norm of the difference.
    """
    energy, momentum = (np.asarray(a) for a in _invariants(system, motion))
    # The runs of the tables go on after t = 1 s, and with large steps to huge numbers.
    with np.errstate(over="ignore", invalid="ignore"):
        angular, linear = np.split(momentum - momentum[0], 2, axis=1)
        norms = np.linalg.norm(linear, axis=1), np.linalg.norm(angular, axis=1)
    return np.stack((energy - energy[0], *norms), axis=1)


@eqx.filter_jit
def _invariants(system: System, motion: Trajectory) -> tuple[jax.Array, jax.Array]:
    return motion.energy(system)[0], motion.momentum(system)


def _runs(system: System, name: str) -> tuple[list[Trajectory], Trajectory | None]:
    """The runs of the tables, one for each of STEP_SIZES, and that of Figures 7 and 8."""

    def run(start: tuple[float, ...], h: float) -> Trajectory:
        v = jnp.array((*start, *JOINT_RATES))
        method = by_name(name.replace("MK", "RKMK"))
        motion = simulate(system, system.neutral(), v, dt=h, steps=STEPS, method=method)
        return jax.block_until_ready(motion)

    short = [run(AT_REST, h) for h in STEP_SIZES]
    return short, run(MOVING, LONG_STEP) if name[-1] != "2" else None


def drift_rows(drifts: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    """Tables VI to VIII; drifts (3, 4) by method: in J, N s, N m s, for each of STEP_SIZES."""
    return [
        {
            "table": table,
            "quantity": quantity,
            "method": method,
            "h": h,
            "computed": float(drifts[method][i, j]),
            "printed": PRINTED_DRIFTS[table][method][j],
        }
        for i, (table, (quantity, _)) in enumerate(DRIFTS.items())
        for method in METHODS
        for j, h in enumerate(STEP_SIZES)
    ]


def five_digits(value: float) -> str:
    """As the tables print it: 1.2345E-6."""
    digits, exponent = f"{value:.4E}".split("E")
    return f"{digits}E{int(exponent)}"


def lie_method(name: str) -> CrouchGrossman | CommutatorFree | RungeKuttaMuntheKaas:
    """The method that the paper calls `name`."""
    method = by_name(name.replace("MK", "RKMK"))
    assert isinstance(method, CrouchGrossman | CommutatorFree | RungeKuttaMuntheKaas)
    return method


def operations_per_step(
    method: CrouchGrossman | CommutatorFree | RungeKuttaMuntheKaas,
) -> dict[str, int]:
    """The columns of Table X for one step, counted from the coefficients of a method by one rule.

    Coefficients that are zero cost nothing, and an exponential is computed once: a product that
    begins with the factors of an earlier one continues from that pose.
    FDyn: one forward dynamics for each stage. svmultadd(n), a vector times a scalar plus a vector:
    one for each coefficient of the stages and of the update, in V (n = 6) and in each of q and its
    rate (n = N; a commutator-free method uses the sums of its coefficients), and one for each
    further term of an exponent. svmult(6): the first term of each exponent. exp and hmmult
    (homogeneous matrices): one for each exponential. dexpinv and mvmult(6x6): one for each stage of
    MK whose exponent is not zero. add: the times t + c h of the stages and of the end.

    Where the series of dexp^-1 is cut off, these two are replaced by the brackets of se(3), one
    column more, and one svmultadd(6) for each coefficient of the series after the first.
    """
    tableau = method.tableau
    rows = [*tableau.a, tableau.b]
    inverses = brackets = further_terms = 0
    if isinstance(method, CommutatorFree):
        products = [*method.tableau.alpha, method.tableau.beta]
    elif isinstance(method, CrouchGrossman):
        products = [[(0.0,) * j + (x,) for j, x in enumerate(row) if x] for row in rows]
    else:
        products = [[row] for row in rows if any(row)]
        inverses = len(products) - 1
        if method.brackets is not None:
            series = dexp_inv_coefficients(method.brackets)[1:]
            brackets, further_terms = inverses * len(series), inverses * sum(map(bool, series))
            inverses = 0
    partial_products = {tuple(p[: n + 1]) for p in products for n in range(len(p))}
    exponentials = len(partial_products)
    terms = sum(x != 0 for p in partial_products for x in p[-1])
    coefficients = sum(x != 0 for row in rows for x in row)
    return {
        "FDyn": tableau.stages,
        "svmultadd(6)": coefficients + terms - exponentials + further_terms,
        "svmultadd(N)": 2 * coefficients,
        "svmult(6)": exponentials,
        "exp": exponentials,
        "hmmult": exponentials,
        "add": sum(c != 0 for c in tableau.c) + 1,
        "dexpinv": inverses,
        "mvmult(6x6)": inverses,
        "bracket": brackets,
    }


def elementary_operations(counts: dict[str, int], joints: int) -> dict[str, int]:
    """The columns of Table V from those of Table X, with the costs of the paper's Appendix I.

    A bracket (w x a, w x b + v x a) is three cross products and a sum.
    """
    costs = {
        "svmultadd(6)": {"add": 6, "mult": 6},
        "svmultadd(N)": {"add": joints, "mult": joints},
        "svmult(6)": {"mult": 6},
        "exp": {"add": 26, "mult": 38, "div": 2, "sqrt": 1, "trig": 2},
        "hmmult": {"add": 27, "mult": 36},
        "add": {"add": 1},
        "dexpinv": {"add": 33, "mult": 33, "div": 3},
        "mvmult(6x6)": {"add": 30, "mult": 36},
        "bracket": {"add": 12, "mult": 18},
    }
    totals = {
        kind: sum(n * costs.get(name, {}).get(kind, 0) for name, n in counts.items())
        for kind in ("add", "mult", "div", "sqrt", "trig")
    }
    return {"FDyn": counts["FDyn"], **totals}


def operation_rows() -> list[dict[str, Any]]:
    """Table V from the printed Table X, and Table X from the coefficients; see the module."""
    rows: list[dict[str, Any]] = []
    for method in METHODS:
        printed_counts = dict(zip(OPERATIONS, PRINTED_OPERATIONS[method], strict=True))
        counts = operations_per_step(lie_method(method))
        for quantity, printed in PRINTED_COSTS[method].items():
            for n, joints in enumerate(JOINTS):
                computed = elementary_operations(printed_counts, joints)[quantity]
                own = elementary_operations(counts, joints)[quantity]
                row = {
                    "table": "V",
                    "quantity": quantity,
                    "method": method,
                    "joints": joints,
                    "computed": computed,
                    "printed": printed[n] if isinstance(printed, tuple) else printed,
                }
                if own != computed:
                    row["note"] = f"{own} with the computed Table X"
                rows.append(row)
        for quantity, printed in printed_counts.items():
            row = {
                "table": "X",
                "quantity": quantity,
                "method": method,
                "computed": counts[quantity],
                "printed": printed,
            }
            if counts[quantity] != printed:
                row["note"] = OPERATION_NOTES[method, quantity]
            rows.append(row)
    return rows


def show(numbers: dict[str, Any], console: Console | None = None) -> None:
    """Prints what `reproduce` gives, every number above the printed one."""
    console = console or Console()
    rows, operations = numbers["rows"], numbers["operations"]
    for table, (quantity, unit) in DRIFTS.items():
        cells = {
            (r["method"], f"h = {r['h']:g} s"): _drift_cell(r) for r in rows if r["table"] == table
        }
        _print_table(console, f"Table {table}: {quantity} drift at t = 1 s [{unit}]", cells)
    cells = {
        (r["method"], _column(r)): _operation_cell(r)
        for r in operations
        if r["table"] == "V" and (r["quantity"] in ("add", "mult") or r["joints"] == JOINTS[0])
    }
    _print_table(console, "Table V: elementary operations of a step, for N joints", cells)
    cells = {(r["method"], _column(r)): _operation_cell(r) for r in operations if r["table"] == "X"}
    _print_table(console, "Table X: operations of a step", cells)
    compared, equal = numbers["agreement"]["compared"], numbers["agreement"]["equal"]
    differing = [r for r in operations if r["computed"] != r["printed"]]
    summary = [
        "Each number stands above the printed one.",
        f"Tables VI-VIII: {equal} of {compared} drifts agree in all five digits; the other "
        f"{len(rows) - compared}, printed below 1e-8, are not compared.",
        f"Tables V and X: {len(operations) - len(differing)} of {len(operations)} counts agree.",
        *(
            f"  {r['method']} {r['quantity']}: {r['computed']}, printed {r['printed']}: {r['note']}"
            for r in differing
        ),
    ]
    console.print("\n".join(summary), highlight=False, markup=False)


_HEADS: dict[str, str] = {
    "hmmult": "hm-\nmult",
    "dexpinv": "dexp-\ninv",
    "svmultadd(6)": "svmult-\nadd(6)",
    "svmultadd(N)": "svmult-\nadd(N)",
    "svmult(6)": "svmult\n(6)",
    "mvmult(6x6)": "mvmult\n(6x6)",
}


def _column(row: dict[str, Any]) -> str:
    name: str = row["quantity"]
    if "joints" in row and name in ("add", "mult"):
        return f"{name}\nN = {row['joints']}"
    return _HEADS.get(name, name)


def _drift_cell(row: dict[str, Any]) -> str:
    computed, printed = five_digits(row["computed"]), five_digits(row["printed"])
    colour = "green" if computed == printed else "red"
    if row["printed"] < SMALLEST_COMPARED:
        colour = "default"
    return f"[{colour}]{computed}[/]\n[dim]{printed}[/]"


def _operation_cell(row: dict[str, Any]) -> str:
    colour = "green" if row["computed"] == row["printed"] else "red"
    return f"[{colour}]{row['computed']}[/]\n[dim]{row['printed']}[/]"


def _print_table(console: Console, title: str, cells: dict[tuple[str, str], str]) -> None:
    columns = list(dict.fromkeys(column for _, column in cells))
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("Method", no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    for method in METHODS:
        table.add_row(method, *(cells[method, column] for column in columns))
    console.print(table)


def figures(
    drifts: dict[str, np.ndarray], long: dict[str, tuple[np.ndarray, np.ndarray]]
) -> dict[str, Figure]:
    """Figures 4 to 8 by file name.

    drifts (3, 4) as in `drift_rows`; long: times (m + 1,) in s and `changes` (3, m + 1) by method.
    """
    families = {4: ("Crouch-Grossman", "CG"), 5: ("Commutator-free", "CF"), 6: ("RKMK", "MK")}
    by_step = {
        f"figure_{n}": _convergence_figure(f"{name} methods: drift at t = 1 s", family, drifts)
        for n, (name, family) in families.items()
    }
    by_time = {f"figure_{n}": _long_figure(order, long) for n, order in ((7, 3), (8, 4))}
    return by_step | by_time


def _convergence_figure(title: str, family: str, drifts: dict[str, np.ndarray]) -> Figure:
    canvas, axes = figure(1, 3, (11.0, 4.2))
    canvas.suptitle(title)
    for i, (table, (quantity, unit)) in enumerate(DRIFTS.items()):
        a = axes[0, i]
        for order in (2, 3, 4):
            method = f"{family}{order}"
            (line,) = a.loglog(STEP_SIZES, drifts[method][i], label=method, linewidth=1.3)
            printed = PRINTED_DRIFTS[table][method]
            a.loglog(STEP_SIZES, printed, "o", color=line.get_color(), fillstyle="none")
        a.plot([], [], "o", color="#5f6368", fillstyle="none", label="printed")
        label(a, "step h [s]", f"drift [{unit}]", quantity.capitalize(), legend=i == 2)
    return canvas


def _long_figure(order: int, long: dict[str, tuple[np.ndarray, np.ndarray]]) -> Figure:
    canvas, axes = figure(3, 1, (8.0, 9.0))
    canvas.suptitle(f"Methods of order {order}, h = {LONG_STEP} s")
    kinds = (
        "variation of the kinetic energy",
        "drift of the linear momentum",
        "drift of the angular momentum",
    )
    for i, (kind, (_, unit)) in enumerate(zip(kinds, DRIFTS.values(), strict=True)):
        a = axes[i, 0]
        # CF and MK nearly coincide.
        for family, style in (("CG", "-"), ("CF", "-"), ("MK", "--")):
            t, change = long[f"{family}{order}"]
            a.plot(t, change[i], style, label=f"{family}{order}", linewidth=1.5)
        a.set_xlim(t[0], t[-1])
        label(a, "t [s]", f"change [{unit}]", kind.capitalize(), legend=i == 0)
    canvas.align_ylabels()
    return canvas
