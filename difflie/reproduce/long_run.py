"""What each integrator keeps over a million steps: one table and one figure to choose by.

Two machines run with every method of the package at the same step of 0.01 s, 10 000 s long: three
bodies that fly freely, on a spherical and a revolute joint, and a double pendulum in space with two
springs, one of them along a path over both bodies. Set side by side are

* the energy, relative to the largest kinetic energy of the run: the largest change, and the change
  of its mean from the first to the last tenth of the run, which shows a drift that a bounded
  oscillation hides;
* linear and angular momentum (free flight) or the angular momentum about the vertical (pendulum);
* the symplecticity defect |D^T J D - J| of the Jacobian D of one step in canonical coordinates;
* the manifold defect | |quaternion| - 1 |;
* and the time of a step, without compilation.

Sources: Hairer, Lubich and Wanner 2006; formulas and machines are the package's own.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

from ..dynamics import integrate, mass_matrix, mass_solve, momentum, total_mass
from ..forces import Spring, attach
from ..formulations import NaturalMotion
from ..integrators import METHODS, Method
from ..io.results import Results
from ..simulate import Trajectory, simulate
from ..system import Body, Free, Revolute, Spherical, System, chain
from ..view.figures import colours, figure, label
from ..view.plots import draw_errors
from ..view.report import Section, Table, notes
from .papers import Computed, Progress, cells, each

STEPS, STEP, SAVED = 1_000_000, 0.01, 1000


def free_flyer() -> tuple[System, jax.Array, jax.Array]:
    """Three bodies in weightlessness, q (12,) and v (10,), without linear momentum."""
    bodies = [
        Body(
            name=f"body{i}",
            joint=joint,
            position=(0.4 * (i > 0), 0, 0),
            mass=1.0 / (1 + i),
            com=(0.2, 0.05 * i, 0),
            inertia=np.diag([0.02, 0.03, 0.04]) / (1 + i),
        )
        for i, joint in enumerate((Free(), Spherical(), Revolute(axis=(0, 1, 1))))
    ]
    system = chain(bodies, name="free flyer", gravity=(0, 0, 0))
    q, v = system.neutral(), jnp.asarray([0.3, -0.5, 0.8, 0, 0, 0, 0.6, 0.2, -0.4, 0.7])
    return system, q, v.at[3:6].add(-momentum(system, q, v)[3:] / total_mass(system))


def spring_pendulum() -> tuple[System, jax.Array, jax.Array]:
    """A double pendulum on spherical joints with two springs, q (8,) and v (6,)."""
    bodies = [
        Body(
            name=f"link{i}",
            joint=Spherical(),
            position=(0, 0, -0.5 * i),
            mass=1.0,
            com=(0, 0, -0.25),
            inertia=np.diag([0.025, 0.025, 0.01]),
        )
        for i in range(2)
    ]
    # Both springs can be turned about the vertical, so that its angular momentum is kept.
    over_both = [(None, (0, 0, 0.1)), ("link0", (0.1, 0, -0.4)), ("link1", (0.1, 0, -0.4))]
    between = [("link0", (-0.1, 0, -0.1)), ("link1", (-0.1, 0, -0.3))]
    springs = Spring(over_both, 40.0, 0.5), Spring(between, 60.0, 0.4)
    system = attach(chain(bodies, name="spring pendulum"), *springs)
    q = integrate(system, system.neutral(), jnp.asarray([0.9, 0.2, 0.0, 0.5, -0.4, 0.1]))
    return system, q, jnp.asarray([0.3, -0.2, 0.9, 0.0, 0.4, 0.2])


MACHINES = {"free flyer": free_flyer, "spring pendulum": spring_pendulum}


@dataclass(frozen=True, kw_only=True)
class KeptRow(Results):
    """What a method keeps of a machine; see the head of this file.

    linear_momentum_drift: None for the pendulum. failed: the time in s at which the method failed,
    or None; what it keeps is then that up to this time.
    """

    machine: str
    method: str
    order: int
    energy_error: float
    energy_drift: float
    linear_momentum_drift: float | None
    angular_momentum_drift: float
    symplecticity_defect: float
    manifold_defect: float
    microseconds_per_step: float
    failed: float | None


@dataclass(frozen=True, kw_only=True)
class LongRunResults(Results):
    """A row for each machine and method, which made so many steps of dt in s."""

    name: str = "long-run"
    steps: int
    dt: float
    rows: list[KeptRow]


def compute(progress: Progress, steps: int = STEPS) -> Computed:
    """The table, a row for each machine and method; a quarter of an hour, most of it simulation.

    steps: a multiple of 1000.
    """
    machines = {name: machine() for name, machine in MACHINES.items()}
    pairs = [(name, method) for name in machines for method in METHODS]

    def run(pair: tuple[str, Method]) -> tuple[KeptRow, tuple[np.ndarray, np.ndarray]]:
        name, method = pair
        row, curve = measured(*machines[name], method, steps)
        return KeptRow(machine=name, method=method.name, order=method.order, **row), curve

    runs = each(progress, "methods", run, pairs, workers=1)
    rows = [row for row, _ in runs]
    results = LongRunResults(steps=steps, dt=STEP, rows=rows)
    return results, lambda: {"long_run": comparison(runs)}


def measured(
    system: System, q: jax.Array, v: jax.Array, method: Method, steps: int
) -> tuple[dict[str, Any], tuple[np.ndarray, np.ndarray]]:
    """What a method keeps, and the times (m,) in s and relative energy errors (m,) of its run."""

    how: dict[str, Any] = {"dt": STEP, "steps": steps, "save_every": steps // SAVED}
    run = jax.jit(lambda q, v: simulate(system, q, v, method=method, **how))
    compiled = run.lower(q, v).compile()
    begin = time.perf_counter()
    motion = jax.block_until_ready(compiled(q, v))
    duration = time.perf_counter() - begin
    failure = min(int(motion.result.nonfinite_step), int(motion.result.unsolved_step))
    kept = int(np.searchsorted(np.asarray(motion.t), (failure - 1) * STEP, side="right"))
    saved = motion.t, motion.q, motion.v, motion.states
    t, qs, vs, states = jax.tree.map(lambda a: a[:kept], saved)
    motion = Trajectory(t, qs, vs, motion.result, states)
    # A method that moves other variables keeps the energy of these.
    own = states if isinstance(states, NaturalMotion) else motion
    kinetic, potential = (np.asarray(e) for e in own.energy(system))
    energies = (kinetic + potential - kinetic[0] - potential[0]) / kinetic.max()
    momenta, tenth = np.asarray(own.momentum(system)), max(kept // 10, 1)
    changes, free = np.abs(momenta - momenta[0]), not np.any(np.asarray(system.gravity))
    row = {
        "energy_error": float(np.abs(energies).max()),
        "energy_drift": float(abs(energies[-tenth:].mean() - energies[:tenth].mean())),
        "linear_momentum_drift": float(changes[:, 3:].max()) if free else None,
        "angular_momentum_drift": float((changes[:, :3] if free else changes[:, 2]).max()),
        "symplecticity_defect": symplecticity_defect(system, q, v, method),
        "manifold_defect": float(np.asarray(motion.constraint_error(system)).max()),
        "microseconds_per_step": duration / steps * 1e6,
        "failed": failure * STEP if failure <= steps else None,
    }
    return row, (np.asarray(t), np.abs(energies))


def symplecticity_defect(system: System, q: jax.Array, v: jax.Array, method: Method) -> float:
    """max |D^T J D - J| for the Jacobian D of one step from (q (nq,), v (nv,)).

    D is that of (x, p_x) with q . exp(x) near the start and the end of the step and the momentum
    p_x conjugate to x: with the rate dx/dt = A(x) v, A = dexp_{-x}^-1, it is p_x = A^-T M v.
    """
    manifold, n, how = system.manifold, system.nv, {"dt": STEP, "steps": 1, "method": method}
    end = simulate(system, q, v, **how).q[-1]

    def rates(x: jax.Array) -> jax.Array:
        """A(x)."""
        return jax.vmap(lambda e: manifold.dexp_inv(x, e), out_axes=1)(jnp.eye(n, dtype=x.dtype))

    def step(z: jax.Array) -> jax.Array:
        x, p = jnp.split(z, 2)
        q0 = manifold.retract(q, x)
        run = simulate(system, q0, mass_solve(system, q0, rates(x).T @ p), **how)
        x, p = manifold.difference(end, run.q[-1]), mass_matrix(system, run.q[-1]) @ run.v[-1]
        return jnp.concatenate((x, jnp.linalg.solve(rates(x).T, p)))

    @jax.jit
    def columns(z: jax.Array) -> jax.Array:
        # One after the other: a batch of implicit steps takes minutes to compile.
        return jax.lax.map(lambda e: jax.jvp(step, (z,), (e,))[1], jnp.eye(2 * n))

    d = np.asarray(columns(jnp.concatenate((jnp.zeros(n), mass_matrix(system, q) @ v)))).T
    j = np.kron([[0, 1], [-1, 0]], np.eye(n))
    return float(np.abs(d.T @ j @ d - j).max())


def comparison(runs: list[tuple[KeptRow, tuple[np.ndarray, np.ndarray]]]) -> Figure:
    """Relative energy errors over time, a panel for each machine and each kind of method.

    runs: rows with the times (m,) and errors (m,) of `measured`. Drawn is the largest so far, whose
    curves do not hide each other. Methods of one family have one colour, methods of one order one
    line.
    """
    canvas, axes = figure(len(MACHINES), 2, (13.0, 8.0))
    for j, kind in enumerate(("methods that keep no invariant", "methods that keep an invariant")):
        # What methods of one family share is the module that defines them.
        families = {m.name: type(m).__module__ for m in METHODS if (m.name in _KEEPING) == bool(j)}
        names = list(dict.fromkeys(families.values()))
        palette = dict(zip(names, colours(len(names)), strict=True))
        for a, machine in zip(axes[:, j], MACHINES, strict=True):
            for row, (t, errors) in runs:
                if row.method in families:
                    style = {"linestyle": _LINES.get(row.order, "-"), "linewidth": 1.6}
                    colour = palette[families[row.method]]
                    # Those of the other machine alone are in the legend, which is of both.
                    here = row.machine == machine
                    named = row.method in a.get_legend_handles_labels()[1]
                    largest = np.maximum.accumulate(errors[1:])
                    if here or not named:
                        x, y = (t[1:], largest) if here else ([], [])
                        draw_errors(a, x, y, row.method, color=colour, **style)
            title = f"{machine.capitalize()}: {kind}"
            label(a, "t [s]", "largest |energy error| / max T", title, legend=a in axes[0])
    return canvas


_KEEPING = (
    *("SemiImplicitEuler", "StormerVerlet", "ImplicitMidpoint", "GaussLegendre4"),
    *("GaussLegendre6", "VariationalMidpoint", "EnergyMomentum", "Rattle"),
)

_LINES: dict[int, Any] = {
    1: (0, (1, 3)),
    2: (0, (1, 1)),
    3: (0, (4, 2)),
    4: "-",
    5: (0, (6, 2, 1, 2)),
    6: (0, (6, 1, 1, 1, 1, 1)),
    8: (0, (10, 2)),
}


def sections(results: LongRunResults) -> list[Section]:
    """A section for each machine."""
    heads = {
        "energy_error": "energy\nerror",
        "energy_drift": "energy\ndrift",
        "linear_momentum_drift": "linear\nmom.",
        "angular_momentum_drift": "angular\nmom.",
        "symplecticity_defect": "sym-\nplectic",
        "manifold_defect": "mani-\nfold",
        "microseconds_per_step": "us a\nstep",
    }
    formats = {"method": "", **dict.fromkeys(heads, ".1e"), "microseconds_per_step": ".3g"}
    tables = []
    for machine in MACHINES:
        lines = [cells(r, formats) for r in results.rows if r.machine == machine]
        title = f"{machine}: {results.steps} steps of {results.dt} s"
        tables.append(Section(title, [Table(("method", *heads.values()), lines)]))
    said = notes(
        *(
            f"{r.method} failed on the {r.machine} at t = {r.failed:.6g} s; its results are those "
            "before"
            for r in results.rows
            if r.failed is not None
        ),
        "Energies relative to the largest kinetic energy; momenta in N s and N m s.",
    )
    return [*tables, Section("What the numbers are", said)]
