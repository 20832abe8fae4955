"""What do steps and gradients of large batches cost on a GPU, next to MuJoCo Warp and MuJoCo MJX?

    python experiments/bench_gpu.py --json bench_gpu.json
    python experiments/bench_gpu.py --models arm --batches 4096 --programs step

Semi-implicit Euler, which is MuJoCo's method too, RKMK4, and the gradient of the last state of
semi-implicit Euler with respect to the first: microseconds for a step of one environment, the best
of several runs, results waited for; compilation is apart, but what earlier runs left in the cache
is found there unless DIFFLIE_CACHE=0. The machines of `bench_dynamics.py`, from states at random.
The program ends where results are not finite. `error` is the largest difference between states of
single and of double precision after 100 steps, by the largest of these states. `kernels` counts the
calls of native code in a program; where it is 0, the ordinary way was measured. MuJoCo Warp and MJX
come last, where they are installed; MJX compiles for minutes.
"""

from __future__ import annotations

import importlib.util
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# The precision, which that file chooses, comes before arrays.
from bench_dynamics import (  # isort: split
    DT,
    ROBOTS,
    Row,
    best,
    difflie_model,
    mujoco_model,
    row,
    time_mjx,
)

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import tyro

import difflie as dl
from difflie.io.results import machine, save_json

PROGRAMS = {"step": "SemiImplicitEuler", "RKMK4": "RKMK4", "gradient": "SemiImplicitEuler"}
STEPS = 1000
# In bytes: a gradient keeps the states of all steps, so that of a large batch has fewer of them.
KEPT = 8e9


@dataclass
class Options:
    """models: of arm, quadruped, humanoid; programs: of step, RKMK4, gradient; json: a file."""

    models: list[str] = field(default_factory=lambda: [*ROBOTS])
    programs: list[str] = field(default_factory=lambda: [*PROGRAMS])
    batches: list[int] = field(default_factory=lambda: [2**12, 2**14, 2**16, 2**18, 2**20])
    json: Path | None = None


def motion(system: dl.System, program: str, steps: int) -> Callable[..., Any]:
    """The last states of a batch, or the gradient of a function of them."""

    def final(q: Any, v: Any) -> Any:
        run = dl.simulate(
            *(system, q, v), dt=DT, steps=steps, save_every=steps, method=PROGRAMS[program]
        )
        return run.q[-1], run.v[-1]

    def loss(q: Any, v: Any) -> Any:
        q, v = final(q, v)
        return jnp.sum(q) + jnp.sum(v**2)

    return jax.vmap(jax.grad(loss, (0, 1)) if program == "gradient" else final)


def steps_of(system: dl.System, program: str, batch: int) -> int:
    if program != "gradient":
        return STEPS
    state = batch * (system.nq + system.nv) * system.dtype.itemsize
    return int(np.clip(KEPT // state, 10, STEPS // 10))


def measured(f: Callable[..., Any], arguments: tuple, runs: int) -> Row:
    begin = time.perf_counter()
    lowered = jax.jit(f).lower(*arguments)
    compiled = lowered.compile()
    compile_s = time.perf_counter() - begin
    results = jax.block_until_ready(compiled(*arguments))
    if not all(bool(jnp.isfinite(x).all()) for x in results):
        raise SystemExit("bench_gpu: a result is not finite")
    elapsed = best(lambda: jax.block_until_ready(compiled(*arguments)))
    kernels = lowered.as_text().count("custom_call @difflie_")
    return {"us_per_env": elapsed / runs * 1e6, "compile_s": compile_s, "kernels": kernels}


def time_difflie(name: str, options: Options) -> Iterator[Row]:
    double = difflie_model(name)
    for batch in options.batches:
        random = np.random.default_rng(0)
        moved, rates = random.normal(size=(2, batch, double.nv))
        start = jax.vmap(lambda dq: dl.integrate(double, double.neutral(), dq))(moved)
        exact = None
        for precision, dtype in (("f64", jnp.float64), ("f32", jnp.float32)):
            system = double.astype(dtype)
            arguments = start.astype(dtype), jnp.asarray(rates, dtype)
            for program in options.programs:
                steps = steps_of(system, program, batch)
                about = row("difflie", name, system.nv, precision, batch, program)
                yield about | measured(motion(system, program, steps), arguments, steps * batch)
            soon = jnp.concatenate(jax.jit(motion(system, "step", 100))(*arguments), axis=1)
            if exact is None:
                exact = soon
            else:
                error = float(jnp.abs(soon - exact).max() / jnp.abs(exact).max())
                yield row("difflie", name, system.nv, precision, batch, "error") | {"error": error}


def time_warp(name: str, options: Options) -> Iterator[Row]:
    if importlib.util.find_spec("mujoco_warp") is None:
        return
    import mujoco_warp
    import warp

    model = mujoco_model(name)
    device_model = mujoco_warp.put_model(model)
    for batch in options.batches:
        begin = time.perf_counter()
        data = mujoco_warp.put_data(model, mujoco.MjData(model), nworld=batch)
        mujoco_warp.step(device_model, data)
        with warp.ScopedCapture() as capture:
            mujoco_warp.step(device_model, data)
        warp.synchronize()
        compile_s = time.perf_counter() - begin

        def run(graph: Any = capture.graph) -> None:
            for _ in range(100):
                warp.capture_launch(graph)
            warp.synchronize()

        about = row("mujoco_warp", name, model.nv, "f32", batch, "step")
        us = best(run) / (100 * batch) * 1e6
        yield about | {"us_per_env": us, "compile_s": compile_s, "kernels": 0}


def time_mjx_on_a_gpu(name: str, options: Options) -> Iterator[Row]:
    yield from ({"kernels": 0} | found for found in time_mjx(name, options.batches))


def driver() -> str:
    ask = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    return subprocess.run(ask, capture_output=True, text=True, check=True).stdout.split()[0]


def main(options: Options) -> None:
    if jax.default_backend() != "gpu":
        raise SystemExit(
            f"bench_gpu: jax has no GPU here, but a {jax.default_backend()}; run it on a machine "
            "with an NVIDIA GPU, with jax[cuda12] or jax[cuda13] installed"
        )
    about = machine() | {"driver": driver()}
    print(about)
    rows: list[Row] = []
    for time_library in (time_difflie, time_warp, time_mjx_on_a_gpu):
        for name in options.models:
            for found in time_library(name, options):
                rows.append(found)
                told = (f"{x:.4g}" if isinstance(x, float) else str(x) for x in found.values())
                print("  ".join(told), flush=True)
                if options.json is not None:
                    date = time.strftime("%Y-%m-%d")
                    results = {"name": "bench_gpu", "date": date, "machine": about, "rows": rows}
                    save_json(options.json, results)


if __name__ == "__main__":
    main(tyro.cli(Options))
