"""Figures 5.1 to 5.8 and Tables 5.2 and 5.3 of Goetz 2024.

A. Goetz, "Structure preserving simulation for a manipulator with multiarticular elastic couplings",
master's thesis, TU Munich, 2024: how well an energy-stable integrator, a variational one and the
implicit midpoint rule keep the energy of a planar manipulator of three links, with and without
springs, and how fast they are.

What the thesis leaves open and its numbers decide:

* The start of the standard run: stretched out horizontally, at rest. It gives all the magnitudes
  that the thesis states.
* The fastening at the tip, r_4, which the third spring needs: as the others.
* "Variational integrator" is the one with the sine velocity of (4.31). The angle itself over the
  step is as easily had and some twenty times more accurate; both are computed here.

The 3-point Gauss rule is called a method of order 6 (section 5.2.3). That is the order of the
energy error; the state converges with order 2 whatever the rule. The constraint error, which the
thesis takes as a measure of symplecticity (section 5.1.2), is none: the energy-stable method keeps
the constraints and is not symplectic. The order plots of the variational and the reference method
leave their lines above dt = 0.01 s (section 5.2.2); with the equations of every step solved to
rounding they do not, up to steps that have no solution. Table 5.2 gives the reference model 47.20 s
for 50 s and 90.40 %; 47.20 s are 94.40 %.
"""

from __future__ import annotations

import abc
import functools
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich import box
from rich.console import Console
from rich.table import Table

from .. import native
from ..dynamics import planar_centres
from ..dynamics.planar_chain import PlanarChain
from ..dynamics.planar_springs import mono_articular, multi_articular
from ..groups import Euclidean
from ..integrators import RKMK8, ImplicitMidpoint, VectorField, single_step
from ..integrators.energy_stable import ConstrainedProblem, ConstrainedState, EnergyStable
from ..integrators.mean_gradients import DiscreteGradient, GaussMean
from ..integrators.variational_planar import (
    LagrangianMechanics,
    PhaseState,
    PlanarVariational,
    angle_rate,
    chord_rate,
)
from ..view.plots import draw_lines, figure, label
from .runs import Progress

STEP = 0.01
DURATION = 50.0
"""Of the standard run, in s."""

ORDER_STEPS = tuple(round(0.001 * k, 3) for k in range(1, 201))
ORDER_DURATION = 10.0
"""Of the order plots, in s: (5.7)."""

STATE_STEPS = (0.04, 0.02, 0.01, 0.005)
STATE_TIME = 2.0
"""At which step sizes and after which time, in s, the state is compared with the exact one."""

TIMED_RUNS = 10

SMALLEST_FITTED = 1e-11
"""Mean energy errors below, in J, are too near to rounding to show an order."""

CASES = {
    "gravity": "gravity alone",
    "mono": "mono-articular springs",
    "multi": "a multi-articular spring",
}

PRINTED: dict[tuple[str, str], dict[str, float]] = {
    ("gravity", "energy-stable midpoint"): {
        "max_energy_error": 1e-14,
        "max_constraint_error": 1e-14,
        "realtime_percent": 4.70,
    },
    ("gravity", "variational sine"): {
        "max_energy_error": 1e-3,
        "max_constraint_error": 1e-14,
        "energy_order": 2,
        "realtime_percent": 280.84,
    },
    ("gravity", "implicit midpoint"): {
        "max_energy_error": 1e-4,
        "energy_order": 2,
        "realtime_percent": 90.40,
    },
    ("mono", "energy-stable midpoint"): {
        "max_energy_error": 1e-5,
        "energy_order": 2,
        "realtime_percent": 6.72,
    },
    ("mono", "energy-stable 3-point Gauss"): {
        "max_energy_error": 1e-13,
        "energy_order": 6,
        "realtime_percent": 7.06,
    },
    ("mono", "variational sine"): {
        "max_energy_error": 1e-3,
        "energy_order": 2,
        "realtime_percent": 295.36,
    },
}
"""What the thesis states, by case and method; errors in powers of ten, in J and m^2."""

# Steps of one native call, with the values that it saves: small enough for one native program.
_ROWS = 1000


