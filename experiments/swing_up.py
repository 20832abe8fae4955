"""Can gradient descent on a control sequence swing a pendulum up on its cart?

The force on the cart, one value every 0.02 s for three seconds, is found by Adam through a
simulation with RKMK4 at 0.02 s; the sequence is then replayed with RKMK8 at a quarter of the step,
which shows that it moves the machine and not only the integrator.

    python experiments/swing_up.py --out swing_up --json swing_up.json

Result: the pendulum ends 0.0105 rad from upright at 0.03 rad/s, the peak force is 13 N, and the
replay agrees with the plan to 6.3e-6 (600 iterations in 21 s with compilation, 2 CPU cores).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import numpy as np
import optax
import tyro
from rich.progress import track

import difflie as dl
from difflie.io.results import machine, save_json
from difflie.view.figures import draw_lines, figure, label, save

DT, STEPS = 0.02, 150


@dataclass
class Options:
    """iterations: of gradient descent; out: a folder for the figure; json: a file."""

    iterations: int = 600
    out: Path = Path("swing_up")
    json: Path | None = None


def cart_pole() -> dl.System:
    """A cart of 1 kg on a rail along x, and a pendulum of 0.2 kg and 1 m that hangs at q = 0."""
    rod = 0.2 * 1.0**2 / 12
    return dl.chain(
        [
            dl.Body(
                name="cart",
                joint=dl.Prismatic(axis=(1.0, 0.0, 0.0)),
                mass=1.0,
                inertia=np.diag([0.01, 0.01, 0.01]),
            ),
            dl.Body(
                name="pendulum",
                joint=dl.Revolute(axis=(0.0, -1.0, 0.0), damping=0.002),
                mass=0.2,
                com=(0.0, 0.0, -0.5),
                inertia=np.diag([rod, rod, 1e-5]),
            ),
        ],
        name="cart_pole",
    )


def main(options: Options) -> None:
    system = cart_pole()
    rest = jnp.zeros(2)

    def motion(force: jax.Array, method: dl.Method, substeps: int) -> dl.Trajectory:
        control = dl.ZeroOrderHold(jnp.stack((force, jnp.zeros_like(force)), axis=1), substeps)
        return dl.simulate(
            system,
            rest,
            rest,
            dt=DT / substeps,
            steps=STEPS * substeps,
            method=method,
            control=control,
            save_every=substeps,
        )

    def loss(force: jax.Array) -> jax.Array:
        run = motion(force, dl.RKMK4(), 1)
        x, angle = run.q[-1]
        upright = 1 + jnp.cos(angle)  # zero when it stands
        return (
            200 * upright
            + 10 * jnp.sum(run.v[-1] ** 2)
            + 2 * x**2
            + 0.5 * jnp.mean(run.q[:, 0] ** 2)
            + 2e-3 * jnp.mean(force**2)
        )

    optimizer = optax.adam(optax.cosine_decay_schedule(0.3, options.iterations))

    @jax.jit
    def descend(force: jax.Array, state: Any) -> tuple[jax.Array, Any, jax.Array]:
        value, gradient = jax.value_and_grad(loss)(force)
        change, state = optimizer.update(gradient, state)
        return optax.apply_updates(force, change), state, value

    time_grid = DT * jnp.arange(STEPS)
    force = 2.0 * jnp.sin(2 * jnp.pi * time_grid / 1.5)
    state = optimizer.init(force)
    begin, history = time.perf_counter(), []
    for _ in track(range(options.iterations), "swing up"):
        force, state, value = descend(force, state)
        history.append(float(value))
    seconds = time.perf_counter() - begin

    planned, replayed = motion(force, dl.RKMK4(), 1), motion(force, dl.RKMK8(), 4)
    end = replayed.q[-1, 1]
    off = float(jnp.abs(jnp.arctan2(jnp.sin(end - jnp.pi), jnp.cos(end - jnp.pi))))
    gap = float(jnp.max(jnp.abs(planned.q - replayed.q)))

    t = np.asarray(planned.t)
    canvas, axes = figure(2, 2, (10.0, 6.0))
    draw_lines(axes[0, 0], t, np.asarray(replayed.q)[:, 1:] / np.pi, ["RKMK8, 5 ms"])
    axes[0, 0].plot(t[::5], np.asarray(planned.q)[::5, 1] / np.pi, ".", label="RKMK4, 20 ms")
    label(axes[0, 0], "t [s]", "angle / pi", "Pendulum (1 or -1: upright)")
    draw_lines(axes[0, 1], t, np.asarray(replayed.q)[:, :1], ["cart"])
    label(axes[0, 1], "t [s]", "x [m]", "Cart", legend=False)
    axes[1, 0].step(t[:-1], np.asarray(force), where="post")
    label(axes[1, 0], "t [s]", "force [N]", "Control sequence")
    axes[1, 1].semilogy(history)
    label(axes[1, 1], "iteration", "loss", "Gradient descent")
    picture = save(canvas, options.out / "swing_up.png")

    figures = {
        "name": "swing_up",
        "loss": history[-1],
        "angle_from_upright_rad": off,
        "final_speeds": np.asarray(replayed.v[-1]),
        "peak_force_N": float(jnp.max(jnp.abs(force))),
        "largest_difference_of_replay": gap,
        "seconds": seconds,
        "machine": machine(),
    }
    for key, entry in figures.items():
        print(f"{key}: {entry}")
    print(f"figure: {picture}")
    if options.json is not None:
        save_json(options.json, figures)


if __name__ == "__main__":
    main(tyro.cli(Options))
