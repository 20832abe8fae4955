"""Does a quadruped trot on its feet, by a gait of joint angles that knows nothing of the ground?

Diagonal legs swing together. A leg of two links of one length is folded by b and turned by a: its
hip is at a + b and its knee at -2 b. Servos of the file follow these angles. The ground is the
plane of the file, or hills of sines.

    python experiments/trot.py --ground hills --out trot --json trot.json

Result, steps of 0.1 ms: it trots for 10 s on both, 3.0 m on the plane and 2.9 m on the hills, and
tilts by 8 and 16 degrees at most. The first calls take about 4 and 40 CPU s, in which the hills'
steps are 15 s.
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
FOLD, LIFT, STRIDE = 0.6, 0.35, 0.2  # rad
# The phases of the legs in the order of the file: front and hind, left and right.
PHASES = np.pi * np.array([0.0, 1.0, 1.0, 0.0])

LEFT = np.array([1.0, -1.0, 1.0, -1.0])
STEERING = 2.0  # strides a rad


@dataclass
class Options:
    """ground: plane or hills; duration and dt in s; out: a folder for a picture; json: a file."""

    ground: Literal["plane", "hills"] = "plane"
    duration: float = 10.0
    dt: float = 1e-4
    out: Path | None = None
    json: Path | None = None


def quadruped(ground: str) -> dl.System:
    """The machine of the file on its plane, or on hills of 3 cm above that."""
    system = dl.load(MODEL, actuators=True, contacts=True)
    if ground == "plane":
        return system
    x, y = np.meshgrid(np.linspace(-4, 4, 25), np.linspace(-1.2, 1.2, 10))
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


def walk(options: Options) -> tuple[dl.System, Any, dict[str, Any]]:
    """The machine, its motion, and how it went."""
    system = quadruped(options.ground)
    q = system.state("stand").q
    begin = time.process_time()
    run = dl.simulate(
        *(system, q.at[6].add(0.02 if options.ground == "hills" else 0), np.zeros(system.nv)),
        dt=options.dt,
        steps=round(options.duration / options.dt),
        save_every=round(0.02 / options.dt),
        control=trot,
    )
    q = np.asarray(run.q)
    figures = {
        "ground": options.ground,
        "outcome": str(run.result),
        "way": float(q[-1, 4]),  # m
        "height": [float(q[:, 6].min()), float(q[:, 6].max())],  # m
        "upright": float((1 - 2 * (q[:, 1] ** 2 + q[:, 2] ** 2)).min()),  # cosine of the tilt
        "cpu_seconds": time.process_time() - begin,
    }
    return system, run, figures


def main() -> None:
    options = tyro.cli(Options)
    system, run, figures = walk(options)
    console = Console()
    for name, value in figures.items():
        console.print(f"{name:12s} {value}")
    if options.out:
        scene = dv.scene(system, run, dl.io.read_appearance(MODEL, system))
        dv.write_picture(scene, options.out / f"trot_{options.ground}.gif", rate=12.0)
    if options.json:
        save_json(options.json, {"machine": machine(), **figures})


if __name__ == "__main__":
    main()