def three_links(case: str) -> PlanarChain:
    """The manipulator of Table 5.1 under gravity alone ("gravity"), or with mono-articular springs
    ("mono") or one multi-articular spring ("multi") in addition.
    """
    one = jnp.ones(3)
    fastening, slack = jnp.full(4, 0.4), jnp.full(3, 0.2)
    springs = {
        "gravity": None,
        "mono": mono_articular(fastening, slack, one),
        "multi": multi_articular(fastening, slack, jnp.ones(())),
    }
    com = jnp.stack((jnp.full(3, 0.5), jnp.zeros(3)), axis=1)
    return PlanarChain(one, com, one, one, jnp.ones(()), springs[case])


class Observation(NamedTuple):
    """phi (n,) in rad, energy () in J, constraint (n,): (5.1) in m^2, or (5.2) of the attitudes."""

    phi: jax.Array
    energy: jax.Array
    constraint: jax.Array


class Scheme(eqx.Module):
    """A method, and a chain in the variables that the method moves."""

    @abc.abstractmethod
    def start(self, chain: PlanarChain, phi: jax.Array, rate: jax.Array) -> Any:
        """The state at the joint angles phi (n,) in rad and velocities rate (n,) in rad/s."""

    @abc.abstractmethod
    def step(self, chain: PlanarChain, state: Any, h: jax.Array) -> tuple[Any, jax.Array]:
        """The state h (s) later, and whether the equations of the step were solved ()."""

    @abc.abstractmethod
    def observe(self, chain: PlanarChain, state: Any) -> Observation:
        """What the thesis looks at."""


class Centres(Scheme):
    """The energy-stable method, in the coordinates of the centres of mass."""

    method: EnergyStable

    def start(self, chain: PlanarChain, phi: jax.Array, rate: jax.Array) -> ConstrainedState:
        q = planar_centres.centres(chain, phi)
        v = planar_centres.centre_velocities(chain, phi, rate)
        return self.method.init(_problem(chain), 0.0, (q, v), 0.0)

    def step(self, chain: PlanarChain, state: ConstrainedState, h: jax.Array):
        return self.method.step(_problem(chain), 0.0, state, h)

    def observe(self, chain: PlanarChain, state: ConstrainedState) -> Observation:
        problem = _problem(chain)
        return Observation(
            planar_centres.angles(chain, state.q),
            problem.energy(state.q, state.v),
            problem.constraint(state.q),
        )


def _problem(chain: PlanarChain) -> ConstrainedProblem:
    return ConstrainedProblem(
        planar_centres.centre_mass(chain),
        native.kernel(functools.partial(planar_centres.length_constraint, chain)),
        native.kernel(functools.partial(planar_centres.centre_potential, chain)),
    )


class Phase(Scheme):
    """The variational method, in angles and momenta."""

    method: PlanarVariational

    def start(self, chain: PlanarChain, phi: jax.Array, rate: jax.Array) -> PhaseState:
        problem = LagrangianMechanics(chain.lagrangian)
        return self.method.init(problem, 0.0, (phi, rate), 0.0)

    def step(self, chain: PlanarChain, state: PhaseState, h: jax.Array):
        problem = LagrangianMechanics(native.kernel(chain.lagrangian))
        return self.method.step(problem, 0.0, state, h)

    def observe(self, chain: PlanarChain, state: PhaseState) -> Observation:
        rate = chain.rate(state.phi, state.p)
        return Observation(state.phi, chain.energy(state.phi, rate), _attitude_error(state.phi))


class Rates(Scheme):
    """The implicit midpoint rule, in angles and velocities: the thesis' reference."""

    method: ImplicitMidpoint

    def start(self, chain: PlanarChain, phi: jax.Array, rate: jax.Array) -> Any:
        y = jnp.concatenate((phi, rate))
        zero = jnp.zeros((), phi.dtype)
        return self.method.init(_equations(chain), zero, y, zero)

    def step(self, chain: PlanarChain, state: Any, h: jax.Array) -> tuple[Any, jax.Array]:
        return self.method.step(_equations(chain), jnp.zeros_like(h), state, h)

    def observe(self, chain: PlanarChain, state: Any) -> Observation:
        phi, rate = jnp.split(state.y, 2)
        return Observation(phi, chain.energy(phi, rate), _attitude_error(phi))


