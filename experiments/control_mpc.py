"""Does an arm that plans anew all the time reach its goal, pushed, with an unknown payload?

50 times a second `Receding` plans 0.6 s ahead, with the payload of the file and two iterations.
The machine that is simulated carries 2 kg more, by RKMK4 at 2 ms, and is pushed at its elbow.

    python experiments/control_mpc.py --out mpc --json mpc.json

Result: the push hardly moves it, and it stays 28 mm below its goal, since nothing tells it of the
payload (19 s with compilation, 2.2 ms a sample on 1 CPU core).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import jax

jax.config.update("jax_enable_x64", True)

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import tyro

import difflie as dl
from difflie import control as dc
from difflie.cli.demo import START, arm
from difflie.io.results import machine, save_json
from difflie.view.figures import draw_lines, figure, label, save

RATE, STEP = 50.0, 2e-3
GOAL = jnp.array([0.35, 0.45, 0.45])


@dataclass
class Options:
    """seconds: of motion; extra: of the payload in kg; push: in N; out: a folder; json: a file."""

    seconds: float = 2.0
    extra: float = 2.0
    push: float = 40.0
    out: Path = Path("mpc")
    json: Path | None = None


def main(options: Options) -> None:
    system, start = arm(), jnp.asarray(START)
    torques = dc.Limits.of(system)
    reach = dc.Problem(
        system,
        start,
        jnp.zeros(7),
        dt=1 / RATE,
        steps=30,
        running=[dc.Point("payload", GOAL, 100.0), dc.Velocity(1.0), dc.Effort(1e-4)],
        final=[dc.Point("payload", GOAL, 100.0), dc.Velocity(1.0)],
        limits=dc.Limits(u_lower=torques.u_lower, u_upper=torques.u_upper),
    )
    mpc = dc.Receding(reach, dc.FDDP(iterations=2))
    parameters = dl.Parameters(system, ["payload/mass"])
    heavy = parameters.with_values(parameters.initial + options.extra)
    elbow = system.body_names.index("link4")

    def wrench(t: jax.Array, q: jax.Array, v: jax.Array) -> jax.Array:
        pushed = jnp.where((t > 1.0) & (t < 1.2), options.push, 0.0)
        return jnp.zeros((len(system.body_names), 6)).at[elbow, 4].set(pushed)

    began = time.perf_counter()
    run = dl.simulate(
        heavy,
        start,
        jnp.zeros(7),
        dt=STEP,
        steps=round(options.seconds / STEP),
        control=dl.Sampled(mpc, RATE),
        wrench=wrench,
    )
    jax.block_until_ready(run.q)
    seconds = time.perf_counter() - began
    hands = jax.vmap(lambda q: dl.body_poses(heavy, q)[-1, :3, 3])(run.q)
    away = np.asarray(jnp.linalg.norm(hands - GOAL, axis=1))
    memory = mpc.start(start, jnp.zeros(7))
    step = eqx.filter_jit(mpc.step)
    jax.block_until_ready(step(memory, start, jnp.zeros(7)))
    begin = time.perf_counter()
    for _ in range(20):
        jax.block_until_ready(step(memory, start, jnp.zeros(7)))
    sample = (time.perf_counter() - begin) / 20
    print(f"{run.result}; at the end {away[-1] * 1e3:.1f} mm from the goal")
    print(f"{seconds:.1f} s with compilation; {sample * 1e3:.2f} ms a sample")
    canvas, axes = figure(1, 2, (9.0, 3.2))
    draw_lines(axes[0, 0], np.asarray(run.t), away[:, None], ["hand"])
    axes[0, 0].axvspan(1.0, 1.2, alpha=0.15)
    label(axes[0, 0], "t [s]", "distance [m]", "Hand and goal; pushed in between", legend=False)
    draw_lines(axes[0, 1], np.asarray(run.t), np.asarray(run.u), system.actuator_names or [""] * 7)
    label(axes[0, 1], "t [s]", "torque [N m]", "Torques", legend=False)
    print(save(canvas, options.out / "mpc.png"))
    if options.json is not None:
        result = {"millimetres_at_end": away[-1] * 1e3, "milliseconds_a_sample": sample * 1e3}
        save_json(options.json, {"mpc": result, "seconds": seconds, "machine": machine()})


if __name__ == "__main__":
    main(tyro.cli(Options))
