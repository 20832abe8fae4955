"""What does a control cost that is a neural network, next to a loop written by hand?

    python experiments/bench_policy.py --json bench_policy.json
    python experiments/bench_policy.py --widths 128 --methods RKMK4 --batches 64

The 7-joint arm under a policy of two hidden layers (tanh) that reads q and v: value, and value and
gradient with respect to all weights, of the mean square of q and v over time, summed over a batch.
The peer is `jax.lax.scan` over `jax.vmap` of the public function `dl.step` with the same policy,
which it holds over a step; methods of several stages ask the policy in each of them in `simulate`.
Times are the best of several runs, results waited for; compilation is apart, in seconds of the
processor. Memory is what the compiled program allocates for its temporaries.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# The options of XLA, which that file chooses, come before jax.
from bench_dynamics import best, difflie_model  # isort: split

import jax
import jax.numpy as jnp
import tyro

import difflie as dl
from difflie.io.results import machine, save_json

DT = 1e-3
Row = dict[str, Any]


@dataclass
class Options:
    """widths: of the hidden layers; batches: environments, 0 for one without `jax.vmap`."""

    widths: list[int] = field(default_factory=lambda: [8, 32, 128])
    batches: list[int] = field(default_factory=lambda: [0, 64, 1024])
    methods: list[str] = field(default_factory=lambda: ["SemiImplicitEuler", "RKMK4"])
    precisions: list[int] = field(default_factory=lambda: [64])
    steps: int = 100
    json: Path | None = None


def policy(layers: list[Any], q: Any, v: Any) -> Any:
    """The torques (nv,) in N m."""
    x = jnp.concatenate((q, v))
    for weights, bias in layers[:-1]:
        x = jnp.tanh(weights @ x + bias)
    weights, bias = layers[-1]
    return weights @ x + bias


def layers_of(sizes: list[int], dtype: Any) -> list[Any]:
    keys = jax.random.split(jax.random.key(0), len(sizes) - 1)
    pairs = zip(keys, sizes[:-1], sizes[1:], strict=True)
    return [
        (jax.random.normal(k, (m, n), dtype) / n**0.5, jnp.zeros(m, dtype)) for k, n, m in pairs
    ]


def simulated(system: dl.System, method: str, steps: int) -> Callable:
    """The loss of one environment, by `dl.simulate`."""

    def loss(layers: Any, q: Any, v: Any) -> Any:
        control = lambda t, q, v: policy(layers, q, v)  # noqa: E731
        run = dl.simulate(system, q, v, dt=DT, steps=steps, method=method, control=control)
        return jnp.mean(run.q**2) + jnp.mean(run.v**2)

    return loss


def written_by_hand(system: dl.System, method: str, steps: int) -> Callable:
    """The same by a scan over the public step."""

    def loss(layers: Any, q: Any, v: Any) -> Any:
        def turn(state: Any, _: None) -> Any:
            q, v = state
            end = dl.step(system, q, v, DT, method=method, control=policy(layers, q, v))
            return (end.q, end.v), (end.q, end.v)

        _, (qs, vs) = jax.lax.scan(turn, (q, v), None, steps)
        qs, vs = jnp.concatenate((q[None], qs)), jnp.concatenate((v[None], vs))
        return jnp.mean(qs**2) + jnp.mean(vs**2)

    return loss


def measured(f: Callable, arguments: tuple, steps: int) -> Row:
    begin = time.process_time()
    compiled = jax.jit(f).lower(*arguments).compile()
    compile_s = time.process_time() - begin
    found = jax.block_until_ready(compiled(*arguments))
    calls, begin = 0, time.process_time()

    def call() -> None:
        nonlocal calls
        calls += 1
        jax.block_until_ready(compiled(*arguments))

    elapsed = best(call)
    of_processor = (time.process_time() - begin) / calls
    norm = sum(jnp.vdot(a, a) for a in jax.tree.leaves(found)) ** 0.5
    return {
        "us_per_step": elapsed / steps * 1e6,
        "processor_us": of_processor / steps * 1e6,
        "compile_s": compile_s,
        "memory_kB": compiled.memory_analysis().temp_size_in_bytes / 1e3,
        "norm": float(norm),
    }


def compared(options: Options, width: int, batch: int, method: str, bits: int) -> list[Row]:
    system, dtype = difflie_model("arm"), jnp.dtype(f"float{bits}")
    system = system.astype(dtype) if bits == 32 else system
    layers = layers_of([2 * system.nv, width, width, system.nv], dtype)
    keys = jax.random.split(jax.random.key(1))
    q, v = (0.3 * jax.random.normal(k, (max(batch, 1), system.nv), dtype) for k in keys)
    rows = []
    for which in (simulated, written_by_hand):
        loss = which(system, method, options.steps)
        if batch == 0:
            total, start = loss, (q[0], v[0])
        else:
            each = jax.vmap(loss, (None, 0, 0))
            total, start = (lambda *args, each=each: jnp.sum(each(*args))), (q, v)
        for name, f in {"value": total, "gradient": jax.value_and_grad(total)}.items():
            row = {"width": width, "batch": batch, "method": method, "bits": bits, "of": name}
            found = measured(f, (layers, *start), options.steps * max(batch, 1))
            rows.append(row | {"loop": which.__name__} | found)
            print(
                "{width:4} {batch:5} {method:18} f{bits} {of:9} {loop:16} {us_per_step:8.3g} us a "
                "step and environment, {processor_us:8.3g} of the processors  {memory_kB:9.4g} kB  "
                "compile {compile_s:6.1f} s  norm {norm:.12g}".format(**rows[-1]),
                flush=True,
            )
    return rows


def main(options: Options) -> None:
    print(machine())
    rows: list[Row] = []
    for bits in options.precisions:
        for method in options.methods:
            for width in options.widths:
                for batch in options.batches:
                    rows += compared(options, width, batch, method, bits)
                    if options.json is not None:
                        figures = {"name": "bench_policy", "machine": machine(), "rows": rows}
                        save_json(options.json, figures)


if __name__ == "__main__":
    main(tyro.cli(Options))
