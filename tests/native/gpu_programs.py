"""The kernels of robots' motions on a GPU, and what each takes of one, compiled for an H100.

    python tests/native/gpu_programs.py

writes the table gpu_resources.toml anew, with which the tests compare.
"""

import importlib.metadata
import os
import re
import struct
import sys
import tomllib
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import difflie as dl
from difflie.native.gpu import cuda, nvrtc
from difflie.native.jaxprs import nested
from difflie.native.loop import Loop

TABLE = Path(__file__).with_name("gpu_resources.toml")
FILES = {
    "quadruped": "anymal_b_simple_description/robots/anymal.urdf",
    "humanoid": "g1_description/urdf/g1_29dof_rev_1_0.urdf",
}
ROBOTS, PROGRAMS, TYPES = ("arm", *FILES), ("step", "RKMK4", "gradient"), ("float32", "float64")
# What NVRTC takes minutes for is left out.
MEASURED = [(r, p) for r in ROBOTS for p in PROGRAMS if r != "humanoid" or p == "step"]
GPU = "sm_90"
# In bytes but for the registers. Memory of a thread's own beside the registers: all of it, and what
# is written and read there once an iteration for want of registers.
FIELDS = "registers", "local", "spill_stores", "spill_loads", "code"


def robot(name: str, dtype: str) -> dl.System:
    if name == "arm":
        file = Path(dl.__file__).parent / "data/arm7.urdf"
    else:
        data = importlib.metadata.distribution("example-robot-data")
        folder = "cmeel.prefix/share/example-robot-data/robots"
        file = Path(str(data.locate_file(folder))) / FILES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        system = dl.load(file, base="fixed" if name == "arm" else "free")
    return jax.tree.map(
        lambda x: x.astype(dtype) if jnp.issubdtype(x.dtype, jnp.inexact) else x, system
    )


def motion(name: str, program: str, dtype: str, steps: int) -> tuple[Callable[..., Any], tuple]:
    """A motion of 64 environments, or its gradient, and where they start (64, ...)."""
    system = robot(name, dtype)
    method = "RKMK4" if program == "RKMK4" else "SemiImplicitEuler"

    def end(q: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
        dt = jnp.asarray(1e-3, dtype)
        run = dl.simulate(system, q, v, dt=dt, steps=steps, save_every=steps, method=method)
        return run.q[-1], run.v[-1]

    def loss(q: jax.Array, v: jax.Array) -> jax.Array:
        q, v = end(q, v)
        return jnp.sum(jnp.sin(q)) + jnp.sum(v**2)

    random = np.random.default_rng(0)
    q = 0.3 * random.normal(size=(64, system.nq))
    if name != "arm":
        q[:, :4] /= np.linalg.norm(q[:, :4], axis=1, keepdims=True)
    start = q, 0.3 * random.normal(size=(64, system.nv))
    f = jax.grad(loss, (0, 1)) if program == "gradient" else end
    return jax.vmap(f), tuple(jnp.asarray(x, dtype) for x in start)


def kernels(f: Callable[..., Any], args: tuple) -> Iterator[tuple[Loop, str]]:
    """The loops of a function that become kernels, and their source."""

    def of(jaxpr: Any) -> Iterator[tuple[Loop, str]]:
        for e in jaxpr.eqns:
            if e.primitive.name != "native":
                for inner in nested(e.params):
                    yield from of(inner.jaxpr)
                continue
            batched_args = e.params["batched_args"] if e.params["batch"] is not None else ()
            yield e.params["loop"], cuda.source(e.params["loop"], batched_args)

    return of(jax.make_jaxpr(f)(*args).jaxpr)


def resources(source: str) -> dict[str, int]:
    """What a kernel takes of a GPU, by `FIELDS`."""
    library, _ = nvrtc.library(12)
    code, said = nvrtc.translated(library, source, GPU, ["--ptxas-options=-v"])
    properties = said[said.index(f"properties for {cuda.NAME}\n") :]
    pattern = r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
    spilled = re.search(pattern, properties)
    used = re.search(r"Used (\d+) registers", properties)
    assert spilled and used, said
    found = used.group(1), *spilled.groups(), section(code, f".text.{cuda.NAME}")
    return dict(zip(FIELDS, map(int, found), strict=True))


def section(code: bytes, name: str) -> int:
    """The size of a section of an ELF file."""
    (start,) = struct.unpack_from("<Q", code, 0x28)
    size, count, names = struct.unpack_from("<3H", code, 0x3A)
    headers = [struct.unpack_from("<2I4Q", code, start + size * i) for i in range(count)]
    text = headers[names][4]
    ends = {code[text + h[0] :].split(b"\0", 1)[0].decode(): h[5] for h in headers}
    return ends[name]


def rows(name: str, program: str, dtype: str) -> list[dict[str, int]]:
    """What the kernels of a motion take, without those that prepare the machine's numbers."""
    steps = 100
    found = kernels(*motion(name, program, dtype, steps))
    return [resources(text) for loop, text in found if loop.length == steps]


def recorded() -> dict[str, Any]:
    return tomllib.loads(TABLE.read_text())


def main() -> None:
    major, minor = nvrtc.library(12)[1]
    lines = [
        f"# Kernels for {GPU}, an H100, by tests/native/gpu_programs.py; bytes, but registers.",
        f'nvrtc = "{major}.{minor}"',
    ]
    for name in ROBOTS:
        lines += ["", f"[{name}]"]
        for program in (p for r, p in MEASURED if r == name):
            for dtype in TYPES:
                each = [
                    ", ".join(f"{key} = {value}" for key, value in row.items())
                    for row in rows(name, program, dtype)
                ]
                table = ",".join(f"\n    {{ {x} }}" for x in each)
                lines.append(f"{program}_{dtype} = [{table},\n]")
                print(lines[-1], flush=True)
    TABLE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    # As in the tests: a rollout that is stored is another program.
    os.environ["DIFFLIE_STORED"] = "0"
    jax.config.update("jax_enable_x64", True)
    sys.exit(main())
