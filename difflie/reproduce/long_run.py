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
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure
from rich import box
from rich.console import Console
from rich.table import Table

from ..dynamics import integrate, mass_matrix, mass_solve, momentum, total_mass
from ..forces import Spring, attach
from ..formulations import NaturalMotion
from ..integrators import METHODS, Method
from ..result import Trajectory
from ..simulate import simulate
from ..system import Body, Free, Revolute, Spherical, System, chain
from ..view.plots import colours, figure, label
from .runs import Progress

STEPS, STEP, SAVED = 1_000_000, 0.01, 1000


def free_flyer() -> tuple[System, jax.Array, jax.Array]:
    """Three bodies in weightlessness, q (12,) and v (10,), without linear momentum."""
    inertia = np.diag([0.02, 0.03, 0.04])
    joints = (Free(), Spherical(), Revolute(axis=(0, 1, 1)))
    system = chain(
        [
            Body(
                name=f"body{i}",
                joint=joint,
                position=(0.4 * (i > 0), 0, 0),
                mass=1.0 / (1 + i),
                com=(0.2, 0.05 * i, 0),
                inertia=inertia / (1 + i),
            )
            for i, joint in enumerate(joints)
        ],
        name="free flyer",
        gravity=(0, 0, 0),
    )
    q = system.neutral()
    v = jnp.asarray([0.3, -0.5, 0.8, 0, 0, 0, 0.6, 0.2, -0.4, 0.7])
    drift = momentum(system, q, v)[3:] / total_mass(system)
    return system, q, v.at[3:6].add(-drift)


def spring_pendulum() -> tuple[System, jax.Array, jax.Array]:
    """A double pendulum on spherical joints with two springs, q (8,) and v (6,)."""
    system = chain(
        [
            Body(
                name=f"link{i}",
                joint=Spherical(),
                position=(0, 0, -0.5 * i),
                mass=1.0,
                com=(0, 0, -0.25),
                inertia=np.diag([0.025, 0.025, 0.01]),
            )
            for i in range(2)
        ],
        name="spring pendulum",
    )
    # Both springs can be turned about the vertical, so that its angular momentum is kept.
    over_both = [(None, (0, 0, 0.1)), ("link0", (0.1, 0, -0.4)), ("link1", (0.1, 0, -0.4))]
    between = [("link0", (-0.1, 0, -0.1)), ("link1", (-0.1, 0, -0.3))]
    stiffness, rest_length = jnp.asarray([40.0, 60.0]), jnp.asarray([0.5, 0.4])
    springs = map(Spring, (over_both, between), stiffness, rest_length)
    system = attach(system, *springs)
    q = integrate(system, system.neutral(), jnp.asarray([0.9, 0.2, 0.0, 0.5, -0.4, 0.1]))
    return system, q, jnp.asarray([0.3, -0.2, 0.9, 0.0, 0.4, 0.2])


MACHINES = {"free flyer": free_flyer, "spring pendulum": spring_pendulum}


def compute(
    progress: Progress, steps: int = STEPS
) -> tuple[dict[str, Any], Callable[[], dict[str, Figure]]]:
    """The table, a row for each machine and method; a quarter of an hour, most of it simulation.

    steps: a multiple of 1000. The dictionary has "rows" with "machine", "method", "order",
    "energy_error", "energy_drift", "linear_momentum_drift" (None for the pendulum),
    "angular_momentum_drift", "symplecticity_defect", "manifold_defect", "microseconds_per_step",
    and "failed", the time in s at which a method failed, or None. The results of a failed method
    are those up to that time.
    """
    rows, curves = [], {}
    progress("methods", 0, len(MACHINES) * len(METHODS))
    for name, machine in MACHINES.items():
        system, q, v = machine()
        for method in METHODS:
            row, curve = measured(system, q, v, method, steps)
            rows.append({"machine": name, "method": method.name, "order": method.order, **row})
            curves[name, method.name] = curve
            progress("methods", len(rows), len(MACHINES) * len(METHODS))
    results = {"steps": steps, "dt": STEP, "rows": rows}
    return results, lambda: {"long_run": comparison(curves)}


