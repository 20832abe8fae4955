"""How many variants a second does a sweep compute, next to `mujoco.rollout` in processes?

    python experiments/bench_sweep.py --json bench_sweep.json
    python experiments/bench_sweep.py --models arm --counts 100 1000

The 7-joint arm of `bench_dynamics.py` and a free-flying chain of six bodies, 1000 steps of
semi-implicit Euler each, in double precision. Every variant has another mass of its last body and
another start; what is kept of it are the peak of each velocity and the final configuration. For
MuJoCo one process on each core changes its model for every variant and calls `mujoco.rollout`.

cold: a new process with empty caches: seconds until the first chunk is written, the import
included. overhead: of the whole warm sweep over the bare compiled loop called chunk by chunk, where
a chunk takes a second or more. memory: the largest resident size of the cold process. scaling: the
rates of one and two processes that each have one core, as workers of Dask and as plain programs.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import mujoco
import mujoco.rollout
import numpy as np
import tyro
from bench_dynamics import best, difflie_model, mujoco_spec
from rich.progress import track

import difflie as dl
from difflie import quantities as dq
from difflie.io.results import machine, save_json
from difflie.sweep.samples import Drawn

DT, STEPS, LINKS = 1e-3, 1000, 6
LAST = {"arm": "link7", "chain": f"link{LINKS - 1}"}
# MuJoCo's rate does not depend on the count, so that fewer are enough.
MOST_OF_MUJOCO = 2000
# Of programs and workers with one core each: rows of a chunk, and chunks for each.
CHUNK, CHUNKS = 8192, 12

Row = dict[str, Any]


@dataclass
class Options:
    """models: arm, chain; counts: of variants; parts: what is measured; json: a file."""

    models: list[str] = field(default_factory=lambda: ["arm", "chain"])
    counts: list[int] = field(default_factory=lambda: [10**k for k in range(2, 7)])
    parts: list[str] = field(default_factory=lambda: ["rates", "cold", "scaling"])
    json: Path | None = None


def system(name: str) -> dl.System:
    if name == "arm":
        return difflie_model("arm")
    bodies = [
        dl.Body(
            name=f"link{i}",
            joint=dl.Free()
            if i == 0
            else dl.Revolute(axis=(0.0, 1.0, 0.0) if i % 2 else (1.0, 0.0, 0.0)),
            position=(0.0, 0.0, -0.2 if i else 0.0),
            mass=1.0,
            com=(0.0, 0.0, -0.1),
            inertia=np.diag((4e-3, 4e-3, 1e-3)),
        )
        for i in range(LINKS)
    ]
    return dl.chain(bodies, name=name, gravity=(0.0, 0.0, 0.0))


def spec_of(name: str) -> mujoco.MjSpec:
    if name == "arm":
        spec = mujoco_spec("arm")
    else:
        spec = mujoco.MjSpec()
        body = spec.worldbody
        for i in range(LINKS):
            body = body.add_body(
                name=f"link{i}",
                pos=(0.0, 0.0, -0.2 if i else 0.0),
                mass=1.0,
                ipos=(0.0, 0.0, -0.1),
                inertia=(4e-3, 4e-3, 1e-3),
                explicitinertial=True,
            )
            if i:
                body.add_joint(axis=(0.0, 1.0, 0.0) if i % 2 else (1.0, 0.0, 0.0))
            else:
                body.add_freejoint()
        off = mujoco.mjtDisableBit
        spec.option.disableflags |= off.mjDSBL_CONTACT | off.mjDSBL_CONSTRAINT
        spec.option.gravity = (0.0, 0.0, 0.0)
    spec.option.timestep = DT
    return spec


def design(name: str, count: int) -> Drawn:
    machine = system(name)
    plain = [label for label, unit in machine.topology.velocity_labels if "/" not in label]
    joints = [j for j in machine.joint_names if f"{j}" in plain]
    return dl.Random(
        {
            f"{LAST[name]}/mass": dl.Uniform(0.5, 2.0),
            **{f"v0/{joint}": dl.Uniform(-1.0, 1.0) for joint in joints},
        },
        count,
    )


def motions(name: str) -> dl.Motions:
    kept = {"peak": dq.Peak(dq.Velocities()), "final": dq.Final(dq.Coordinates())}
    return dl.Motions(system(name), kept, dt=DT, steps=STEPS, method="SemiImplicitEuler")


def swept(name: str, count: int, folder: str, **how: Any) -> Any:
    return dl.sweep(motions(name), design(name, count), Path(folder) / "table", **how)


def rates(name: str, counts: list[int]) -> Iterator[Row]:
    """Variants a second: warm sweeps into new folders, the bare loop, and MuJoCo."""
    from difflie.sweep.store import Store
    from difflie.sweep.variants import Variants

    cores, per_second = len(os.sched_getaffinity(0)), of_mujoco(name)
    for count in track(counts, f"{name}: counts"):
        with tempfile.TemporaryDirectory() as folder:
            swept(name, count, folder)
            chunk = Store.opened(Path(folder) / "table").chunk
        with tempfile.TemporaryDirectory() as folder:
            begin = time.perf_counter()
            swept(name, count, folder, chunk=chunk)
            seconds = time.perf_counter() - begin
        bare = Variants(motions(name), design(name, count).names)
        rows = np.resize(design(name, count).rows(0, min(count, chunk)), (chunk, len(bare.names)))
        rows = jnp.asarray(rows)
        loop = bare._batch
        loop(rows)[0]["peak"].block_until_ready()
        one = best(lambda loop=loop, rows=rows: loop(rows)[0]["peak"].block_until_ready())
        chunks = -(-count // chunk)
        yield {
            "model": name,
            "variants": count,
            "chunk": chunk,
            "seconds": seconds,
            "rate": count / seconds,
            "rate per core": count / seconds / cores,
            "seconds of a chunk": one,
            "overhead": seconds / (one * chunks) - 1 if one >= 1 else None,
            "mujoco": per_second,
            "ratio": count / seconds / per_second,
        }


def of_mujoco(name: str) -> float:
    """Variants a second of MuJoCo with one process on each core."""
    cores = len(os.sched_getaffinity(0))
    rows = design(name, MOST_OF_MUJOCO).rows(0, MOST_OF_MUJOCO)
    with multiprocessing.get_context("spawn").Pool(cores) as pool:
        pool.starmap(roll, [(name, part[:1]) for part in np.array_split(rows, cores)])
        begin = time.perf_counter()
        pool.starmap(roll, [(name, part) for part in np.array_split(rows, 4 * cores)])
        return len(rows) / (time.perf_counter() - begin)


def roll(name: str, rows: np.ndarray) -> list[Any]:
    """The peak velocities and final configurations of some variants, in MuJoCo."""
    model = spec_of(name).compile()
    data, body = mujoco.MjData(model), model.body(LAST[name]).id
    kept = []
    for mass, *v0 in rows:
        model.body_mass[body] = mass
        start = np.zeros(1 + model.nq + model.nv)
        start[1 : 1 + model.nq] = model.qpos0
        start[len(start) - len(v0) :] = v0
        state, _ = mujoco.rollout.rollout(model, data, start[None], nstep=STEPS)
        q, v = state[0, -1, 1 : 1 + model.nq], state[0, :, 1 + model.nq :]
        kept.append((np.abs(v).max(axis=0), q))
    return kept


def cold(name: str, count: int) -> Row:
    """The first chunk and the memory of a new process, with empty caches."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "DIFFLIE_CACHE": f"{folder}/cache", "HOME": folder}
        environment.pop("JAX_COMPILATION_CACHE_DIR", None)
        command = [sys.executable, __file__, "--one", name, str(count), folder]
        begin = time.time()
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        found = json.loads(ended.stdout.splitlines()[-1])
    return {
        "model": name,
        "variants": count,
        "first": found["first"] - begin,
        "seconds": found["last"] - begin,
        "memory": found["memory"],
    }


