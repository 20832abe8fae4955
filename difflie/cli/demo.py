"""`difflie demo`: from a robot file to its motion, a gradient, and parameters from a measurement.

Everything runs on a seven-joint arm that is shipped with the package.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from rich.markdown import Markdown

from ..dynamics import body_poses
from ..integrators import RKMK2, RKMK4, Method, SemiImplicitEuler
from ..io import examples, load, read_appearance
from ..io.files import write_whole
from ..io.results import Results, machine
from ..parameters import Parameters
from ..simulate import simulate
from ..system import System
from ..view.animate import write_picture
from ..view.drawing import DrawOptions
from ..view.figures import draw_drift, draw_lines, figure, label, save
from ..view.scenes import scene
from .output import check_outputs, console, progress_bars, say, write_results

ROBOT = examples.path("arm7")
START = (0.0, -0.6, 0.0, -2.2, 0.0, 1.7, 0.8)
PAYLOAD = (1.5, 0.08)
"""The true payload: mass in kg, height of its centre of mass above the flange in m."""

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True)
class DriftRow(Results):
    """The largest relative changes of energy and angular momentum in free flight."""

    energy: float
    angular_momentum: float


@dataclass(frozen=True, kw_only=True)
class GradientResults(Results):
    """The largest derivative of the hand's height by a mass, and its distance from differences."""

    largest_derivative_m_per_kg: float
    relative_difference: float


@dataclass(frozen=True, kw_only=True)
class PayloadNumbers(Results):
    """A payload: its mass, and the height of its centre of mass above the flange."""

    mass_kg: float
    height_m: float


@dataclass(frozen=True, kw_only=True)
class PayloadResults(Results):
    """The payload as it is and as it was found, from angles with so much noise."""

    true: PayloadNumbers
    found: PayloadNumbers
    relative_error: float
    noise_rad: float
    iterations: int


@dataclass(frozen=True, kw_only=True)
class DemoResults(Results):
    """The results of all three parts; drift: by the name of the method."""

    name: str = "demo"
    drift: dict[str, DriftRow]
    gradient: GradientResults
    payload: PayloadResults
    machine: dict[str, str]
    seconds: float


def demo(out: Path = Path("difflie-demo"), json: Path | None = None) -> None:
    """Simulate, differentiate and identify a seven-joint arm, with pictures and a summary.

    Args:
        out: the folder for pictures and the summary.
        json: a file for the results.
    """
    check_outputs(out, json, "flight.png", "drift.png", "payload.png", "summary.md")
    with progress_bars() as progress:
        results = run_demo(out, progress)
    summary = _summary(results)
    write_whole(out / "summary.md", summary)
    console.print(Markdown(summary))
    say(f"Pictures and summary: {out}/")
    write_results(json, results)


def run_demo(out: Path, progress: Progress = lambda stage, done, total: None) -> DemoResults:
    """Runs all three parts, writes pictures into `out`, returns the results; in double precision.

    progress(stage, done, total) is called as the work goes on.
    """
    begin = time.perf_counter()
    drift = _drift(out, progress)
    gradient = _gradient(progress)
    payload = _payload(out, progress)
    return DemoResults(
        drift=drift,
        gradient=gradient,
        payload=payload,
        machine=machine(),
        seconds=time.perf_counter() - begin,
    )


def arm(**options: Any) -> System:
    """The shipped seven-joint arm; options as in `difflie.load`."""
    return load(ROBOT, **options)