def _equations(chain: PlanarChain) -> VectorField:
    def field(t: jax.Array, y: jax.Array) -> jax.Array:
        phi, rate = jnp.split(y, 2)
        return jnp.concatenate((rate, chain.acceleration(phi, rate)))

    return VectorField(Euclidean(2 * chain.n_links), native.kernel(field))


def _attitude_error(phi: jax.Array) -> jax.Array:
    """(5.2): | |q_i| - 1 | of the attitudes q_i = (cos phi_i, sin phi_i)."""
    return jnp.abs(jnp.sqrt(jnp.cos(phi) ** 2 + jnp.sin(phi) ** 2) - 1)


SCHEMES: dict[str, Scheme] = {
    "energy-stable midpoint": Centres(EnergyStable(GaussMean(1))),
    "energy-stable 2-point Gauss": Centres(EnergyStable(GaussMean(2))),
    "energy-stable 3-point Gauss": Centres(EnergyStable(GaussMean(3))),
    "energy-stable Gonzalez": Centres(EnergyStable(DiscreteGradient())),
    "variational sine": Phase(PlanarVariational(chord_rate)),
    "variational exact angle": Phase(PlanarVariational(angle_rate)),
    "implicit midpoint": Rates(ImplicitMidpoint()),
}


class Run(NamedTuple):
    """A motion from the stretched position at rest, at m + 1 times.

    t (m + 1,) in s, phi (m + 1, n) in rad, energy_error (m + 1,) in J, (5.3), constraint (m + 1, n)
    as in `Observation`. It ends at the first step whose equations were not solved: unsolved is the
    time in s at which that step would have ended, None where there is none. seconds: the processor
    time of the steps, which other programs on the machine change little.
    """

    t: np.ndarray
    phi: np.ndarray
    energy_error: np.ndarray
    constraint: np.ndarray
    unsolved: float | None
    seconds: float


def run(scheme: Scheme, chain: PlanarChain, h: float, steps: int) -> Run:
    """The motion in steps of h (s)."""
    state, step = _start(scheme, chain), jnp.asarray(h, chain.length.dtype)
    parts, taken, solved = [], 0, True
    begin = time.process_time()
    while taken < steps and solved:
        left = jnp.asarray(min(_ROWS, steps - taken), jnp.int32)
        state, rows, n, solved = _march(scheme, chain, state, step, left)
        parts.append((rows, int(n), bool(solved)))
        taken += int(n)
    seconds = time.process_time() - begin
    seen = []
    for k, (rows, n, complete) in enumerate(parts):
        observed = _observe(scheme, chain, rows)
        # Row 0 is the last of the part before; the row of a step that was not solved is no state.
        seen.append([np.asarray(a)[min(k, 1) : n + complete] for a in observed])
    phi, energy, constraint = (np.concatenate(each) for each in zip(*seen, strict=True))
    t = h * np.arange(len(phi))
    unsolved = None if solved else h * taken
    return Run(t, phi, energy - energy[0], constraint, unsolved, seconds)


@eqx.filter_jit
def _start(scheme: Scheme, chain: PlanarChain) -> Any:
    at_rest = jnp.zeros_like(chain.length)
    return scheme.start(chain, at_rest, at_rest)


@eqx.filter_jit
def _march(
    scheme: Scheme, chain: PlanarChain, state: Any, h: jax.Array, steps: jax.Array
) -> tuple[Any, Any, jax.Array, jax.Array]:
    """The state after so many steps or the first unsolved one, the rows (_ROWS + 1, ...) of all
    states on the way, the number of steps, and whether all were solved.
    """
    one = native.kernel(scheme.step)

    def unfinished(carry: tuple) -> jax.Array:
        taken, _, _, solved = carry
        return (taken < steps) & solved

    def one_step(carry: tuple) -> tuple:
        taken, state, rows, _ = carry
        state, solved = one(chain, state, h)
        taken = taken + 1

        def put(rows: jax.Array, row: jax.Array) -> jax.Array:
            return jax.lax.dynamic_update_index_in_dim(rows, row, taken, 0)

        return taken, state, jax.tree.map(put, rows, state), solved

    rows = jax.tree.map(lambda a: jnp.broadcast_to(a, (_ROWS + 1, *a.shape)), state)
    start = jnp.zeros_like(steps), state, rows, jnp.asarray(True)
    taken, state, rows, solved = jax.lax.while_loop(unfinished, one_step, start)
    return state, rows, taken, solved


