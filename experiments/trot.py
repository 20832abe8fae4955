"""Does a quadruped trot on its feet, by a gait of joint angles that knows nothing of the ground?

Diagonal legs swing together. A leg of two links of one length is folded by b and turned by a: its
hip is at a + b and its knee at -2 b. Servos of the file follow these angles. The ground is the
plane of the file, or hills of sines. With `floors` it trots on so many random floors in one batch.

    python experiments/trot.py --ground hills --out trot --json trot.json
    python experiments/trot.py --ground hills --method ConvexContact --dt 4e-3
    python experiments/trot.py --floors 4096 --method ConvexContact --dt 4e-3 --duration 4

Result, steps of 0.1 ms: it trots for 10 s on both, 3.0 m on the plane and 2.9 m on the hills, and
tilts by 8 and 16 degrees at most. The first calls take about 4 and 40 CPU s, in which the hills'
steps are 15 s.
By `ConvexContact` with steps of 4 ms it goes 2.9 m on the hills. On 4,096 random floors, for 2 s in
one batch, all runs are completed and 143 fall; half of them go 0.35 m or further. A step of a row
takes 22 us of a core alone, 47 us beside other work.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import numpy as np
import tyro
from rich.console import Console

import difflie as dl
import difflie.view as dv
from difflie.io.results import machine, save_json

MODEL = Path(__file__).parent.parent / "configs" / "quadruped.xml"
RATE = 2.0  # steps of a leg in a second
CELLS = 10, 25  # heights of a floor across and along the way
FOLD, LIFT, STRIDE = 0.6, 0.35, 0.2  # rad
# The phases of the legs in the order of the file: front and hind, left and right.
PHASES = np.pi * np.array([0.0, 1.0, 1.0, 0.0])

LEFT = np.array([1.0, -1.0, 1.0, -1.0])
STEERING = 2.0  # strides a rad


@dataclass
class Options:
    """What to run.

    ground: plane or hills. floors: so many random ones. duration and dt in s. method: by its name.
    out: a folder for a picture. json: a file.
    """

    ground: Literal["plane", "hills"] = "plane"
    floors: int = 0
    method: str = "RKMK4"
    duration: float = 10.0
    dt: float = 1e-4
    out: Path | None = None
    json: Path | None = None


def quadruped(ground: str) -> dl.System:
    """The machine of the file on its plane, or on hills of 3 cm above that."""
    system = dl.load(MODEL, actuators=True, contacts=True)
    if ground == "plane":
        return system
    x, y = np.meshgrid(np.linspace(-4, 4, CELLS[1]), np.linspace(-1.2, 1.2, CELLS[0]))
    hills = dl.HeightField((4.0, 1.2), 0.015 * (1 + np.sin(5 * x) * np.cos(4 * y)))
    system = system.with_shapes({"hills": hills})
    return dl.touching(system, "hills", "*_foot", stiffness=2e4, slip_velocity=0.03)


def trot(t: Any, q: Any, v: Any) -> Any:
    """The commanded angles (12,) of the servos; the gait begins within half a second.

    Where it heads away from the x axis, the legs of that side take longer strides.
    """
    phase = 2 * jnp.pi * RATE * t - PHASES
    begun = jnp.minimum(t / 0.5, 1)
    fold = FOLD + begun * LIFT * jnp.maximum(jnp.sin(phase), 0)
    away = 2 * jnp.arctan2(q[3], q[0]) + 0.5 * q[5]  # rad, with that by which it stands aside
    turn = begun * STRIDE * jnp.cos(phase) * (1 + jnp.clip(STEERING * away, -1, 1) * LEFT)
    return jnp.stack([0 * fold, turn + fold, -2 * fold], 1).ravel()


def motion(system: dl.System, options: Options) -> Any:
    """The motion from standing above the ground."""
    q = system.state("stand").q
    above = 0.02 if options.ground == "hills" or options.floors else 0
    return dl.simulate(
        *(system, q.at[6].add(above), np.zeros(system.nv)),
        dt=options.dt,
        steps=round(options.duration / options.dt),
        save_every=round(0.02 / options.dt),
        control=trot,
        method=options.method,
    )


def upright(q: Any) -> Any:
    """The cosine of the tilt in rows of q (..., nq)."""
    return 1 - 2 * (q[..., 1] ** 2 + q[..., 2] ** 2)


def walk(options: Options) -> tuple[dl.System, Any, dict[str, Any]]:
    """The machine, its motion, and how it went."""
    system = quadruped(options.ground)
    begin = time.process_time()
    run = motion(system, options)
    q = np.asarray(run.q)
    figures = {
        "ground": options.ground,
        "outcome": str(run.result),
        "way": float(q[-1, 4]),  # m
        "height": [float(q[:, 6].min()), float(q[:, 6].max())],  # m
        "upright": float(upright(q).min()),
        "cpu_seconds": time.process_time() - begin,
    }
    return system, run, figures


def walks(options: Options) -> dict[str, Any]:
    """How it goes on random floors, up to 3 cm from their lowest to their highest places."""
    system = quadruped("hills")
    heights = 0.03 * np.random.default_rng(0).random((options.floors, *CELLS))
    parameter = dl.Parameters(system, ["hills/heights"])
    floors = heights.reshape(options.floors, -1)

    @jax.jit
    def trots(floors: Any) -> tuple[Any, Any, Any]:
        def one(floor: Any) -> tuple[Any, Any, Any]:
            run = motion(parameter.with_values(floor), options)
            return run.q[-1, 4], jnp.min(upright(run.q)), run.result.ok

        return jax.vmap(one)(floors)

    times = []
    for _ in range(2):
        cpu, wall = time.process_time(), time.perf_counter()
        way, least, fine = map(np.asarray, trots(floors))
        times.append((time.process_time() - cpu, time.perf_counter() - wall))
    steps = options.floors * round(options.duration / options.dt)
    return {
        "floors": options.floors,
        "completed": int(np.sum(fine)),
        "fallen": int(np.sum(least < 0.5)),
        "way": [float(x) for x in np.quantile(way, (0.05, 0.5, 0.95))],  # m
        "first_call": times[0],  # CPU and wall seconds
        "later_call": times[1],
        "cpu_microseconds_of_a_step": 1e6 * times[1][0] / steps,
    }


def main() -> None:
    options = tyro.cli(Options)
    if options.floors:
        figures = walks(options)
    else:
        system, run, figures = walk(options)
    console = Console()
    for name, value in figures.items():
        console.print(f"{name:26s} {value}")
    if options.out and not options.floors:
        scene = dv.scene(system, run, dl.io.read_appearance(MODEL, system))
        dv.write_picture(scene, options.out / f"trot_{options.ground}.gif", rate=12.0)
    if options.json:
        save_json(options.json, {"machine": machine(), **figures})


if __name__ == "__main__":
    main()