def _drift(out: Path, progress: Progress) -> dict[str, DriftRow]:
    """The arm in free flight without gravity: the drift of its energy and momentum."""
    methods: tuple[Method, ...] = (SemiImplicitEuler(), RKMK2(), RKMK4())
    system = arm(base="free", gravity=(0.0, 0.0, 0.0))
    system = system.replace(damping=jnp.zeros_like(system.joints.damping))
    q0 = system.neutral().at[7:].set(jnp.asarray(START))
    v0 = jnp.asarray([0.2, 0.1, 0.3, 0.0, 0.0, 0.0, 1.0, -0.5, 0.8, 1.0, -1.0, 0.5, 2.0])
    energy, angular, rows = {}, {}, {}
    t = np.zeros(0)
    for i, method in enumerate(methods):
        progress("integrators", i, len(methods))
        run = simulate(system, q0, v0, dt=5e-3, steps=2000, method=method, save_every=10)
        t = np.asarray(run.t)
        total = np.asarray(sum(run.energy(system)))
        momentum = np.asarray(run.momentum(system))[:, :3]
        name = type(method).__name__
        energy[name] = np.abs(total - total[0]) / total[0]
        angular[name] = np.linalg.norm(momentum - momentum[0], axis=1) / np.linalg.norm(momentum[0])
        rows[name] = DriftRow(
            energy=float(energy[name].max()), angular_momentum=float(angular[name].max())
        )
        if i == len(methods) - 1:
            view = scene(system, run, read_appearance(ROBOT, system))
            write_picture(view, out / "flight.png", shown=DrawOptions(traces=["payload"]))
    progress("integrators", len(methods), len(methods))
    canvas, axes = figure(1, 2, (10.0, 4.0))
    draw_drift(axes[0, 0], t, energy)
    label(axes[0, 0], "t [s]", "relative energy drift", "Energy", legend=False)
    draw_drift(axes[0, 1], t, angular)
    label(axes[0, 1], "t [s]", "relative momentum drift", "Angular momentum")
    save(canvas, out / "drift.png")
    return rows


def _gradient(progress: Progress) -> GradientResults:
    """The derivatives of the hand's height after half a second by every mass, checked."""
    system = arm()
    q0, v0 = jnp.asarray(START), jnp.zeros(7)

    def height(mass: jax.Array) -> jax.Array:
        run = simulate(system.replace(mass=mass), q0, v0, dt=5e-3, steps=100, save_every=100)
        return body_poses(system, run.q[-1])[-1, 2, 3]

    mass, step = system.bodies.mass, 1e-4
    progress("gradient", 0, len(mass) + 1)
    value_and_gradient = jax.jit(jax.value_and_grad(height))
    exact = np.asarray(value_and_gradient(mass)[1])
    differences = np.zeros(len(mass))
    for i in range(len(mass)):
        progress("gradient", i + 1, len(mass) + 1)
        above, below = (value_and_gradient(mass.at[i].add(d))[0] for d in (step, -step))
        differences[i] = (above - below) / (2 * step)
    progress("gradient", len(mass) + 1, len(mass) + 1)
    return GradientResults(
        largest_derivative_m_per_kg=float(np.abs(exact).max()),
        relative_difference=float(np.abs(exact - differences).max() / np.abs(exact).max()),
    )