@eqx.filter_jit
def _observe(scheme: Scheme, chain: PlanarChain, rows: Any) -> Observation:
    return jax.vmap(lambda state: scheme.observe(chain, state))(rows)


@eqx.filter_jit
def exact_angles(chain: PlanarChain, t: float = STATE_TIME, steps: int = 400) -> jax.Array:
    """phi (n,) in rad at the time t (s), by a Runge-Kutta method of order 8 with small steps."""
    problem = _equations(chain)
    h = t / steps

    def step(y: jax.Array, _: None) -> tuple[jax.Array, None]:
        return single_step(RKMK8(), problem.manifold, problem.field, 0.0, y, h), None

    start = jnp.zeros(2 * chain.n_links, chain.length.dtype)
    return jax.lax.scan(step, start, length=steps)[0][: chain.n_links]


class Study(NamedTuple):
    """What is computed of one method in one case.

    long: the standard run. averages: the mean energy errors (5.5) in J, one for each of the order
    steps, not a number where a run ended early. state_errors (4,): in rad, for STATE_STEPS.
    """

    long: Run
    averages: np.ndarray
    state_errors: np.ndarray


def study(case: str, method: str, order_steps: tuple[float, ...] = ORDER_STEPS) -> Study:
    """The runs behind the figures for a case of CASES and a method of SCHEMES."""
    scheme, chain = SCHEMES[method], three_links(case)
    long = run(scheme, chain, STEP, round(DURATION / STEP))
    averages = []
    for h in order_steps:
        motion = run(scheme, chain, h, round(ORDER_DURATION / h))
        average = np.sum(np.abs(motion.energy_error)) / (len(motion.t) - 1 or 1)
        averages.append(average if motion.unsolved is None else np.nan)
    exact = np.asarray(exact_angles(chain))
    errors = []
    for h in STATE_STEPS:
        difference = run(scheme, chain, h, round(STATE_TIME / h)).phi[-1] - exact
        errors.append(np.max(np.abs(np.angle(np.exp(1j * difference)))))
    return Study(long, np.array(averages), np.array(errors))


def slope(h: np.ndarray, errors: np.ndarray) -> float:
    """The exponent k of errors ~ h^k, by least squares in the logarithms."""
    return float(np.polyfit(np.log(h), np.log(errors), 1)[0])


def energy_order(h: np.ndarray, averages: np.ndarray) -> float | None:
    """The exponent of the mean energy errors where they show one; None where they do not.

    h (k,): the step sizes in s, ascending; averages (k,): in J.
    """
    part = _showing_order(averages)
    return slope(h[part], averages[part]) if np.sum(part) >= 3 else None


def _showing_order(averages: np.ndarray) -> np.ndarray:
    """Which errors (k,) are above rounding, and of steps smaller than all with which a run ended
    early. A run of larger ones that does not end wanders: its steps find solutions far away.
    """
    return (averages > SMALLEST_FITTED) & ~np.maximum.accumulate(np.isnan(averages))


def seconds(case: str, method: str) -> float:
    """Processor time of the standard run in s, without compilation: the least of TIMED_RUNS."""
    scheme, chain, steps = SCHEMES[method], three_links(case), round(DURATION / STEP)
    return min(run(scheme, chain, STEP, steps).seconds for _ in range(TIMED_RUNS))


