"""Every problem with six methods, where they apply: what they reach, how many steps, how long."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter
from rich.console import Console
from rich.table import Table

from ... import native
from ...constraints import Projection
from ...constraints.equations import equations
from ...forces import energy
from ...formulations import Inputs, formulated, formulation_of
from ...integrators import METHODS, EmbeddedMuntheKaas, Method
from ...io.results import machine
from ...system import System
from ...system.kinematic_tree import Tree
from ...view.plots import figure, label
from ..runs import Progress
from . import (
    babyboot,
    bricard,
    four_bars,
    free_bodies,
    governor,
    heavy_top,
    pendulum,
    rolling_disk,
    slider_crank,
    squeezer,
)
from .problem import Problem

PROBLEMS: tuple[Callable[[], Problem], ...] = (
    heavy_top.heavy_top,
    pendulum.pendulum,
    four_bars.four_bars,
    squeezer.squeezer,
    bricard.bricard,
    governor.governor,
    slider_crank.slider_crank,
    rolling_disk.rolling_disk,
    babyboot.babyboot,
    free_bodies.symmetric_body,
    free_bodies.asymmetric_body,
)

NAMES = ("RKMK4", "DormandPrince54", "GaussLegendre6", "GeneralizedAlpha", "BDF2", "Rattle")
"""The methods to be compared, where they apply."""

TOLERANCES = (1e-6, 1e-9, 1e-12)
"""Of the methods that choose their own steps; the others double theirs."""

LONGEST = 2.0
"""In s: steps are doubled until the target is reached with a margin, or a run would take longer."""

KEPT = ("position constraints", "velocity constraints", "energy [J]")
"""What a motion keeps: its largest change or violation is compared with zero."""

SAVED = 64
"""States of each run at which constraints and energy are looked at."""


class Run(NamedTuple):
    """A motion in `steps` over `time` s: q (m, nq) and v (m, nv) on the way, whether every step was
    solved, and how long the computation took in s, without compilation."""

    steps: int
    time: float
    q: jax.Array
    v: jax.Array
    solved: bool
    seconds: float


class March(NamedTuple):
    """The compiled time loop of one problem and method, for any number of steps and any time."""

    problem: Problem
    method: Method
    compiled: Callable[..., Any]

    def __call__(self, steps: int, time_: float | None = None) -> Run:
        """The motion up to time_ in s, that of the problem if not given; in multiples of `SAVED`
        steps."""
        p, every = self.problem, max(steps // SAVED, 1)
        end = p.time if time_ is None else time_
        given = _arguments(p, end / (every * SAVED), every)
        begin = time.perf_counter()
        (q, v), solved = jax.block_until_ready(self.compiled(*given))
        seconds = time.perf_counter() - begin
        solved = bool(solved) and bool(jnp.all(jnp.isfinite(v)))
        return Run(every * SAVED, end, q, v, solved, seconds)


def march(problem: Problem, method: Method) -> March:
    """Compiles; ValueError for a method that does not apply to the problem."""
    formulation_of(method, problem.system)

    def run(tree, q, v, h, every, drive):
        formulation = formulated(tree, method, Projection())
        inputs = Inputs(None if drive is None else lambda t, q, v: drive)

        @native.kernel
        def stepped(t: jax.Array, inner: Any) -> tuple:
            return formulation.step(t, inner, h, inputs)

        def one(_: Any, state: tuple) -> tuple:
            step, inner, fine = state
            inner, solved = stepped(step.astype(h.dtype) * h, inner)
            return step + 1, inner, fine & solved

        def save(state: tuple, _: None) -> tuple:
            state = jax.lax.fori_loop(0, every, one, state)
            return state, formulation.read(state[1])

        first = formulation.init(jnp.zeros_like(h), q, v, h, inputs)
        start = jnp.zeros((), jnp.int32), first, jnp.asarray(True)
        (_, _, fine), (qs, vs) = jax.lax.scan(save, start, length=SAVED)
        return (jnp.concatenate((q[None], qs)), jnp.concatenate((v[None], vs))), fine

    return March(problem, method, jax.jit(run).lower(*_arguments(problem, 1.0, 1)).compile())


def _arguments(p: Problem, h: float, every: int) -> tuple:
    h_and_every = jnp.asarray(h, p.system.dtype), jnp.asarray(every, jnp.int32)
    return Tree.of(p.system), p.q, p.v, *h_and_every, p.drive


def applicable(problem: Problem) -> list[Method]:
    """The methods of `NAMES` that apply to the problem; those with tolerances once for each."""
    found: list[Method] = []
    for method in METHODS:
        if method.name not in NAMES:
            continue
        try:
            formulation_of(method, problem.system)
        except ValueError:
            continue
        if isinstance(method, EmbeddedMuntheKaas):
            finer = [{"rtol": r, "atol": r / 100, "substeps": 512} for r in TOLERANCES]
            found += [dataclasses.replace(method, **each) for each in finer]
        else:
            found.append(method)
    return found


def errors(problem: Problem, run: Run) -> tuple[np.ndarray, np.ndarray]:
    """The quantities at the end of a run (k,), and their errors relative to the scales (k,)."""
    computed = np.asarray(problem.measured(run.q[-1], run.v[-1]), float)
    values = np.array([x.value for x in problem.quantities])
    scales = np.array([x.scale for x in problem.quantities])
    return computed, np.abs(computed - values) / scales


def ladder(march: March) -> Iterator[Run]:
    """Runs of ever more steps, at least three, or the one of a method that chooses its own."""
    p = march.problem
    if isinstance(march.method, EmbeddedMuntheKaas):
        yield march(SAVED)
        return
    steps, solved = p.steps, 0
    while True:
        run = march(steps)
        yield run
        solved += run.solved
        reached = run.solved and errors(p, run)[1].max() < p.target / 10
        if (reached and solved >= 3) or 2 * run.seconds > LONGEST:
            return
        steps *= 2


@jax.jit
def _kept(
    system: System, q: jax.Array, v: jax.Array, drive: jax.Array | None
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The largest errors of positions and velocities in the constraints, and the energies (m,),
    less the work of the drive."""

    def at(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        here, rate = state
        kinetic, potential = energy(system, here, rate)
        total, zero = kinetic + potential, jnp.zeros(())
        if drive is not None:
            total = total - drive @ (here - q[0])
        if not system.constraints:
            return zero, zero, total
        kept = equations(Tree.of(system), here)
        g, broken = (jnp.max(jnp.abs(x), initial=0) for x in (kept.residual(), kept.rate(rate)))
        return g, broken, total

    position, velocity, total = jax.lax.map(at, (q, v))
    return position.max(), velocity.max(), total


def rows(problem: Problem, method: Method, run: Run, long: Run | None) -> list[dict[str, Any]]:
    """What a run reached: every quantity beside its reference, and what should be kept.

    Errors are relative to the scale of a quantity; those of what is kept are in SI units.
    """
    head = {"problem": problem.name, "method": method.name}
    tail = {"steps": _steps(method, run), "seconds": run.seconds}
    found = [
        {
            **head,
            "quantity": x.name,
            "computed": c,
            "reference": x.value,
            "error": e,
            "target": problem.target,
            **tail,
        }
        for x, c, e in zip(problem.quantities, *errors(problem, run), strict=True)
    ]
    whole = run if long is None else long
    given = problem.system, whole.q, whole.v, problem.drive
    position, velocity, total = (np.asarray(x) for x in _kept(*given))
    kept: dict[str, tuple[float, float | None]] = {}
    if problem.system.constraints:
        kept[KEPT[0]], kept[KEPT[1]] = (float(position), 1e-10), (float(velocity), 1e-10)
    if problem.conserved:
        kept[KEPT[2]] = float(np.abs(total - total[0]).max()), problem.energy_target
    tail = {"steps": _steps(method, whole), "seconds": whole.seconds}
    return found + [
        {
            **head,
            "quantity": name,
            "computed": value,
            "reference": 0.0,
            "error": value,
            "target": target,
            **tail,
        }
        for name, (value, target) in kept.items()
    ]


def _steps(method: Method, run: Run) -> int | None:
    return None if isinstance(method, EmbeddedMuntheKaas) else run.steps


def compute(
    progress: Progress, problems: tuple[Callable[[], Problem], ...] = PROBLEMS
) -> tuple[dict[str, Any], Callable[[], dict[str, Figure]]]:
    """All problems with all methods; some minutes on two cores, most of them compilation.

    The dictionary has "rows" with "problem", "method", "quantity", "computed", "reference",
    "error", "target", "steps" (None where the method chose them) and "seconds" (without
    compilation) of the most accurate run of each method, and "convergence", a row for each run:
    "problem", "method", "tolerance" or None, "steps", "step" in s, "error", the largest of all
    quantities relative to their scales or None where the run failed, and "seconds".
    """
    built = [problem() for problem in problems]
    wanted = [(p, method) for p in built for method in applicable(p)]
    marches = []
    progress("compilation", 0, len(wanted))
    with ThreadPoolExecutor(2) as pool:
        for m in pool.map(lambda given: march(*given), wanted):
            marches.append(m)
            progress("compilation", len(marches), len(wanted))
    runs: dict[tuple[str, str], list[tuple[March, Run, float]]] = {}
    convergence = []
    for done, m in enumerate(marches):
        progress("runs", done, len(marches))
        for run in ladder(m):
            error = float(errors(m.problem, run)[1].max()) if run.solved else None
            convergence.append(
                {
                    "problem": m.problem.name,
                    "method": m.method.name,
                    "tolerance": getattr(m.method, "rtol", None),
                    "steps": _steps(m.method, run),
                    "step": None if _steps(m.method, run) is None else run.time / run.steps,
                    "error": error,
                    "seconds": run.seconds,
                }
            )
            if error is not None:
                key = m.problem.name, m.method.name
                runs.setdefault(key, []).append((m, run, error))
    table = []
    for done, found in enumerate(runs.values()):
        progress("figures of merit", done, len(runs))
        m, run, _ = min(found, key=lambda x: x[2])
        p, long = m.problem, None
        if p.energy_time is not None:
            long = m(round(run.steps * p.energy_time / p.time), p.energy_time)
        table += rows(p, m.method, run, long)
    progress("runs", len(marches), len(marches))
    progress("figures of merit", len(runs), len(runs))
    results = {"rows": table, "convergence": convergence, "machine": machine()}
    return results, lambda: {
        "error_over_time": curves(built, convergence, "seconds", "computing time [s]"),
        "error_over_step": curves(built, convergence, "step", "step [s]"),
    }


def curves(
    problems: list[Problem], convergence: list[dict[str, Any]], across: str, unit: str
) -> Figure:
    """The errors of all runs over one of their entries, a panel for each problem."""
    columns = min(4, len(problems))
    rows = -(-len(problems) // columns)
    canvas, axes = figure(rows, columns, (3.6 * columns + 1.2, 3.2 * rows))
    methods = list(dict.fromkeys(r["method"] for r in convergence if r[across]))
    for k, a in enumerate(axes.ravel()):
        if k >= len(problems):
            a.set_visible(False)
            continue
        p = problems[k]
        mine = [r for r in convergence if r["problem"] == p.name and r[across] and r["error"]]
        for method, marker in zip(methods, _MARKERS, strict=False):
            points = [(r[across], r["error"]) for r in mine if r["method"] == method]
            x, y = np.array(points).reshape(-1, 2).T
            a.loglog(x, y, marker=marker, label=method, markersize=4, linewidth=1.3)
        a.axhline(p.target, color="#5f6368", linestyle=":", linewidth=1.0, label="target")
        # Whole decades, the only ones with room for a label.
        exponents = np.log10([r[across] for r in mine] or [1.0])
        a.set_xlim(
            10.0 ** np.floor(exponents.min() - 0.05), 10.0 ** np.ceil(exponents.max() + 0.05)
        )
        a.xaxis.set_minor_formatter(NullFormatter())
        a.set_ylim(1e-15, 10)
        label(a, unit, "error" if k % columns == 0 else "", p.name, legend=k == columns - 1)
    return canvas


_MARKERS = "os^Dv<>"


def show(numbers: dict[str, Any], console: Console) -> None:
    """Prints a row for each problem and method."""
    table = Table(
        title="mechanisms", title_justify="left", box=None, pad_edge=False, padding=(0, 1, 0, 0)
    )
    for head in ("problem", "method"):
        table.add_column(head, no_wrap=True)
    for head in ("steps", "s", "error", "target", "g", "A v", "E [J]"):
        table.add_column(head, justify="right", no_wrap=True)
    pairs = dict.fromkeys((r["problem"], r["method"]) for r in numbers["rows"])
    for pair in pairs:
        mine = [r for r in numbers["rows"] if (r["problem"], r["method"]) == pair]
        kept = {r["quantity"]: r["error"] for r in mine if r["quantity"] in KEPT}
        known = [r for r in mine if r["quantity"] not in KEPT]
        worst = max(known, key=lambda r: r["error"])
        colour = "green" if worst["error"] < worst["target"] else "default"
        table.add_row(
            *pair,
            "own" if worst["steps"] is None else str(worst["steps"]),
            f"{worst['seconds']:.2f}",
            f"[{colour}]{worst['error']:.0e}[/]",
            f"{worst['target']:.0e}",
            *(f"{kept[k]:.0e}" if k in kept else "-" for k in KEPT),
        )
    console.print(table)
    console.print(
        "error: the largest of all quantities, relative to their scales, of the best run; g and "
        "A v: the constraints throughout, E: the energy; s: seconds without compilation.",
        highlight=False,
    )