def _payload(out: Path, progress: Progress) -> PayloadResults:
    """Identifies a payload's mass and height from a noisy recording, by gradient descent."""
    system, dt, steps, noise, iterations = arm(), 4e-3, 250, 1e-3, 150
    parameters = Parameters(system, ["payload/mass", "payload/com_z"])
    q0 = jnp.asarray(START)
    stiffness = jnp.asarray([200.0, 200.0, 150.0, 150.0, 40.0, 40.0, 10.0])
    damping = jnp.asarray([20.0, 20.0, 15.0, 15.0, 3.0, 3.0, 0.3])
    rates = jnp.asarray([5.0, 6.0, 4.0, 7.0, 9.0, 8.0, 6.0])

    def controller(t: jax.Array, q: jax.Array, v: jax.Array) -> jax.Array:
        """Joint springs towards a moving target, which know nothing of the payload."""
        return stiffness * (q0 + 0.2 * jnp.sin(rates * t) - q) - damping * v

    def motion(payload: jax.Array) -> jax.Array:
        loaded = parameters.with_values(payload)
        run = simulate(loaded, q0, jnp.zeros(7), dt=dt, steps=steps, control=controller)
        return run.q

    truth = jnp.asarray(PAYLOAD)
    predict = jax.jit(motion)
    clean = predict(truth)
    measured = clean + noise * jax.random.normal(jax.random.key(0), clean.shape)
    scale = jnp.asarray([1.0, 0.1])  # so that both unknowns are of order one

    def loss(x: jax.Array) -> jax.Array:
        return jnp.mean((motion(x * scale) - measured) ** 2) / noise**2

    optimizer = optax.adam(optax.cosine_decay_schedule(0.1, iterations))

    @jax.jit
    def descend(x: jax.Array, state: Any) -> tuple[Any, Any, jax.Array]:
        value, gradient = jax.value_and_grad(loss)(x)
        change, state = optimizer.update(gradient, state)
        return optax.apply_updates(x, change), state, value

    x = jnp.asarray([0.1, 0.0])
    state = optimizer.init(x)
    history = []
    for i in range(iterations):
        progress("payload", i, iterations)
        history.append(np.asarray([*(x * scale), 0.0]))
        x, state, value = descend(x, state)
        history[-1][2] = value
    progress("payload", iterations, iterations)
    found = x * scale
    t = dt * np.arange(steps + 1)
    _draw_payload(out, t, measured, predict(found), np.asarray(history))
    mass, height = (float(x) for x in found)
    return PayloadResults(
        true=PayloadNumbers(mass_kg=PAYLOAD[0], height_m=PAYLOAD[1]),
        found=PayloadNumbers(mass_kg=mass, height_m=height),
        relative_error=float(jnp.max(jnp.abs(found - truth) / truth)),
        noise_rad=noise,
        iterations=iterations,
    )


def _draw_payload(out: Path, t: np.ndarray, measured, fitted, history: np.ndarray) -> None:
    canvas, axes = figure(1, 3, (13.0, 4.0))
    left, *others = axes[0]
    joints = [1, 3, 5]
    draw_lines(left, t, np.asarray(fitted)[:, joints], [f"joint {j + 1}" for j in joints])
    left.plot(t[::4], np.asarray(measured)[::4, joints], ".", color="#222222", markersize=2)
    label(left, "t [s]", "q [rad]", "Measured (dots) and found (lines)")
    for a, estimates, true, what in zip(
        others, history.T, PAYLOAD, ("mass [kg]", "height [m]"), strict=False
    ):
        a.plot(estimates, label="estimate")
        a.axhline(true, color="#222222", linewidth=0.8, linestyle=":", label="truth")
        label(a, "iteration", what, "Gradient descent")
    save(canvas, out / "payload.png")


def _summary(results: DemoResults) -> str:
    drift, gradient, payload = results.drift, results.gradient, results.payload
    rows = "\n".join(
        f"| {name} | {row.energy:.1e} | {row.angular_momentum:.1e} |" for name, row in drift.items()
    )
    found, true, where = payload.found, payload.true, results.machine
    return f"""# difflie demo

## 1. Motion

The seven-joint arm, cut loose in weightlessness (flight.png), 10 s in steps of 5 ms: largest
relative change of what should stay (drift.png).

| integrator | energy | angular momentum |
|---|---|---|
{rows}

## 2. Gradient

How the height of the falling arm's hand after 0.5 s changes with each of its nine masses, through
100 steps: up to {gradient.largest_derivative_m_per_kg:.3g} m/kg; the exact gradient and
central differences agree to {gradient.relative_difference:.1e} (relative).

## 3. Parameters

A payload found from one second of joint angles with {1e3 * payload.noise_rad:.0f} mrad of noise,
in {payload.iterations} steps of gradient descent through the simulation (payload.png).

| | true | found |
|---|---|---|
| mass | {true.mass_kg:.4f} kg | {found.mass_kg:.4f} kg |
| height of its centre of mass | {true.height_m:.4f} m | {found.height_m:.4f} m |

{results.seconds:.0f} s on {where["processor"]}, {where["cores"]} cores.
"""
