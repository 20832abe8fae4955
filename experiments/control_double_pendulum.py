"""Can a double pendulum with one motor swing up, and be held, although its parameters are wrong?

The machine is that of published_parameters_model_3.1.yml of DFKI's double pendulum, with 6 N m at
the elbow (acrobot) or at the shoulder (pendubot). The swing-up is planned (configs/control/
acrobot.toml and pendubot.toml) and replayed with the gains of the plan; then the gains of a second
plan, which stays upright, hold it. Both also act on machines whose masses, centres of mass and
inertias are off by 5 % with any signs. With the published file, --data FOLDER/dfki_double_pendulum,
the equations of motion are compared with it, too.

    python experiments/control_double_pendulum.py --out double_pendulum
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import tyro
from worked import Options, judged, problem, replayed, told

import difflie as dl
from difflie import control as dc

UP = jnp.array([jnp.pi, 0.0])


@dataclass
class PendulumOptions(Options):
    """machines: so many with wrong parameters; data: the folder of the published parameters."""

    machines: int = 8
    data: Path | None = None


def main(options: PendulumOptions) -> None:
    out = options.out or Path("double_pendulum")
    for name in ("acrobot", "pendubot"):
        planned, plan, figures = problem(name)
        figures |= judged(planned, plan, miss, 0.05)
        hold = held(planned)
        figures["held"] = [
            float(miss(*ends(planned, plan, hold, machine)))
            for machine in (planned.system, *wrong(planned.system, options.machines))
        ]
        figures["reached"] = figures["reached"] and max(figures["held"]) < 1e-2
        if options.data is not None:
            path = options.data / "published_parameters_model_3.1.yml"
            figures["difference_from_published"] = difference(planned.system, path)
        json = options.json and options.json.with_stem(f"{options.json.stem}_{name}")
        told(name, replace(options, out=out, json=json), planned, plan, figures)


def miss(q: Any, v: Any) -> Any:
    """The largest angle from upright in rad, or its rate in rad/s."""
    away = jnp.arctan2(jnp.sin(q - UP), jnp.cos(q - UP))
    return jnp.max(jnp.abs(jnp.concatenate((away, v))))


def held(planned: dc.Problem) -> tuple[dc.Problem, dc.Plan]:
    """The plan that stays upright for 3 s: its gains are those of a linear regulator."""
    weight = jnp.array([10.0, 10.0, 1.0, 1.0])
    stay = planned.replace(
        q0=UP,
        v0=jnp.zeros(2),
        steps=300,
        running=[dc.State(UP, weight), dc.Effort(1.0)],
        final=[dc.State(UP, 100 * weight)],
    )
    return stay, dc.solve(stay)


def ends(planned: dc.Problem, plan: dc.Plan, hold: tuple[dc.Problem, dc.Plan], machine: Any) -> Any:
    """The state (q, v) of a machine after the swing-up and three seconds upright."""
    up = replayed(planned, plan, system=machine)
    q = up.q[-1] - 2 * jnp.pi * jnp.round((up.q[-1] - UP) / (2 * jnp.pi))
    run = replayed(*hold, system=machine, start=(q, up.v[-1]))
    return run.q[-1], run.v[-1]


def wrong(system: dl.System, n: int) -> list[dl.System]:
    """n machines whose masses, centres of mass and inertias are off by 5 %, up or down."""
    signs = np.random.default_rng(0).choice((-0.05, 0.05), (n, 3, len(system.body_names)))
    bodies = system.bodies
    return [
        system.replace(
            mass=bodies.mass * (1 + mass),
            com=bodies.com * (1 + com[:, None]),
            inertia=bodies.inertia * (1 + inertia[:, None, None]),
        )
        for mass, com, inertia in signs
    ]


def difference(system: dl.System, path: Path) -> float:
    """The largest relative difference of M and gravity from those of the published numbers."""
    rows = (line.split(":") for line in path.read_text().splitlines() if line.strip())
    p = {name.strip(): float(value) for name, value in rows}
    worst = 0.0
    for q in np.random.default_rng(0).uniform(-3, 3, (5, 2)):
        c = p["m2"] * p["l1"] * p["r2"] * np.cos(q[1])
        low = p["I2"] + c
        M = [[p["I1"] + p["I2"] + p["m2"] * p["l1"] ** 2 + 2 * c, low], [low, p["I2"]]]
        lower = p["m2"] * p["g"] * p["r2"] * np.sin(q[0] + q[1])
        upper = (p["m1"] * p["r1"] + p["m2"] * p["l1"]) * p["g"] * np.sin(q[0])
        for ours, theirs in (
            (dl.mass_matrix(system, q), M),
            (dl.gravity_force(system, q), [upper + lower, lower]),
        ):
            worst = max(worst, float(np.abs(ours - np.array(theirs)).max() / np.abs(theirs).max()))
    return worst


if __name__ == "__main__":
    main(tyro.cli(PendulumOptions))
