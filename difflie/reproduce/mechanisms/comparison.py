"""Every problem with six methods, where they apply: what they reach, how many steps, how long."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from ... import native
from ...constraints import Projection
from ...constraints.equations import equations
from ...forces import energy
from ...formulations import Inputs, formulated, formulation_of
from ...integrators import METHODS, EmbeddedMuntheKaas, Method
from ...io.results import Results, machine
from ...system import System
from ...system.kinematic_tree import Tree
from ...view.figures import figure, label
from ...view.plots import draw_errors
from ...view.report import Checked, Section, Table, notes
from ..papers import Agreement, Computed, Progress, each, number
from .bodies import asymmetric_body, heavy_top, rolling_disk, symmetric_body
from .linkages import bricard, four_bars, governor, slider_crank, squeezer
from .pendulums import babyboot, pendulum
from .problem import Problem

# States of each run at which constraints and energy are looked at.
SAVED = 64


class Run(NamedTuple):
    """A motion in steps of h (s): how many there were, None for both where the method chose them.

    q (m, nq), v (m, nv): on the way. values (k,): of the quantities at the end; errors (k,): of
    these, relative to the scales; seconds: of the computation, without compilation. solved: whether
    every step was.
    """

    steps: int | None
    h: float | None
    q: jax.Array
    v: jax.Array
    values: np.ndarray
    errors: np.ndarray
    seconds: float
    solved: bool


def march(problem: Problem, method: Method) -> Callable[[int, float], Run]:
    """What makes a `Run` of so many steps, rounded to a multiple of `SAVED`, over a time in s."""
    p, own = problem, isinstance(method, EmbeddedMuntheKaas)

    def loop(tree: Tree, q: jax.Array, v: jax.Array, h: jax.Array, every: jax.Array, drive: Any):
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

    def arguments(h: float, every: int) -> tuple:
        counts = jnp.asarray(h, p.system.dtype), jnp.asarray(every, jnp.int32)
        return Tree.of(p.system), p.q, p.v, *counts, p.drive

    compiled = jax.jit(loop).lower(*arguments(1.0, 1)).compile()

    def run(steps: int, duration: float) -> Run:
        every = max(steps // SAVED, 1)
        h = duration / (every * SAVED)
        begin = time.perf_counter()
        (q, v), solved = jax.block_until_ready(compiled(*arguments(h, every)))
        seconds = time.perf_counter() - begin
        values = np.asarray(p.measured(q[-1], v[-1]), float)
        errors = np.abs(values - p.values) / p.scales
        solved = bool(solved) and bool(jnp.all(jnp.isfinite(v)))
        counts = (None, None) if own else (every * SAVED, h)
        return Run(*counts, q, v, values, errors, seconds, solved)

    return run


PROBLEMS: tuple[Callable[[], Problem], ...] = (
    *(heavy_top, pendulum, four_bars, squeezer, bricard, governor, slider_crank, rolling_disk),
    *(babyboot, symmetric_body, asymmetric_body),
)

# The methods to be compared, where they apply.
NAMES = ("RKMK4", "DormandPrince54", "GaussLegendre6", "GeneralizedAlpha", "BDF2", "Rattle")

# Of the methods that choose their own steps; the others double theirs.
TOLERANCES = (1e-6, 1e-9, 1e-12)

# In s: steps are doubled until the target is reached with a margin, or a run would take longer.
LONGEST = 2.0

# What a motion keeps: its largest change or violation is compared with zero.
KEPT = ("position constraints", "velocity constraints", "energy [J]")


def applicable(problem: Problem) -> list[Method]:
    """The methods of `NAMES` that apply to the problem; those with tolerances once for each."""
    methods: list[Method] = []
    for method in (m for m in METHODS if m.name in NAMES):
        try:
            formulation_of(method, problem.system)
        except ValueError:
            continue
        if isinstance(method, EmbeddedMuntheKaas):
            finer = [{"rtol": r, "atol": r / 100, "substeps": 512} for r in TOLERANCES]
            methods += [dataclasses.replace(method, **tolerances) for tolerances in finer]
        else:
            methods.append(method)
    return methods


def ladder(p: Problem, method: Method, run: Callable[[int, float], Run]) -> list[Run]:
    """Runs of ever more steps, at least three, or the one of a method that chooses its own."""
    if isinstance(method, EmbeddedMuntheKaas):
        return [run(SAVED, p.time)]
    runs = [run(p.steps, p.time)]
    while 2 * runs[-1].seconds <= LONGEST:
        reached = runs[-1].solved and runs[-1].errors.max() < p.target / 10
        if reached and sum(r.solved for r in runs) >= 3:
            break
        runs.append(run(p.steps << len(runs), p.time))
    return runs


@jax.jit
def kept(
    system: System, q: jax.Array, v: jax.Array, drive: jax.Array | float
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The largest errors of positions and velocities in the constraints, and the largest change of
    the energy less the work of the drive (nv,); q (m, nq), v (m, nv)."""

    def at(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, ...]:
        constrained = equations(Tree.of(system), state[0])
        broken = constrained.residual(), constrained.rate(state[1])
        total = sum(energy(system, *state)) - jnp.sum(drive * (state[0] - q[0]))
        return *(jnp.max(jnp.abs(x), initial=0) for x in broken), total

    position, velocity, total = jax.lax.map(at, (q, v))
    return position.max(), velocity.max(), jnp.abs(total - total[0]).max()


