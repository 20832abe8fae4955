"""What does a joint or a force of one's own cost beside the package's?

    python experiments/bench_own.py --json bench_own.json

Machines that move alike, once with a joint or force of the package and once with one written as a
user would: a chain of five ball joints, and an arm with a spring, a hinge friction or a drive law.
Start is tracing and compiling with no cache, in s of this process; a step is semi-implicit Euler,
the gradient of 500 steps with respect to every number. The best of interleaved runs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ["DIFFLIE_CACHE"] = os.environ["DIFFLIE_TIERED"] = "0"

import equinox as eqx
import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import numpy as np
import tyro

import difflie as dl
from difflie.groups import UnitQuaternion, quaternion
from difflie.io.results import machine, save_json


@dataclass
class Options:
    """json: a file; rounds: how often each pair is timed."""

    json: Path | None = None
    rounds: int = 7


@dataclass(frozen=True, kw_only=True)
class Ball(dl.Joint):
    """A ball joint by its transform alone."""

    @property
    def manifold(self) -> UnitQuaternion:
        return UnitQuaternion()

    def transform(self, q: jax.Array) -> jax.Array:
        turn = quaternion.to_matrix(q)
        return jnp.block([[turn, jnp.zeros((3, 1))], [jnp.zeros((1, 3)), jnp.ones((1, 1))]])


class OwnSpring(dl.Conservative):
    """A linear spring by its energy."""

    needs = "two points"
    path: dl.Path = eqx.field(converter=dl.as_path)
    stiffness: jax.Array = eqx.field(converter=dl.number(unit="N/m", positive=True))
    rest_length: jax.Array = eqx.field(converter=dl.number(unit="m", nonnegative=True))

    def energy(self, frames: Any) -> jax.Array:
        x = frames.translation.to_array()
        return self.stiffness * (jnp.linalg.norm(x[1] - x[0]) - self.rest_length) ** 2 / 2


class OwnDamping(dl.JointForce):
    """Viscous friction."""

    joint: str = eqx.field(static=True)
    damping: jax.Array = eqx.field(converter=dl.number(unit="N m s/rad", nonnegative=True))

    def effort(self, x: jax.Array, v: jax.Array) -> jax.Array:
        return -self.damping * v


def balls(joint: Callable[..., dl.Joint]) -> dl.System:
    inertia = np.diag((4e-4, 5e-4, 6e-4))
    bodies = [
        dl.Body(
            name=f"body{i}",
            joint=joint(),
            position=(0.0, 0.0, -0.1 if i else 0.0),
            mass=0.2,
            com=(0.01, 0.0, -0.05),
            inertia=inertia,
        )
        for i in range(5)
    ]
    return dl.chain(bodies)


def machines() -> dict[str, tuple[dl.System, dl.System]]:
    """The package's, and with one's own."""
    arm = dl.load(Path(dl.__file__).parent / "data" / "arm7.urdf")
    free = arm.replace(damping=0 * arm.joints.damping)
    ends = [(None, (0.0, 0.0, 1.0)), ("link3", (0.0, 0.1, 0.0))]
    own = [OwnDamping(j, d) for j, d in zip(arm.joint_names, arm.joints.damping, strict=True)]
    return {
        "ball joints": (balls(dl.Spherical), balls(Ball)),
        "spring": (
            dl.attach(arm, dl.Spring(ends, 200.0, 0.2)),
            dl.attach(arm, OwnSpring(ends, 200.0, 0.2)),
        ),
        "viscous friction": (arm, dl.attach(free, *own)),
    }


def programs(system: dl.System) -> dict[str, Callable[..., Any]]:
    def end(system: dl.System, v: jax.Array) -> jax.Array:
        run = dl.simulate(
            *(system, system.neutral(), v),
            dt=1e-4,
            steps=500,
            save_every=500,
            method="SemiImplicitEuler",
        )
        return jnp.sum(run.q[-1])

    return {"step": end, "gradient": jax.value_and_grad(end, (0, 1), allow_int=True)}


def main(options: Options) -> None:
    rows = []
    for name, pair in machines().items():
        for quantity in ("step", "gradient"):
            compiled, start, least = [], [], [float("inf")] * 2
            given = [(system, jnp.full(system.nv, 0.1)) for system in pair]
            for system, v in given:
                begin = time.perf_counter()
                compiled.append(jax.jit(programs(system)[quantity]).lower(system, v).compile())
                start.append(time.perf_counter() - begin)
            results = [f(*x) for f, x in zip(compiled, given, strict=True)]
            value = [r if quantity == "step" else r[0] for r in results]
            for _ in range(options.rounds):
                for k in range(2):
                    begin = time.perf_counter()
                    for _ in range(20):
                        jax.block_until_ready(compiled[k](*given[k]))
                    least[k] = min(least[k], (time.perf_counter() - begin) / 20 / 500 * 1e6)
            row = {
                "what": name,
                "quantity": quantity,
                "us": least,
                "ratio": least[1] / least[0],
                "start_s": start,
                "difference": abs(float(value[1] - value[0])),
            }
            rows.append(row)
            print(
                f"{name:17} {quantity:9} {least[0]:6.3f} us, own {least[1]:6.3f} "
                f"({row['ratio']:4.2f})   start {start[0]:4.2f} s, own {start[1]:4.2f}   "
                f"apart {row['difference']:.1e}",
                flush=True,
            )
    if options.json is not None:
        save_json(options.json, {"name": "bench_own", "machine": machine(), "rows": rows})


if __name__ == "__main__":
    main(tyro.cli(Options))