def one(name: str, count: int, folder: str, chunk: int | None = None) -> None:
    """What `cold` runs: prints the times of the first and the last chunk, and the memory."""
    times: list[float] = []

    def progress(done: int, size: int) -> None:
        times.append(time.time())

    swept(name, count, folder, chunk=chunk, progress=progress)
    print(json.dumps({"first": times[0], "last": time.time(), "memory": largest_memory()}))


def scaling(name: str) -> Iterator[Row]:
    """Rates of one and two processes of one core each: plain programs, and workers of Dask."""
    cores = sorted(os.sched_getaffinity(0))[:2]
    for count in range(1, len(cores) + 1):
        row = {"model": name, "processes": count}
        yield row | {
            "plain": of_programs(name, cores[:count]),
            "dask": of_dask(name, cores[:count]),
        }


def of_programs(name: str, cores: list[int]) -> float:
    """Variants a second of one program on each core, between their first and last chunks."""
    with tempfile.TemporaryDirectory() as folder:
        count, started = CHUNKS * CHUNK, []
        for core in cores:
            own = ["--one", name, str(count), f"{folder}/{core}", str(CHUNK)]
            command = ["taskset", "-c", str(core), sys.executable, __file__, *own]
            started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        ended = [json.loads(p.communicate()[0].splitlines()[-1]) for p in started]
    return sum((CHUNKS - 1) * CHUNK / (e["last"] - e["first"]) for e in ended)


def of_dask(name: str, cores: list[int]) -> float:
    """Variants a second of one worker on each core."""
    from distributed import Client, LocalCluster

    from difflie.sweep import Dask

    times: list[float] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(n_workers=len(cores), threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        for worker, core in zip(client.scheduler_info()["workers"], cores, strict=True):
            client.run(os.sched_setaffinity, 0, {core}, workers=[worker])

        def progress(done: int, size: int) -> None:
            times.append(time.time())

        count = len(cores) * CHUNKS * CHUNK
        swept(name, count, folder, chunk=CHUNK, engine=Dask(client), progress=progress)
    # Each worker compiles with its first chunk.
    first = len(cores)
    return (len(times) - first) * CHUNK / (times[-1] - times[first - 1])


def largest_memory() -> int:
    """The largest resident size of this process in bytes; a started one inherits getrusage's."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def main(options: Options) -> None:
    results: dict[str, Any] = {"machine": machine(), "steps": STEPS, "dt": DT}
    if "rates" in options.parts:
        results["rates"] = [r for name in options.models for r in rates(name, options.counts)]
    if "cold" in options.parts:
        results["cold"] = [cold(name, max(options.counts)) for name in options.models]
    if "scaling" in options.parts:
        results["scaling"] = [row for name in options.models for row in scaling(name)]
    for part in ("rates", "cold", "scaling"):
        for row in results.get(part, ()):
            said = (f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items())
            print(f"{part}: {', '.join(said)}")
    if options.json is not None:
        save_json(options.json, results)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2], int(sys.argv[3]), sys.argv[4], *map(int, sys.argv[5:]))
    else:
        main(tyro.cli(Options))
