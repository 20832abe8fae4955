"""`difflie demo`: from a robot file to its motion, a gradient, and parameters from a measurement.

Everything runs on a seven-joint arm that is shipped with the package.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..dynamics import body_poses, momentum
from ..forces import energy
from ..integrators import RKMK2, RKMK4, Method, SemiImplicitEuler
from ..io import examples, load
from ..io.files import write_whole
from ..io.results import Results, machine
from ..parameters import Parameters
from ..simulate import Trajectory, simulate
from ..system import System
from .output import check_outputs, console, progress_bars, say, write_results

ROBOT = examples.path("arm7")
START = (0.0, -0.6, 0.0, -2.2, 0.0, 1.7, 0.8)
PAYLOAD = (1.5, 0.08)
"""The true payload: mass in kg, height of its centre of mass above the flange in m."""

Progress = Callable[[str, int, int], None]
Tell = Callable[[str], None]


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
        results = run_demo(out, progress, say)
    from rich.markdown import Markdown

    summary = _summary(results)
    write_whole(out / "summary.md", summary)
    console.print(Markdown(summary))
    say(f"Pictures and summary: {out}/")
    write_results(json, results)


def run_demo(
    out: Path, progress: Progress = lambda stage, done, total: None, tell: Tell = lambda said: None
) -> DemoResults:
    """Runs all three parts, writes pictures into `out`, returns the results; in double precision.

    progress(stage, done, total) is called as the work goes on, tell(sentence) with each number as
    soon as it is there; pictures are drawn after all of them.
    """
    begin = time.perf_counter()
    drift, flight = _drift(progress, tell)
    gradient = _gradient(progress, tell)
    payload, descent = _payload(progress, tell)
    # Imported here, so that the numbers need not wait for it.
    from .demo_pictures import draw_descent, draw_drifts, draw_flight

    progress("pictures", 0, 3)
    draw_flight(out, flight.system, flight.run, ROBOT)
    progress("pictures", 1, 3)
    draw_drifts(out, np.asarray(flight.run.t), flight.energy, flight.angular)
    progress("pictures", 2, 3)
    draw_descent(out, *descent, PAYLOAD)
    progress("pictures", 3, 3)
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


class _Flight(NamedTuple):
    """The last motion in free flight, and the relative drifts (m + 1,) by the name of a method."""

    system: System
    run: Trajectory
    energy: dict[str, np.ndarray]
    angular: dict[str, np.ndarray]


def _drift(progress: Progress, tell: Tell) -> tuple[dict[str, DriftRow], _Flight]:
    """The arm in free flight without gravity: the drift of its energy and momentum."""
    methods: tuple[Method, ...] = (SemiImplicitEuler(), RKMK2(), RKMK4())
    system = arm(base="free", gravity=(0.0, 0.0, 0.0))
    system = system.replace(damping=np.zeros(system.joints.damping.shape))
    q0 = np.array(system.neutral())
    q0[7:] = START
    v0 = np.array([0.2, 0.1, 0.3, 0.0, 0.0, 0.0, 1.0, -0.5, 0.8, 1.0, -1.0, 0.5, 2.0])
    energies, angular, rows, run = {}, {}, {}, None
    for i, method in enumerate(methods):
        progress("integrators", i, len(methods))
        run = simulate(system, q0, v0, dt=5e-3, steps=2000, method=method, save_every=10)
        total, moment = map(np.asarray, _conserved(system, run.q, run.v))
        name = type(method).__name__
        energies[name] = np.abs(total - total[0]) / total[0]
        angular[name] = np.linalg.norm(moment - moment[0], axis=1) / np.linalg.norm(moment[0])
        row = rows[name] = DriftRow(
            energy=float(energies[name].max()), angular_momentum=float(angular[name].max())
        )
        tell(
            f"{name}, 10 s of free flight: energy changes by {row.energy:.1e}, angular momentum by "
            f"{row.angular_momentum:.1e}"
        )
    progress("integrators", len(methods), len(methods))
    assert run is not None
    return rows, _Flight(system, run, energies, angular)


@jax.jit
def _conserved(system: System, q: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The energy (m,) and the angular momentum (m, 3) about the origin, of states (m, ...)."""

    def at(q: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
        kinetic, potential = energy(system, q, v)
        return kinetic + potential, momentum(system, q, v)[:3]

    return jax.vmap(at)(q, v)


def _gradient(progress: Progress, tell: Tell) -> GradientResults:
    """The derivatives of the hand's height after half a second by every mass, checked."""
    system = arm()
    q0, v0 = np.array(START), np.zeros(7)

    def height(mass: jax.Array) -> jax.Array:
        run = simulate(system.replace(mass=mass), q0, v0, dt=5e-3, steps=100, save_every=100)
        return body_poses(system, run.q[-1])[-1, 2, 3]

    mass, step = np.asarray(system.bodies.mass), 1e-4
    progress("gradient", 0, len(mass) + 1)
    value_and_gradient = jax.jit(jax.value_and_grad(height))
    exact = np.asarray(value_and_gradient(mass)[1])
    largest = float(np.abs(exact).max())
    tell(f"gradient through 100 steps: up to {largest:.3g} m/kg")
    differences = np.zeros(len(mass))
    for i, along in enumerate(step * np.eye(len(mass))):
        progress("gradient", i + 1, len(mass) + 1)
        above, below = (float(value_and_gradient(m)[0]) for m in (mass + along, mass - along))
        differences[i] = (above - below) / (2 * step)
    progress("gradient", len(mass) + 1, len(mass) + 1)
    return GradientResults(
        largest_derivative_m_per_kg=largest,
        relative_difference=float(np.abs(exact - differences).max()) / largest,
    )


class _Descent(NamedTuple):
    """Times (m,) in s, measured and found angles (m, 7) in rad, and the estimates (n, 2)."""

    t: np.ndarray
    measured: np.ndarray
    found: np.ndarray
    estimates: np.ndarray


def _payload(progress: Progress, tell: Tell) -> tuple[PayloadResults, _Descent]:
    """Identifies a payload's mass and height from a noisy recording, by gradient descent."""
    import optax

    system, dt, steps, noise, iterations = arm(), 4e-3, 250, 1e-3, 150
    parameters = Parameters(system, ["payload/mass", "payload/com_z"])
    q0, v0 = np.array(START), np.zeros(7)
    stiffness = np.array([200.0, 200.0, 150.0, 150.0, 40.0, 40.0, 10.0])
    damping = np.array([20.0, 20.0, 15.0, 15.0, 3.0, 3.0, 0.3])
    rates = np.array([5.0, 6.0, 4.0, 7.0, 9.0, 8.0, 6.0])

    def controller(t: jax.Array, q: jax.Array, v: jax.Array) -> Any:
        """Joint springs towards a moving target, which know nothing of the payload."""
        return stiffness * (q0 + 0.2 * jnp.sin(rates * t) - q) - damping * v

    scale = np.array([1.0, 0.1])  # so that both unknowns are of order one

    def loss(x: jax.Array, measured: jax.Array) -> tuple[jax.Array, jax.Array]:
        loaded = parameters.with_values(x * scale)
        q = simulate(loaded, q0, v0, dt=dt, steps=steps, control=controller).q
        return jnp.mean((q - measured) ** 2) / noise**2, q

    optimizer = optax.adam(optax.cosine_decay_schedule(0.1, iterations))

    @jax.jit
    def descend(x: Any, state: Any, measured: Any) -> tuple[Any, Any, jax.Array]:
        """The next unknowns, the state of the optimizer, and the angles (m, 7) before."""
        (_, q), gradient = jax.value_and_grad(loss, has_aux=True)(x, measured)
        change, state = optimizer.update(gradient, state)
        return optax.apply_updates(x, change), state, q

    progress("payload", 0, iterations)
    x, truth = np.array([0.1, 0.0]), np.array(PAYLOAD)
    state = jax.jit(optimizer.init)(x)
    clean = np.asarray(descend(truth / scale, state, np.zeros((steps + 1, 7)))[2])
    measured = clean + noise * np.random.default_rng(0).normal(size=clean.shape)
    estimates = []
    for i in range(iterations):
        progress("payload", i, iterations)
        estimates.append(np.asarray(x) * scale)
        x, state, _ = descend(x, state, measured)
    fitted = np.asarray(descend(x, state, measured)[2])
    progress("payload", iterations, iterations)
    found = np.asarray(x) * scale
    mass, height = map(float, found)
    tell(f"payload: {mass:.4f} kg found, {PAYLOAD[0]:.4f} kg true")
    results = PayloadResults(
        true=PayloadNumbers(mass_kg=PAYLOAD[0], height_m=PAYLOAD[1]),
        found=PayloadNumbers(mass_kg=mass, height_m=height),
        relative_error=float(np.max(np.abs(found - truth) / truth)),
        noise_rad=noise,
        iterations=iterations,
    )
    return results, _Descent(dt * np.arange(steps + 1), measured, fitted, np.array(estimates))


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
