"""What does a convex step of a quadruped on its feet cost, beside MuJoCo's step?

    python experiments/bench_convex_contact.py --json bench_convex_contact.json

The quadruped of configs/quadruped.xml stands under its servos, with steps of 4 ms, four spheres on
a plane. First call: CPU s in a fresh process, with empty caches. Then, in one process and in turn:
a step of one motion, a row and step of a batch of 1024 on all cores, value and gradient of 500
steps with respect to the state, per step; MuJoCo's `mj_step` and, for the batch, its `rollout` with
as many threads. The best times, in us. How far feet and trunk of the two stand apart, in m.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent.parent / "configs" / "quadruped.xml"
DT, STEPS, ROWS = 4e-3, 500, 1024


@dataclass
class Options:
    """json: a file; rounds: how often each figure is taken."""

    json: Path | None = None
    rounds: int = 7


def made() -> tuple[Any, Any, Callable[..., Any]]:
    """The system, its standing state, and a motion from q and v."""
    import jax
    import numpy as np

    import difflie as dl

    jax.config.update("jax_enable_x64", True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        system = dl.load(FILE, actuators=True, contacts=True)
    state = system.state("stand")

    def run(q: Any, v: Any) -> Any:
        return dl.simulate(
            *(system, q, v),
            dt=DT,
            steps=STEPS,
            save_every=STEPS,
            method="ConvexContact",
            control=np.asarray(state.command),
        )

    return system, state, run


def first() -> None:
    """Prints the CPU seconds of the first call in this process."""
    import jax
    import numpy as np

    system, state, run = made()
    begin = time.process_time()
    jax.block_until_ready(run(state.q, np.zeros(system.nv)).q)
    print(time.process_time() - begin)


def in_a_fresh_process() -> float:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", "import bench_convex_contact as b; b.first()"],
        cwd=Path(__file__).parent,
        env=os.environ | {"DIFFLIE_CACHE": "0"},
        check=True,
        capture_output=True,
        text=True,
    )
    return float(done.stdout)


def main(options: Options) -> None:
    first_call = in_a_fresh_process()

    import jax
    import jax.numpy as jnp
    import mujoco
    import mujoco.rollout
    import numpy as np

    from difflie.io.results import machine, save_json

    system, state, run = made()
    stand = run(state.q, np.zeros(system.nv))
    q, v = stand.q[-1], stand.v[-1]
    batch = jax.jit(jax.vmap(lambda q, v: run(q, v).q[-1]))
    slope = jax.jit(jax.value_and_grad(lambda q, v: jnp.sum(run(q, v).q[-1]), (0, 1)))
    many = jnp.tile(q, (ROWS, 1)), jnp.tile(v, (ROWS, 1))

    model = mujoco.MjModel.from_xml_path(str(FILE))
    model.opt.timestep = DT
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_step(model, data, nstep=STEPS)
    apart = float(abs(data.qpos[2] - q[6]))
    place = np.zeros(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS))
    mujoco.mj_getState(model, data, place, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    threads = len(os.sched_getaffinity(0))
    datas = [mujoco.MjData(model) for _ in range(threads)]
    command = np.tile(np.asarray(state.command), (ROWS, STEPS, 1))
    places = np.tile(place, (ROWS, 1))

    programs = {
        "step": (lambda: jax.block_until_ready(run(q, v).q), 1),
        "step, MuJoCo": (lambda: mujoco.mj_step(model, data, nstep=STEPS), 1),
        "row of a batch": (lambda: jax.block_until_ready(batch(*many)), ROWS),
        "row of a batch, MuJoCo": (
            lambda: mujoco.rollout.rollout(model, datas, places, command),
            ROWS,
        ),
        "gradient": (lambda: jax.block_until_ready(slope(q, v)), 1),
    }
    least = dict.fromkeys(programs, float("inf"))
    for _ in range(options.rounds):
        for what, (program, rows) in programs.items():
            begin = time.perf_counter()
            program()
            spent = (time.perf_counter() - begin) / STEPS / rows * 1e6
            least[what] = min(least[what], spent)
    figures = {"first_call_cpu_s": first_call, "apart_m": apart, "us": least}
    print(f"first call {first_call:.2f} CPU s; trunks {apart * 1e3:.2f} mm apart")
    for what, us in least.items():
        print(f"{what:24} {us:8.3f} us")
    if options.json is not None:
        save_json(
            options.json, {"name": "bench_convex_contact", "machine": machine(), "rows": figures}
        )


if __name__ == "__main__":
    import tyro

    main(tyro.cli(Options))