def measured(
    system: System, q: jax.Array, v: jax.Array, method: Method, steps: int
) -> tuple[dict[str, Any], tuple[np.ndarray, np.ndarray]]:
    """What a method keeps, and the times (m,) in s and relative energy errors (m,) of its run."""

    @jax.jit
    def run(q: jax.Array, v: jax.Array) -> Trajectory:
        options: dict[str, Any] = {"dt": STEP, "steps": steps, "save_every": steps // SAVED}
        return simulate(system, q, v, method=method, **options)

    compiled = run.lower(q, v).compile()
    begin = time.perf_counter()
    motion = jax.block_until_ready(compiled(q, v))
    duration = time.perf_counter() - begin
    result = motion.result
    failure = min(int(result.nonfinite_step), int(result.unsolved_step))
    kept = int(np.searchsorted(np.asarray(motion.t), (failure - 1) * STEP, side="right"))
    t = motion.t[:kept]
    states = jax.tree.map(lambda a: a[:kept], motion.states)
    motion = Trajectory(t, motion.q[:kept], motion.v[:kept], result, states)
    # A method that moves other variables keeps the energy of these.
    own = states if isinstance(states, NaturalMotion) else motion
    kinetic, potential = (np.asarray(e) for e in own.energy(system))
    energies = (kinetic + potential - kinetic[0] - potential[0]) / kinetic.max()
    momenta = np.asarray(own.momentum(system))
    changes = np.abs(momenta - momenta[0])
    free = not np.any(np.asarray(system.gravity))
    tenth = max(kept // 10, 1)
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
    manifold, n = system.manifold, system.nv

    def rates(x: jax.Array) -> jax.Array:
        """A(x)."""
        return jax.vmap(lambda e: manifold.dexp_inv(x, e), out_axes=1)(jnp.eye(n, dtype=x.dtype))

    def step(z: jax.Array, q1: jax.Array) -> jax.Array:
        x, p = z[:n], z[n:]
        here = manifold.retract(q, x)
        run = simulate(
            system,
            here,
            mass_solve(system, here, rates(x).T @ p),
            dt=STEP,
            steps=1,
            method=method,
        )
        end, speed = run.q[-1], run.v[-1]
        x1 = manifold.difference(q1, end)
        return jnp.concatenate(
            (x1, jnp.linalg.solve(rates(x1).T, mass_matrix(system, end) @ speed))
        )

    start = jnp.concatenate((jnp.zeros(n), mass_matrix(system, q) @ v))
    q1 = simulate(system, q, v, dt=STEP, steps=1, method=method).q[-1]

    @jax.jit
    def columns(z: jax.Array) -> jax.Array:
        # One after the other: a batch of implicit steps takes minutes to compile.
        return jax.lax.map(lambda e: jax.jvp(lambda z: step(z, q1), (z,), (e,))[1], jnp.eye(2 * n))

    d = np.asarray(columns(start)).T
    j = np.block([[np.zeros((n, n)), np.eye(n)], [-np.eye(n), np.zeros((n, n))]])
    return float(np.abs(d.T @ j @ d - j).max())


def comparison(curves: dict[tuple[str, str], tuple[np.ndarray, np.ndarray]]) -> Figure:
    """Relative energy errors over time, a panel for each machine and each kind of method.

    Drawn is the largest so far, whose curves do not hide each other. Methods of one family have one
    colour, methods of one order one line.
    """
    kinds = {"methods that keep no invariant": False, "methods that keep an invariant": True}
    canvas, axes = figure(len(MACHINES), len(kinds), (13.0, 8.0))
    for j, (kind, keeping) in enumerate(kinds.items()):
        of_kind = [m for m in METHODS if (m.name in _KEEPING) == keeping]
        families = list(dict.fromkeys(_family(m) for m in of_kind))
        palette = dict(zip(families, colours(len(families)), strict=True))
        for i, machine in enumerate(MACHINES):
            a = axes[i, j]
            for method in of_kind:
                if (machine, method.name) not in curves:
                    continue
                t, errors = curves[machine, method.name]
                a.loglog(
                    t[1:],
                    np.maximum(np.maximum.accumulate(errors[1:]), 1e-17),
                    label=method.name,
                    color=palette[_family(method)],
                    linestyle=_LINES.get(method.order, "-"),
                    linewidth=1.6,
                )
            quantity = "largest |energy error| / max T"
            label(a, "t [s]", quantity, f"{machine.capitalize()}: {kind}", legend=i == 0)
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


def _family(method: Method) -> str:
    """What methods of one kind share: the module that defines them."""
    return type(method).__module__


def show(numbers: dict[str, Any], console: Console) -> None:
    """Prints a table for each machine."""
    heads = {
        "energy_error": "energy\nerror",
        "energy_drift": "energy\ndrift",
        "linear_momentum_drift": "linear\nmom.",
        "angular_momentum_drift": "angular\nmom.",
        "symplecticity_defect": "sym-\nplectic",
        "manifold_defect": "mani-\nfold",
        "microseconds_per_step": "us a\nstep",
    }
    for machine in MACHINES:
        title = f"{machine}: {numbers['steps']} steps of {numbers['dt']} s"
        table = Table(
            title=title,
            title_justify="left",
            box=box.SIMPLE_HEAD,
            pad_edge=False,
            padding=0,
        )
        table.add_column("method", no_wrap=True)
        for head in heads.values():
            table.add_column(head, justify="right", no_wrap=True)
        for row in numbers["rows"]:
            if row["machine"] == machine:
                table.add_row(row["method"], *(_cell(row, key) for key in heads))
        console.print(table)
    failures = [r for r in numbers["rows"] if r["failed"] is not None]
    for r in failures:
        console.print(
            f"{r['method']} failed on the {r['machine']} at t = {r['failed']:.6g} s; its figures "
            "are those before",
            highlight=False,
        )
    console.print(
        "Energies relative to the largest kinetic energy; momenta in N s and N m s.",
        highlight=False,
    )


def _cell(row: dict[str, Any], key: str) -> str:
    value = row[key]
    if value is None:
        return "-"
    return f"{value:.3g}" if key == "microseconds_per_step" else f"{value:.1e}"
