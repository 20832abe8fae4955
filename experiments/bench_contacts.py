"""How long do a first call and a step take with shapes that touch, beside MuJoCo?

    python experiments/bench_contacts.py --json bench_contacts.json
    python experiments/bench_contacts.py --models quadruped --processes 3

Medians over fresh processes of CPU seconds of the first call of `simulate`, 500 steps of RKMK4 of
0.1 ms, with the caches of difflie and jax empty and filled; loading is apart. Then, in one process
and one after the other, the best time of a step from the state reached, and that of MuJoCo's
`mj_step` with the step of the model. quadruped: of configs/quadruped.xml, standing on a plane;
humanoid: of the package mujoco-mjx, which falls, with its feet on a plane; boxes: twenty that fall
on a plane and on each other, 210 pairs.

Result, one process each on 2 busy cores of an EPYC: first calls of 6.1 CPU s for the quadruped and
13 for the humanoid, with caches filled 2.1 and 0.4. Tracing and the writing of instructions take
half of that, LLVM and XLA a quarter. Steps of 35 and 29 us, MuJoCo's, which are 10 and 50 times as
long, 10 and 17. Twenty boxes have 120 degrees of freedom, more than are unrolled into one program,
so that XLA compiles them in 63 CPU s; their steps take 10 ms of a core.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

MODELS = "quadruped", "humanoid", "boxes"
DT, STEPS = 1e-4, 500


@dataclass
class Options:
    """models: quadruped, humanoid, boxes; json: a file. processes: for each figure."""

    models: list[str] = field(default_factory=lambda: list(MODELS))
    processes: int = 3
    json: Path | None = None


def boxes(count: int = 20) -> str:
    """MJCF of boxes of several sizes in five stacks that lean."""
    bodies = ""
    for k in range(count):
        column, row = k % 5, k // 5
        place = f"{0.3 * column + 0.03 * row} {0.02 * row} {0.08 + 0.125 * row}"
        size = f"{0.1 + 0.01 * (k % 3)} {0.08 + 0.01 * (k % 4)} 0.06"
        bodies += f'<body pos="{place}"><freejoint/><geom type="box" size="{size}"/></body>'
    return (
        '<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="5 5 1"/>'
        f"{bodies}</worldbody></mujoco>"
    )


def file_of(model: str) -> Path:
    if model == "quadruped":
        return Path(__file__).parent.parent / "configs" / "quadruped.xml"
    if model == "boxes":
        path = Path(tempfile.gettempdir()) / "bench_contacts_boxes.xml"
        path.write_text(boxes())
        return path
    files = metadata.files("mujoco-mjx") or []
    return next(Path(str(f.locate())) for f in files if f.match("humanoid/humanoid.xml"))


def call_of(model: str) -> tuple[Callable[[Any, Any], Any], Any, Any]:
    """The call to measure, and the state (q, v) where it begins."""
    import jax
    import numpy as np

    import difflie as dl

    jax.config.update("jax_enable_x64", True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        system = dl.load(file_of(model), actuators=model == "quadruped", contacts=True)
    q, command = system.neutral(), None
    if model == "quadruped":
        start = system.state("stand")
        q, command = start.q, start.command
    if model == "boxes":
        import mujoco

        # At zero coordinates all of them are in one place.
        theirs = mujoco.MjModel.from_xml_path(str(file_of(model)))
        q = dl.MujocoOrdering(system, theirs).from_q(theirs.qpos0)
    control = None if command is None else lambda t, q, v: command

    def call(q: Any, v: Any) -> Any:
        run = dl.simulate(
            *(system, q, v), dt=DT, steps=STEPS, save_every=STEPS, method="RKMK4", control=control
        )
        return jax.block_until_ready((run.q[-1], run.v[-1]))

    return call, q, np.zeros(system.nv)


def first(model: str) -> None:
    """In a fresh process: prints the CPU seconds of import and loading, and of the first call."""
    begin = time.process_time()
    call, q, v = call_of(model)
    loaded = time.process_time()
    call(q, v)
    print(loaded - begin, time.process_time() - loaded)


def firsts(model: str, caches: str) -> tuple[float, ...]:
    given = {
        "DIFFLIE_CACHE": f"{caches}/difflie",
        "JAX_COMPILATION_CACHE_DIR": f"{caches}/jax",
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    code = f"import bench_contacts; bench_contacts.first({model!r})"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=Path(__file__).parent,
        env=os.environ | given,
        check=True,
        capture_output=True,
        text=True,
    )
    return tuple(map(float, done.stdout.split()))


def best(run: Callable[[], Any], seconds: float = 1.0, least: int = 3) -> float:
    """The shortest time of a call in s, over `seconds` of calls."""
    times: list[float] = []
    while len(times) < least or sum(times) < seconds:
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return min(times)


def steps(model: str) -> dict[str, Any]:
    """Microseconds of a step here and in MuJoCo, each from where half a second leads it."""
    import mujoco

    call, q, v = call_of(model)
    for _ in range(round(0.5 / DT / STEPS)):
        q, v = call(q, v)
    ours = best(lambda: call(q, v)) / STEPS
    theirs_model = mujoco.MjModel.from_xml_path(str(file_of(model)))
    data = mujoco.MjData(theirs_model)
    if model == "quadruped":
        mujoco.mj_resetDataKeyframe(theirs_model, data, 0)
    dt = theirs_model.opt.timestep
    mujoco.mj_step(theirs_model, data, nstep=round(0.5 / dt))
    start = data.qpos.copy(), data.qvel.copy()

    def again() -> None:
        data.qpos[:], data.qvel[:] = start
        mujoco.mj_step(theirs_model, data, nstep=20)

    theirs = best(again) / 20
    return {
        "step_us": 1e6 * ours,
        "dt": DT,
        "mujoco_step_us": 1e6 * theirs,
        "mujoco_dt": dt,
        "mujoco_contacts": int(data.ncon),
        "seconds_a_second": ours / DT,
        "mujoco_seconds_a_second": theirs / dt,
    }


def rows(options: Options) -> Iterator[dict[str, Any]]:
    for model in options.models:
        row: dict[str, Any] = {"model": model}
        with tempfile.TemporaryDirectory() as shared:
            empty = [firsts(model, f"{shared}/{k}") for k in range(options.processes)]
            filled = [firsts(model, f"{shared}/0") for _ in range(options.processes)]
        for name, found in (("empty", empty), ("filled", filled)):
            loads, calls = zip(*found, strict=True)
            row[f"load_cpu_s_{name}"] = statistics.median(loads)
            row[f"first_cpu_s_{name}"] = statistics.median(calls)
        yield row | steps(model)


LINE = (
    "{model:10} first call {first_cpu_s_empty:5.2f} CPU s, caches filled {first_cpu_s_filled:4.2f}"
    ", loading {load_cpu_s_filled:4.2f}; step {step_us:6.1f} us of {dt:g} s, "
    "MuJoCo {mujoco_step_us:6.1f} us of {mujoco_dt:g} s"
)


def main(options: Options) -> None:
    from difflie.io.results import machine, save_json

    print(machine())
    done: list[dict[str, Any]] = []
    for row in rows(options):
        done.append(row)
        print(LINE.format(**row), flush=True)
        if options.json is not None:
            save_json(options.json, {"name": "bench_contacts", "machine": machine(), "rows": done})


if __name__ == "__main__":
    import tyro

    main(tyro.cli(Options))
