"""What does a gradient cost over the plain simulation, in time and in memory, with each adjoint?

    python experiments/bench_gradients.py --json bench_gradients.json
    python experiments/bench_gradients.py --steps 100 1000 --methods SemiImplicitEuler

The 7-joint arm of `bench_dynamics.py`, in double precision: value and gradient of a function of the
last state with respect to the system and the state at the start; for `Forward` along one direction.
Times are the best of several runs, results waited for; compilation is apart. Memory is what the
compiled program allocates for its temporaries. MuJoCo's step of the same arm runs along.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# The options of XLA, which that file chooses, come before jax.
from bench_dynamics import best, difflie_model, time_mujoco  # isort: split

import jax
import jax.numpy as jnp
import tyro

import difflie as dl
from difflie.integrators import by_name
from difflie.io.results import machine, save_json

# Seconds; in longer motions of the arm, which are chaotic, rounding errors grow.
SPAN = 0.1
ADJOINTS: dict[str, dl.Adjoint] = {
    "direct": dl.Direct(),
    "checkpointed": dl.RecursiveCheckpoint(),
    "reversible": dl.Reversible(),
    "forward": dl.Forward(),
}


@dataclass
class Options:
    """methods: integrators; those that are not symmetric in time have no reversible adjoint."""

    steps: list[int] = field(default_factory=lambda: [10**2, 10**3, 10**4, 10**5])
    methods: list[str] = field(default_factory=lambda: ["SemiImplicitEuler", "StormerVerlet"])
    adjoints: list[str] = field(default_factory=lambda: [*ADJOINTS])
    json: Path | None = None


Row = dict[str, Any]


def measured(f: Callable, arguments: tuple, steps: int) -> Row:
    """Of a function whose first result is a number or a pytree of them."""
    begin = time.perf_counter()
    compiled = jax.jit(f).lower(*arguments).compile()
    compile_s = time.perf_counter() - begin
    value, *_ = jax.block_until_ready(compiled(*arguments))
    elapsed = best(lambda: jax.block_until_ready(compiled(*arguments)))
    return {
        "us_per_step": elapsed / steps * 1e6,
        "memory_kB": compiled.memory_analysis().temp_size_in_bytes / 1e3,
        "compile_s": compile_s,
        "value": float(value),
    }


def time_difflie(method: str, steps: int, adjoints: list[str]) -> Iterator[Row]:
    system = difflie_model("arm")
    start = system, jnp.linspace(-0.5, 0.5, 7), jnp.linspace(0.2, -0.2, 7)

    def loss(system: dl.System, q: Any, v: Any, adjoint: dl.Adjoint) -> Any:
        run = dl.simulate(
            *(system, q, v),
            dt=SPAN / steps,
            steps=steps,
            save_every=steps,
            method=method,
            adjoint=adjoint,
        )
        return jnp.sum(run.q[-1]) + jnp.sum(run.v[-1] ** 2)

    def simulation(*start: Any) -> tuple:
        return (loss(*start, dl.Direct()),)

    def derivative(adjoint: dl.Adjoint) -> Callable:
        def along_q(system: dl.System, q: Any, v: Any) -> tuple:
            return jax.jvp(lambda q: loss(system, q, v, adjoint), (q,), (v,))

        if isinstance(adjoint, dl.Forward):
            return along_q
        of_start = jax.value_and_grad(loss, argnums=(0, 1, 2), allow_int=True)
        return lambda *start: of_start(*start, adjoint)

    plain = measured(simulation, start, steps)
    yield {"method": method, "steps": steps, "adjoint": "none"} | plain | {"over_simulation": 1.0}
    for name in adjoints:
        if name == "reversible" and not by_name(method).time_symmetric:
            continue
        found = measured(derivative(ADJOINTS[name]), start, steps)
        over = {"over_simulation": found["us_per_step"] / plain["us_per_step"]}
        yield {"method": method, "steps": steps, "adjoint": name} | found | over


def main(options: Options) -> None:
    mujoco = next(time_mujoco("arm", [1]))["us_per_env"]
    print(f"{machine()}\na step of MuJoCo: {mujoco:.3g} us")
    rows: list[Row] = []
    for method in options.methods:
        for steps in options.steps:
            for row in time_difflie(method, steps, options.adjoints):
                rows.append(row)
                print(
                    "{method:18} {steps:7} {adjoint:13} {us_per_step:8.3g} us a step, "
                    "{over_simulation:5.3g} simulations  {memory_kB:9.4g} kB  "
                    "compile {compile_s:5.1f} s  value {value:.12g}".format(**row),
                    flush=True,
                )
                if options.json is not None:
                    figures = {"name": "bench_gradients", "machine": machine(), "rows": rows}
                    save_json(options.json, figures | {"mujoco_us_per_step": mujoco})


if __name__ == "__main__":
    main(tyro.cli(Options))