def compute(progress: Progress) -> tuple[dict[str, Any], Callable[[], dict[str, Figure]]]:
    """All rows, and the figures.

    A row holds the largest energy error in J and constraint error in m^2 (energy-stable) or of unit
    attitudes (the others) of the standard run, the orders of the mean energy error and of the
    angles, and the computing time in percent of the simulated one, without compilation.
    """
    pairs = [(case, method) for case in CASES for method in SCHEMES]
    studies: dict[tuple[str, str], Study] = {}
    progress("methods", 0, len(pairs))
    with ThreadPoolExecutor() as pool:
        for pair, found in zip(pairs, pool.map(lambda p: study(*p), pairs), strict=True):
            studies[pair] = found
            progress("methods", len(studies), len(pairs))
    rows = []
    for k, (case, method) in enumerate(pairs):
        rows.append(row(case, method, studies[case, method], seconds(case, method)))
        progress("timing", k + 1, len(pairs))
    results = {
        "rows": rows,
        "printed": [{"case": c, "method": m, **values} for (c, m), values in PRINTED.items()],
        "unsolved": [
            {"case": case, "method": method, "smallest_step": float(ORDER_STEPS[np.argmax(failed)])}
            for (case, method), s in studies.items()
            if (failed := np.isnan(s.averages)).any()
        ],
    }
    return results, lambda: figures(studies)


def row(case: str, method: str, s: Study, seconds: float) -> dict[str, Any]:
    """A row of the results; seconds: of the standard run."""
    return {
        "case": case,
        "method": method,
        "max_energy_error": float(np.max(np.abs(s.long.energy_error))),
        "max_constraint_error": float(np.max(np.abs(s.long.constraint))),
        "energy_order": energy_order(np.array(ORDER_STEPS), s.averages),
        "state_order": slope(np.array(STATE_STEPS), s.state_errors),
        "realtime_percent": 100 * seconds / DURATION,
    }


_COLUMNS = {
    "max_energy_error": ("energy\n[J]", "{:.1e}"),
    "max_constraint_error": ("con-\nstraint", "{:.1e}"),
    "energy_order": ("energy\norder", "{:.2f}"),
    "state_order": ("state\norder", "{:.2f}"),
    "realtime_percent": ("time\n[%]", "{:.2f}"),
}


def show(numbers: dict[str, Any], console: Console | None = None) -> None:
    """Prints what `reproduce` gives, the thesis' figures below."""
    console = console or Console()
    for case, title in CASES.items():
        table = Table(
            title=f"Three links, {title}: {DURATION:g} s in steps of {STEP:g} s",
            title_justify="left",
            box=box.SIMPLE_HEAD,
            pad_edge=False,
        )
        table.add_column("Method", no_wrap=True)
        for heading, _ in _COLUMNS.values():
            table.add_column(heading, justify="right", no_wrap=True)
        for r in (r for r in numbers["rows"] if r["case"] == case):
            printed = PRINTED.get((case, r["method"]), {})
            table.add_row(r["method"], *(_cell(r[key], printed.get(key), key) for key in _COLUMNS))
        console.print(table)
    lines = [
        "Below the numbers stand those of the thesis, of errors the powers of ten.",
        "Errors are the largest of the run; a dash: rounding, which has no order. Times (Tables "
        "5.2 and 5.3) are processor time in percent of simulated time, without compilation: the "
        f"shortest of {TIMED_RUNS} runs.",
        *(
            f"{r['method']}, {CASES[r['case']]}: from dt = {r['smallest_step']:g} s on there are "
            "steps that cannot be solved"
            for r in numbers["unsolved"]
        ),
    ]
    console.print("\n".join(lines), highlight=False, markup=False)


def _cell(computed: float | None, printed: float | None, key: str) -> str:
    text = "-" if computed is None else _COLUMNS[key][1].format(computed)
    if printed is None:
        return f"{text}\n"
    old = f"{printed:.0e}" if "error" in key else f"{printed:g}"
    return f"{text}\n[dim]{old}[/]"


