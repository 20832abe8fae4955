"""How fast can steps of an arm become on a GPU, by what one step has to compute and to hold?

    python experiments/gpu_bound.py --json gpu_bound.json

Counts the straight-line program of a semi-implicit Euler step, which on a GPU is the kernel's loop
(`difflie/native/blocks.py`): one thread for each environment, one instruction issued by 128 lanes
of each multiprocessor in each cycle. A multiplication and an addition may become one instruction,
which is not counted on; a division is taken for 10 instructions, and an elementary function for 30.
Nothing here is measured on a GPU; the limits are an H200's.

Result for the seven-joint arm in float32: 3914 operations a step, 4640 instructions with the
divisions and elementary functions. Were one issued in every cycle, that made 7.2e9 steps/s (1.7e10
by the 67 TFLOP/s of the data sheet, which take each for a multiplication and an addition), so that
1e9 steps/s need a seventh of the cycles. Memory does not matter: 112 bytes for each environment and
rollout. Registers do: 162 values are live at once in the order of the program, and 223 that belong
to the machine wait for every step, so that about 130 do not fit and are read again from the cache.
Tracing and lowering take 1 to 4 s, on a CPU; how long the GPU's compiler takes, and what it makes
of the program, is not known.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import tyro
from jax.interpreters import partial_eval as pe

import difflie as dl
from difflie.io.results import save_json
from difflie.native import blocks
from difflie.native.straight_line import Value

# NVIDIA's data sheets of the H200 SXM: multiprocessors, boost clock in Hz, memory in bytes/s.
MULTIPROCESSORS, CLOCK, MEMORY = 132, 1.98e9, 4.8e12
REGISTERS = 255  # for each thread, of 32 bits
CYCLES = {"divide": 10, "sine": 30, "cosine": 30, "tanh": 30, "exponential": 30, "log": 30}


@dataclass
class Options:
    """system: a URDF or MJCF file with few joints; steps of a rollout; json: a file."""

    system: Path = field(default=Path(dl.__file__).parent / "data" / "arm7.urdf")
    steps: int = 1000
    json: Path | None = None


def rollouts(steps: int) -> Any:
    def final(system: dl.System, q: Any, v: Any) -> Any:
        run = dl.simulate(
            *(system, q, v), dt=1e-3, steps=steps, save_every=steps, method="SemiImplicitEuler"
        )
        return run.q[-1], run.v[-1]

    return jax.vmap(final, (None, 0, 0))


def loop_in(jaxpr: Any) -> Any:
    """The operation that becomes a kernel."""
    for equation in jaxpr.eqns:
        if equation.primitive.name == "native_blocks":
            return equation
        for inner in blocks.nested(equation.params):
            found = loop_in(inner.jaxpr)
            if found is not None:
                return found
    return None


def figures(turn: blocks.Turn, steps: int) -> dict[str, Any]:
    """What a turn computes, holds and moves; what stays the same in all turns is kept apart."""
    instructions = turn.program.instructions
    changing: list[int] = []
    before: set[int] = set()
    last: dict[int, int] = {}
    for k in turn.instructions:
        name, operands, _ = instructions[k]
        used = {x.number for x in operands if isinstance(x, Value)}
        if operands[0] in turn.carried if name == "argument" else used & set(changing):
            changing.append(k)
            before |= used - set(changing)
            last |= dict.fromkeys(used & set(changing), k)
    carried = [x for entries in turn.carried.values() for x in entries.ravel()]
    ends = {x.number for x in carried if isinstance(x, Value)}
    live = {k for k in changing if instructions[k][0] == "argument"}
    most = len(live)
    computed = [k for k in changing if instructions[k][0] != "argument"]
    for k in computed:
        live.add(k)
        most = max(most, len(live))
        live -= {n for n, end in last.items() if end == k} - ends
    names = Counter(instructions[k][0] for k in computed)
    issued = sum(CYCLES.get(name, 1) * count for name, count in names.items())
    moved = 2 * 4 * len(carried)
    return {
        "operations": len(computed),
        "by name": dict(names.most_common()),
        "instructions": issued,
        "live values": most,
        "values from before the loop": len(before),
        "bytes for each environment": moved,
        "steps per s, by arithmetic": 128 * MULTIPROCESSORS * CLOCK / issued,
        "steps per s, by memory": steps * MEMORY / moved,
    }


def main(options: Options) -> None:
    system = dl.load(options.system).with_traversal("unrolled").astype(jnp.float32)
    q, v = jnp.zeros((256, system.nq), jnp.float32), jnp.zeros((256, system.nv), jnp.float32)
    begin = time.perf_counter()
    traced = jax.jit(rollouts(options.steps)).trace(system, q, v)
    traced.lower(lowering_platforms=("cuda",))
    elapsed = time.perf_counter() - begin
    jaxpr, _ = pe.dce_jaxpr(traced.jaxpr.jaxpr, [True] * len(traced.jaxpr.jaxpr.outvars))
    loop = loop_in(jaxpr)
    if loop is None:
        raise SystemExit(f"{options.system}: this machine is not unrolled")
    found = figures(blocks.turn_of(loop.params["jaxpr"]), options.steps)
    found["tracing and lowering, s"] = elapsed
    for name, value in found.items():
        print(f"{name:30}{value:.3g}" if isinstance(value, float) else f"{name:30}{value}")
    spilt = found["live values"] + found["values from before the loop"] - REGISTERS
    print(f"at least {max(0, spilt)} values do not fit into {REGISTERS} registers if all are kept")
    if options.json is not None:
        save_json(options.json, {"name": "gpu_bound", "figures": found})


if __name__ == "__main__":
    main(tyro.cli(Options))
