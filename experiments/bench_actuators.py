"""What do actuators cost beside generalised forces?

    python experiments/bench_actuators.py --json bench_actuators.json

The quadruped of bench_dynamics.py, twelve hinges on a free body, under constant controls: as
generalised forces, and with an actuator at each hinge: position servos, the same with a gear and
limits, with an activation that lags, at a fixed tendon of two hinges of a leg, and motors. Start is
tracing and compiling with no cache, in s of this process; a step is semi-implicit Euler, the
gradient of 500 steps with respect to every number. The best of interleaved runs, and the ratio to
generalised forces.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ["DIFFLIE_CACHE"] = os.environ["DIFFLIE_TIERED"] = "0"

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import tyro
from bench_dynamics import difflie_model

import difflie as dl
from difflie.io.results import machine, save_json


@dataclass
class Options:
    """json: a file; rounds: how often each row is timed; starts: how often each is compiled."""

    json: Path | None = None
    rounds: int = 7
    starts: int = 3


STEPS, CALLS = 500, 10
KP, KD = 30.0, 1.0
RANGES = {"command_range": (-2.0, 2.0), "force_range": (-40.0, 40.0)}


def geared(joint: str, **fields: Any) -> dict[str, Any]:
    return {"transmission": dl.JointTransmission(joint, 2.0), "name": f"{joint}_drive", **fields}


def actuated(robot: dl.System) -> dict[str, dl.System]:
    """The robot with actuators of each kind; without any its control is a generalised force."""
    hinges = robot.joint_names[1:]
    pairs = zip(hinges, (*hinges[1:], hinges[0]), strict=True)
    law = {"gain": (KP, 0.0, 0.0), "bias": (0.0, -KP, -KD)}
    kinds: dict[str, list[dl.Actuator]] = {
        "generalised forces": [],
        "motors": [dl.Drive(h) for h in hinges],
        "position servos": [dl.PositionServo(h, kp=KP, kd=KD) for h in hinges],
        "with gears and limits": [dl.GeneralActuator(**law, **RANGES, **geared(h)) for h in hinges],
        "with activations": [
            dl.ActivatedActuator(**law, **RANGES, **geared(h, time_constant=0.05)) for h in hinges
        ],
        "at fixed tendons": [
            dl.GeneralActuator(
                **law, transmission=dl.FixedTendon(pair, (1.0, 0.5)), name=f"{pair[0]}_tendon"
            )
            for pair in pairs
        ],
    }
    return {what: dl.attach(robot, *own) for what, own in kinds.items()}


def programs(system: dl.System) -> dict[str, Callable[..., Any]]:
    def end(system: dl.System, v: jax.Array, u: jax.Array) -> jax.Array:
        run = dl.simulate(
            *(system, system.neutral(), v),
            control=u,
            dt=1e-4,
            steps=STEPS,
            save_every=STEPS,
            method="SemiImplicitEuler",
        )
        return jnp.sum(run.q[-1])

    return {"step": end, "gradient": jax.value_and_grad(end, (0, 1, 2), allow_int=True)}


def compiled(program: Callable[..., Any], given: tuple, starts: int) -> tuple[Any, float]:
    """The compiled program, and the least time in s to trace and compile it."""
    made, least = None, float("inf")
    for _ in range(starts):
        jax.clear_caches()
        begin = time.perf_counter()
        made = jax.jit(program).lower(*given).compile()
        least = min(least, time.perf_counter() - begin)
    return made, least


def main(options: Options) -> None:
    machines, rows = actuated(difflie_model("quadruped")), []
    for quantity in ("step", "gradient"):
        made, given, least = {}, {}, dict.fromkeys(machines, float("inf"))
        for what, system in machines.items():
            given[what] = system, jnp.full(system.nv, 0.1), jnp.full(system.nu, 0.1)
            made[what] = compiled(programs(system)[quantity], given[what], options.starts)
        for _ in range(options.rounds):
            for what, (program, _) in made.items():
                begin = time.perf_counter()
                for _ in range(CALLS):
                    jax.block_until_ready(program(*given[what]))
                spent = (time.perf_counter() - begin) / CALLS / STEPS * 1e6
                least[what] = min(least[what], spent)
        first = "generalised forces"
        for what, (_, start) in made.items():
            row = {
                "what": what,
                "quantity": quantity,
                "us": least[what],
                "ratio": least[what] / least[first],
                "start_s": start,
                "start_ratio": start / made[first][1],
            }
            rows.append(row)
            print(
                f"{quantity:9} {what:22} {row['us']:7.3f} us ({row['ratio']:4.2f})   "
                f"start {start:5.2f} s ({row['start_ratio']:4.2f})",
                flush=True,
            )
    if options.json is not None:
        save_json(options.json, {"name": "bench_actuators", "machine": machine(), "rows": rows})


if __name__ == "__main__":
    main(tyro.cli(Options))