def rows(p: Problem, method: Method, run: Run, whole: Run) -> list[Reached]:
    """What a run reached: every quantity beside its reference, and what another should keep.

    Errors are relative to the scale of a quantity; those of what is kept are in SI units.
    """
    constrained = bool(p.system.constraints)
    changes = kept(p.system, whole.q, whole.v, 0.0 if p.drive is None else p.drive)
    keeps = zip(
        KEPT,
        map(float, changes),
        (1e-10, 1e-10, p.energy_target),
        (constrained, constrained, p.conserved),
        strict=True,
    )
    reached = [
        *(
            (run, name, computed, value, error, p.target)
            for (name, value), computed, error in zip(
                p.quantities.items(), run.values, run.errors, strict=True
            )
        ),
        *((whole, name, x, 0.0, x, target) for name, x, target, applies in keeps if applies),
    ]
    return [
        Reached(
            problem=p.name,
            method=method.name,
            quantity=name,
            computed=computed,
            reference=value,
            error=error,
            target=target,
            steps=of.steps,
            seconds=of.seconds,
        )
        for of, name, computed, value, error, target in reached
    ]


@dataclass(frozen=True, kw_only=True)
class Reached(Results):
    """A quantity as the most accurate run of a method gives it, beside its reference.

    error: relative to the scale of the quantity; of what is kept in SI units. target: None where
    none is set. steps: None where the method chose them. seconds: without compilation.
    """

    problem: str
    method: str
    quantity: str
    computed: float
    reference: float
    error: float
    target: float | None
    steps: int | None
    seconds: float

    @property
    def share(self) -> float:
        """The error as a part of the target; 0 where none is set."""
        return 0.0 if self.target is None else self.error / self.target


@dataclass(frozen=True, kw_only=True)
class RunRow(Results):
    """A run: its steps, of so many s, or its tolerance, and its error.

    error: the largest of all quantities, relative to their scales; None where the run failed.
    """

    problem: str
    method: str
    tolerance: float | None
    steps: int | None
    step: float | None
    error: float | None
    seconds: float


@dataclass(frozen=True, kw_only=True)
class MechanismsResults(Results):
    """What all methods reach on all problems, all their runs, and where they were computed."""

    name: str = "mechanisms"
    rows: list[Reached]
    convergence: list[RunRow]
    machine: dict[str, str]


