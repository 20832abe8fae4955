"""Which weights make a controller that plans anew at every sample best in closed loop?

A pendulum is pulled by a wind that the controller does not know, and shall stay at 0.5 rad. The
weights of its running cost are found by gradient descent through the closed loop: through every
plan (implicit function theorem) and every step of the machine.

    python experiments/control_mpc_tuning.py --out mpc_tuning --json mpc_tuning.json

Result: the loss falls from 0.314 to 0.009 in 25 iterations; the position weighs 110, velocity and
torque 0.01, and the rod stands 0.01 rad from its goal (32 s with compilation on 1 CPU core).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import numpy as np
import optax
import tyro

import difflie as dl
from difflie import control as dc
from difflie.io.results import machine, save_json
from difflie.view.figures import draw_lines, figure, label, save

GOAL, WIND, SAMPLE = 0.5, -0.4, 0.05


@dataclass
class Options:
    """iterations: of the descent; samples: of the closed loop; out: a folder; json: a file."""

    iterations: int = 40
    samples: int = 30
    out: Path = Path("mpc_tuning")
    json: Path | None = None


def main(options: Options) -> None:
    rod = dl.Body(
        name="rod",
        joint=dl.Revolute(axis=(0.0, 1.0, 0.0), damping=0.05),
        mass=1.0,
        com=(0.0, 0.0, -0.5),
        inertia=np.diag([0.02, 0.02, 0.001]),
    )
    system, zero = dl.chain([rod], name="pendulum"), jnp.zeros(1)

    def controller(x: jax.Array) -> dc.Receding:
        """Weights exp(x) (3,) of position, velocity and torque."""
        weight = jnp.exp(x)
        goal = dc.State([GOAL], weight[:2])
        problem = dc.Problem(
            system, zero, zero, dt=SAMPLE, steps=12, running=[goal, dc.Effort(weight[2])]
        )
        return dc.Receding(problem, dc.FDDP(iterations=30), dc.FDDP(iterations=30))

    def closed_loop(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        mpc = controller(x)

        def sample(state: tuple, _: None) -> tuple[tuple, tuple]:
            memory, q, v = state
            u, memory = mpc.step(memory, q, v)
            q, v, _ = dl.step(system, q, v, SAMPLE, control=u + WIND)
            return (memory, q, v), (q, u)

        begin = mpc.start(zero, zero), zero, zero
        _, (q, u) = jax.lax.scan(sample, begin, length=options.samples)
        return jnp.mean((q - GOAL) ** 2) + 1e-4 * jnp.mean(jnp.diff(u, axis=0) ** 2), q

    descent = optax.adam(0.3)
    value_and_slope = jax.jit(jax.value_and_grad(closed_loop, has_aux=True))
    x = jnp.log(jnp.array([1.0, 1.0, 1.0]))
    state, losses, motions = descent.init(x), [], []
    began = time.perf_counter()
    for _ in range(options.iterations):
        (loss, q), slope = value_and_slope(x)
        losses.append(float(loss))
        motions.append(np.asarray(q))
        change, state = descent.update(slope, state)
        x = optax.apply_updates(x, change)
    seconds = time.perf_counter() - began
    print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}, weights {np.round(np.exp(x), 4)}")
    print(f"{seconds:.1f} s with compilation")
    canvas, axes = figure(1, 2, (9.0, 3.2))
    axes[0, 0].semilogy(losses)
    label(axes[0, 0], "iteration", "loss of the closed loop", "Weights by descent", legend=False)
    t = SAMPLE * np.arange(1, options.samples + 1)
    both = np.concatenate((motions[0], motions[-1]), axis=1)
    draw_lines(axes[0, 1], t, both, ["first weights", "last weights"])
    label(axes[0, 1], "t [s]", "angle [rad]", "Closed loop in the wind")
    print(save(canvas, options.out / "mpc_tuning.png"))
    if options.json is not None:
        result = {"losses": losses, "weights": np.exp(x).tolist()}
        save_json(options.json, {"mpc_tuning": result, "seconds": seconds, "machine": machine()})


if __name__ == "__main__":
    main(tyro.cli(Options))