def figures(studies: dict[tuple[str, str], Study]) -> dict[str, Figure]:
    """Figures 5.1 to 5.8 by file name, and one of all order plots."""
    stable, gauss = "energy-stable midpoint", "energy-stable 3-point Gauss"
    sine, midpoint = "variational sine", "implicit midpoint"
    gravity, mono = CASES["gravity"], CASES["mono"]
    return {
        "figure_5_1": _over_time(
            f"Constraint error, {gravity}", "gravity", (stable, sine), studies, _draw_constraint
        ),
        "figure_5_2": _over_time(
            f"Constraint error, {mono}", "mono", (stable, sine), studies, _draw_constraint
        ),
        "figure_5_3": _over_time(
            f"Energy error, {gravity}", "gravity", (stable, sine, midpoint), studies, _draw_energy
        ),
        "figure_5_4": _order_figure(
            f"Mean energy error in {ORDER_DURATION:g} s, {gravity}",
            [("gravity", sine), ("gravity", midpoint)],
            studies,
        ),
        "figure_5_5": _over_time(
            f"Energy error, {mono}", "mono", (stable, sine), studies, _draw_energy
        ),
        "figure_5_6": _over_time(f"Energy error, {mono}", "mono", (gauss,), studies, _draw_energy),
        "figure_5_7": _order_figure(
            f"Mean energy error in {ORDER_DURATION:g} s, {mono}",
            [("mono", stable), ("mono", sine)],
            studies,
        ),
        "figure_5_8": _order_figure(
            f"Mean energy error in {ORDER_DURATION:g} s, {mono}", [("mono", gauss)], studies
        ),
        "all_methods": _all_orders(studies),
    }


def _over_time(
    title: str,
    case: str,
    methods: tuple[str, ...],
    studies: dict[tuple[str, str], Study],
    draw: Callable[[Axes, Run, str], None],
) -> Figure:
    canvas, axes = figure(len(methods), 1, (8.0, 1.0 + 2.6 * len(methods)))
    canvas.suptitle(title)
    for a, method in zip(axes[:, 0], methods, strict=True):
        draw(a, studies[case, method].long, method)
        a.set_xlim(0, DURATION)
    canvas.align_ylabels()
    return canvas


def _draw_constraint(axes: Axes, motion: Run, method: str) -> None:
    names = [f"link {i + 1}" for i in range(motion.constraint.shape[1])]
    draw_lines(axes, motion.t, motion.constraint, names)
    unit = "length [m²]" if method.startswith("energy-stable") else "norm [-]"
    label(axes, "t [s]", f"error of {unit}", _capitalised(method))


def _draw_energy(axes: Axes, motion: Run, method: str) -> None:
    axes.plot(motion.t, motion.energy_error, linewidth=1.0)
    label(axes, "t [s]", "energy error [J]", _capitalised(method))


def _order_figure(
    title: str, pairs: list[tuple[str, str]], studies: dict[tuple[str, str], Study]
) -> Figure:
    canvas, axes = figure(1, len(pairs), (1.0 + 5.0 * len(pairs), 4.5))
    canvas.suptitle(title)
    h = np.array(ORDER_STEPS)
    for a, (case, method) in zip(axes[0], pairs, strict=True):
        averages = studies[case, method].averages
        a.loglog(h, averages, linewidth=1.5)
        part = _showing_order(averages)
        order = energy_order(h, averages)
        if order is not None:
            ends = h[part][[0, -1]]
            scale = np.exp(np.mean(np.log(averages[part]) - order * np.log(h[part])))
            a.loglog(ends, scale * ends**order, "--", label=f"slope {order:.2f}", linewidth=1.5)
        label(a, "dt [s]", "mean energy error [J]", _capitalised(method))
    return canvas


def _all_orders(studies: dict[tuple[str, str], Study]) -> Figure:
    canvas, axes = figure(1, len(CASES), (13.0, 5.0))
    last = len(CASES) - 1
    canvas.suptitle(f"Mean energy error in {ORDER_DURATION:g} s")
    for i, (case, title) in enumerate(CASES.items()):
        a = axes[0, i]
        for method in SCHEMES:
            a.loglog(ORDER_STEPS, studies[case, method].averages, label=method, linewidth=1.3)
        a.set_ylim(1e-16, 10)
        label(a, "dt [s]", "mean energy error [J]", _capitalised(title), legend=i == last)
    return canvas


def _capitalised(text: str) -> str:
    return text[0].upper() + text[1:]