def compute(progress: Progress, problems: tuple[Callable[[], Problem], ...] = PROBLEMS) -> Computed:
    """All problems with all methods; some minutes on two cores, most of them compilation."""
    built = [problem() for problem in problems]
    pairs = [(p, method) for p in built for method in applicable(p)]
    marches = each(progress, "compilation", lambda pair: march(*pair), pairs)
    ladders = each(
        progress, "runs", lambda k: ladder(*pairs[k], marches[k]), range(len(pairs)), workers=1
    )
    best: dict[tuple[str, str], tuple] = {}
    for pair, run, runs in zip(pairs, marches, ladders, strict=True):
        for r in (r for r in runs if r.solved):
            key = pair[0].name, pair[1].name
            reached = (*pair, run, r)
            best[key] = min(best.get(key, reached), reached, key=lambda x: x[-1].errors.max())
    convergence = [
        RunRow(
            problem=p.name,
            method=method.name,
            tolerance=getattr(method, "rtol", None),
            steps=r.steps,
            step=r.h,
            error=float(r.errors.max()) if r.solved else None,
            seconds=r.seconds,
        )
        for (p, method), runs in zip(pairs, ladders, strict=True)
        for r in runs
    ]

    def of_best(chosen: tuple) -> list[Reached]:
        p, method, run, r = chosen
        factor = (p.energy_time or p.time) / p.time
        whole = r if factor == 1 else run(round((r.steps or SAVED) * factor), p.energy_time)
        return rows(p, method, r, whole)

    tables = each(progress, "figures of merit", of_best, best.values(), workers=1)
    results = MechanismsResults(
        rows=[row for table in tables for row in table],
        convergence=convergence,
        machine=machine(),
    )
    return results, lambda: {
        "error_over_time": curves(built, convergence, "seconds", "computing time [s]"),
        "error_over_step": curves(built, convergence, "step", "step [s]"),
    }


def curves(problems: list[Problem], convergence: list[RunRow], across: str, unit: str) -> Figure:
    """The errors of all runs over one of their fields, a panel for each problem."""
    columns = min(4, len(problems))
    panels = -(-len(problems) // columns)
    canvas, axes = figure(panels, columns, (3.6 * columns + 1.2, 3.2 * panels))
    for a in axes.ravel()[len(problems) :]:
        a.set_visible(False)
    known = [r for r in convergence if getattr(r, across)]
    methods = dict.fromkeys(r.method for r in known)
    for k, (a, p) in enumerate(zip(axes.ravel(), problems, strict=False)):
        of_problem = [r for r in known if r.problem == p.name and r.error]
        for method, marker in zip(methods, "os^Dv<>", strict=False):
            runs = [r for r in of_problem if r.method == method]
            x, y = ([getattr(r, key) for r in runs] for key in (across, "error"))
            draw_errors(a, x, y, method, marker=marker, markersize=4)
        a.axhline(p.target, color="#5f6368", linestyle=":", linewidth=1.0, label="target")
        # Whole decades, the only ones with room for a label.
        exponents = np.log10([getattr(r, across) for r in of_problem] or [1.0])
        first, last = np.floor(exponents.min() - 0.05), np.ceil(exponents.max() + 0.05)
        a.set(xlim=(10.0**first, 10.0**last), ylim=(1e-15, 10))
        a.xaxis.set_minor_formatter(NullFormatter())
        label(a, unit, "error" if k % columns == 0 else "", p.name, legend=k == columns - 1)
    return canvas


def agreements(results: MechanismsResults) -> list[Agreement]:
    """The quantities of each problem that at least one method reaches within its target."""
    least: dict[str, dict[str, float]] = {}
    for r in (r for r in results.rows if r.quantity not in KEPT):
        of_problem = least.setdefault(r.problem, {})
        of_problem[r.quantity] = min(of_problem.get(r.quantity, r.share), r.share)
    rule = "within the target, by one method or more"
    return [
        Agreement(problem, sum(x < 1 for x in shares.values()), len(shares), rule)
        for problem, shares in least.items()
    ]


def sections(results: MechanismsResults) -> list[Section]:
    """A row for each problem and method."""
    lines = []
    for pair in dict.fromkeys((r.problem, r.method) for r in results.rows):
        of_pair = [r for r in results.rows if (r.problem, r.method) == pair]
        keeps = {r.quantity: r.error for r in of_pair if r.quantity in KEPT}
        worst = max((r for r in of_pair if r.quantity not in KEPT), key=lambda r: r.error)
        lines.append(
            (
                *pair,
                "own" if worst.steps is None else str(worst.steps),
                number(worst.seconds, ".2f"),
                Checked(number(worst.error, ".0e"), agrees=worst.share < 1 or None),
                number(worst.target, ".0e"),
                *(number(keeps.get(name), ".0e") for name in KEPT),
            )
        )
    head = "problem", "method", "steps", "s", "error", "target", "g", "A v", "E [J]"
    said = notes(
        "error: the largest of all quantities, relative to their scales, of the best run; g and A "
        "v: the constraints throughout, E: the energy; s: seconds without compilation."
    )
    return [Section("mechanisms", [Table(head, lines, names=2), *said])]
