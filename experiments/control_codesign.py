"""Which link lengths make a lift cheapest, if the control is the best one for each of them?

A planar arm of two links lifts a payload of 1 kg from hanging to a shelf, in one second, at least
torque. Its lengths are moved together with the control: the derivative of the optimal cost by the
lengths is exact (envelope theorem), and each plan is the guess of the next.

    python experiments/control_codesign.py --out codesign --json codesign.json

Result: an upper arm of 0.3 m, its least length, and a forearm of 0.483 m instead of 0.4 m each; the
cost falls from 0.736 to 0.532 (5 plans in 27 s with compilation, beside other work on 1 CPU core).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import numpy as np
import scipy.optimize
import tyro

import difflie as dl
from difflie import control as dc
from difflie.io.results import machine, save_json
from difflie.view.figures import draw_lines, figure, label, save

SHELF = jnp.array([0.5, 0.0, 0.2])
START = jnp.array([0.1, -0.3])


@dataclass
class Options:
    """iterations: of the search for the lengths; out: a folder for the figure; json: a file."""

    iterations: int = 30
    out: Path = Path("codesign")
    json: Path | None = None


def arm() -> dl.System:
    """Two links of 2 kg/m, which hang along -z at q = 0, and a payload at their end."""
    y = dl.Revolute(axis=(0.0, -1.0, 0.0))
    link = {"mass": 0.8, "com": (0.0, 0.0, -0.2), "inertia": np.diag([0.011, 0.011, 0.001])}
    return dl.chain(
        [
            dl.Body(name="upper arm", joint=y, **link),
            dl.Body(name="forearm", joint=y, position=(0.0, 0.0, -0.4), **link),
            dl.Body(
                name="payload",
                joint=dl.Fixed(),
                position=(0.0, 0.0, -0.4),
                mass=1.0,
                inertia=1e-3 * np.eye(3),
            ),
        ],
        name="arm",
    )


def main(options: Options) -> None:
    parameters = dl.Parameters(arm(), ["forearm/position", "payload/position"])
    lift = dc.Problem(
        parameters.system,
        START,
        jnp.zeros(2),
        dt=0.02,
        steps=50,
        running=[dc.Effort(0.1), dc.Velocity(1e-3)],
        final=[dc.Point("payload", SHELF, 1e3), dc.Velocity(10.0)],
    )
    # The torques that gravity needs curve the problem more than its residuals do.
    solver = dc.FDDP(exact=True)
    guess, costs = dc.solve(lift, solver), []
    along = jnp.zeros((6, 2)).at[2, 0].set(-1.0).at[5, 1].set(-1.0)

    @jax.jit
    def cost_and_slope(lengths: jax.Array, guess: dc.Plan):
        def cost(lengths: jax.Array):
            machine = parameters.with_values(along @ lengths)
            plan = dc.solve(lift.replace(system=machine), solver, guess)
            return plan.cost, plan

        return jax.value_and_grad(cost, has_aux=True)(lengths)

    def evaluated(lengths: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal guess
        (cost, plan), slope = cost_and_slope(jnp.asarray(lengths), guess)
        if int(plan.result.status) != dc.Status.CONVERGED:
            raise SystemExit(f"no plan for the lengths {lengths}: {plan.result}")
        guess = plan
        costs.append(float(cost))
        return float(cost), np.asarray(slope)

    began = time.perf_counter()
    found = scipy.optimize.minimize(
        evaluated,
        [0.4, 0.4],
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.3, 0.6), (0.3, 0.6)],
        options={"maxiter": options.iterations},
    )
    seconds = time.perf_counter() - began
    print(f"lengths {np.round(found.x, 4)} m: cost {costs[0]:.4f} -> {found.fun:.4f}")
    print(f"{len(costs)} plans in {seconds:.1f} s with compilation; {found.message}")
    canvas, axes = figure(1, 2, (9.0, 3.2))
    draw_lines(axes[0, 0], np.arange(len(costs)), np.asarray(costs)[:, None], ["cost"])
    label(axes[0, 0], "evaluation", "cost", "Lengths and control together", legend=False)
    draw_lines(axes[0, 1], np.asarray(guess.t[:-1]), np.asarray(guess.u), ["shoulder", "elbow"])
    label(axes[0, 1], "t [s]", "torque [N m]", "The best control of the best arm")
    print(save(canvas, options.out / "codesign.png"))
    if options.json is not None:
        result = {"lengths": found.x.tolist(), "cost": found.fun, "costs": costs}
        save_json(options.json, {"codesign": result, "seconds": seconds, "machine": machine()})


if __name__ == "__main__":
    main(tyro.cli(Options))
