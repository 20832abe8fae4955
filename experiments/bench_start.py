"""How long does a new process take to its first number?

    python experiments/bench_start.py --json bench_start.json
    python experiments/bench_start.py --models arm --quantities gradient --processes 3

Wall seconds from a loaded machine to the end of the first call: tracing, compiling and 500 steps of
semi-implicit Euler, or their gradient with respect to every number of the machine and the state, or
a Hessian-vector product (forward over reverse) of 100 steps of RKMK4. Medians over fresh processes,
with the caches of difflie and jax empty and filled; importing and loading are apart.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

EULER = "SemiImplicitEuler"


@dataclass
class Options:
    """models: free, or of bench_dynamics.py; quantities: result, gradient, hessian; json: a file.

    processes: for each figure.
    """

    models: list[str] = field(default_factory=lambda: ["arm", "quadruped", "humanoid", "chain1000"])
    quantities: list[str] = field(default_factory=lambda: ["result", "gradient"])
    processes: int = 5
    json: Path | None = None


def first_number(model: str, quantity: str) -> None:
    """In a fresh process: prints the seconds of import, loading and the first call."""
    begin = time.perf_counter()
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp

    import difflie as dl

    imported = time.perf_counter()
    import bench_dynamics

    ready = time.perf_counter()
    if model == "free":
        body = dl.Body(name="body", joint=dl.Free(), mass=1.0, inertia=jnp.diag(jnp.arange(1.0, 4)))
        system = dl.chain([body])
    else:
        system = bench_dynamics.difflie_model(model)
    q, v = system.neutral(), jnp.full(system.nv, 0.1)
    jax.block_until_ready((system, q, v))
    loaded = time.perf_counter()

    def end(
        system: Any, q: Any, v: Any, steps: int = 500, method: str = "SemiImplicitEuler"
    ) -> Any:
        run = dl.simulate(system, q, v, dt=1e-4, steps=steps, save_every=steps, method=method)
        return jnp.sum(run.q[-1])

    def product(system: Any, q: Any, v: Any) -> Any:
        gradient = jax.grad(lambda v: end(system, q, v, 100, "RKMK4"))
        return jax.jvp(gradient, (v,), (v,))[1]

    calls = {
        "result": end,
        "gradient": jax.value_and_grad(end, (0, 1, 2), allow_int=True),
        "hessian": product,
    }
    jax.block_until_ready(jax.jit(calls[quantity])(system, q, v))
    print(imported - begin, loaded - ready, time.perf_counter() - loaded)


def times(model: str, quantity: str, caches: str) -> tuple[float, ...]:
    code = f"import bench_start; bench_start.first_number({model!r}, {quantity!r})"
    given = {
        "DIFFLIE_CACHE": f"{caches}/difflie",
        "DIFFLIE_TIERED": "1",
        "JAX_COMPILATION_CACHE_DIR": f"{caches}/jax",
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parent,
        env=os.environ | given,
        check=True,
        capture_output=True,
        text=True,
    )
    return tuple(map(float, done.stdout.split()))


def rows(models: list[str], quantities: list[str], processes: int) -> Iterator[dict[str, Any]]:
    """Medians over so many fresh processes each, and all first calls."""
    for model in models:
        for quantity in quantities:
            for caches in ("empty", "filled"):
                with tempfile.TemporaryDirectory() as shared:
                    if caches == "filled":
                        times(model, quantity, shared)
                    found = []
                    for k in range(processes):
                        own = shared if caches == "filled" else f"{shared}/{k}"
                        found.append(times(model, quantity, own))
                imports, loads, firsts = zip(*found, strict=True)
                yield {
                    "model": model,
                    "quantity": f"first {quantity}",
                    "caches": caches,
                    "import_s": statistics.median(imports),
                    "load_s": statistics.median(loads),
                    "first_s": statistics.median(firsts),
                    "all_s": list(firsts),
                }


LINE = "{model:10} {quantity:15} caches {caches:7} import {import_s:4.2f} load {load_s:4.2f}"


def main(options: Options) -> None:
    from difflie.io.results import machine, save_json

    done: list[dict[str, Any]] = []
    for row in rows(options.models, options.quantities, options.processes):
        done.append(row)
        print((LINE + " first {first_s:5.2f} s").format(**row), flush=True)
        if options.json is not None:
            save_json(options.json, {"name": "bench_start", "machine": machine(), "rows": done})


if __name__ == "__main__":
    import tyro

    main(tyro.cli(Options))
