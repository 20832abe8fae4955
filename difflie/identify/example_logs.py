"""Logs of shipped machines, simulated with numbers that differ from those of their files.

For tutorials and trials: the truth is known, and stands here.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from ..dynamics import integrate, inverse_dynamics
from ..forces import passive_force
from ..io import examples, load
from ..quantities import Accelerometer
from ..simulate import Sampled, simulate
from ..system import System
from ..system.frame import Frame

Columns = dict[str, np.ndarray]


def names() -> tuple[str, ...]:
    """The machines that have a log."""
    return tuple(_LOGS)


def write(name: str, folder: str | os.PathLike[str] = ".") -> Path:
    """Writes `NAME_log.csv` into a folder, and returns its path; in SI units, one row a sample.

    Raises ValueError for a machine without a log.
    """
    if name not in _LOGS:
        raise ValueError(f"no log of {name!r} can be simulated; there are {', '.join(_LOGS)}")
    columns = _LOGS[name]()
    file = Path(folder) / f"{name}_log.csv"
    file.parent.mkdir(parents=True, exist_ok=True)
    table = np.column_stack(list(columns.values()))
    header = ",".join(columns)
    np.savetxt(file, table, fmt="%.9g", delimiter=",", header=header, comments="")
    return file


def _arm() -> Columns:
    """Friction of 0.3 N m and 0.4 N m s/rad in all joints, 0.8 kg more in the hand.

    All joints move at once, at frequencies without a common period; torques have noise of 0.1 N m.
    An accelerometer at (0.02, -0.03, 0.08) m on the last link reads 0.1, -0.2 and 0.15 m/s^2 too
    much, with noise of 0.05 m/s^2.
    """
    arm = load(examples.path("arm7"))
    worn = arm.replace(
        damping=np.full(7, 0.4), friction=np.full(7, 0.3), mass=arm.bodies.mass.at[-1].add(0.8)
    )
    t, w = np.linspace(0.0, 10.0, 1001), np.array([1.3, 1.6, 1.9, 2.2, 2.5, 2.8, 3.1])
    q, v, a = (0.6 * w**k * np.sin(np.outer(t, w) + k * np.pi / 2) for k in range(3))
    torque = jax.vmap(lambda *x: inverse_dynamics(worn, *x) - passive_force(worn, *x[:2]))
    tau = torque(q, v, a) + np.random.default_rng(0).normal(0.0, 0.1, q.shape)
    sensor = Accelerometer(Frame("link7", (0.02, -0.03, 0.08)))
    read = jax.vmap(lambda q, v, a: sensor.at(arm, q, v, a, None, 0.0))(q, v, a)
    read = read + np.array([0.1, -0.2, 0.15])
    read = read + np.random.default_rng(1).normal(0.0, 0.05, read.shape)
    return {"t": t, **_numbered("q", q), **_numbered("tau", tau), **_numbered("imu", read)}


def _pendulum() -> Columns:
    """10 % more mass, damping of 0.05 N m s/rad and friction of 0.04 N m; 1 mrad of noise.

    A torque of 1 N m changes its frequency; the motor holds each command for 10 ms.
    """
    system = load(examples.path("simple_pendulum"))
    truth = system.replace(
        mass=1.1 * system.bodies.mass, damping=np.full(1, 0.05), friction=np.full(1, 0.04)
    )
    return _driven(truth, system.neutral(), np.zeros(1), lambda t: _chirp(t)[None], 1e-3)


def _satellite() -> Columns:
    """A hub with 15 % less moment of inertia about x and 20 % more about z; 1 mrad and 1 mrad/s.

    It tumbles while the hinges of its panels are driven.
    """
    system = load(examples.path("satellite"), base="free", gravity=(0.0, 0.0, 0.0))
    change = jnp.diag(jnp.array([0.85, 1.0, 1.2]))
    hub = system.bodies.inertia[0]
    hub = hub + jnp.diag(jnp.diag(hub)) @ (change - jnp.eye(3))
    truth = system.replace(inertia=system.bodies.inertia.at[0].set(hub))
    v = np.array([0.3, 0.5, -0.4, 0.0, 0.0, 0.0, 0.0, 0.0])

    def torque(t: jax.Array) -> jax.Array:
        return jnp.zeros(8).at[6:].set(2 * jnp.array([_chirp(t), jnp.cos(0.9 * t)]))

    return _driven(truth, system.neutral(), v, torque, 1e-3)


def _chirp(t: jax.Array) -> jax.Array:
    return jnp.sin(2 * np.pi * (0.3 + 0.05 * t) * t)


def _driven(
    truth: System,
    q: jax.Array,
    v: np.ndarray,
    torque: Callable[[jax.Array], jax.Array],
    noise: float,
) -> Columns:
    """A log of 10 s with 100 rows a second, of a machine under torques of time."""
    held = Sampled(lambda t, q, v: torque(t), rate=100)
    run = simulate(truth, q, v, dt=2e-3, duration=10.0, save_every=5, control=held)
    random = np.random.default_rng(0)
    errors = random.normal(0.0, noise, (2, *run.v.shape))
    return {
        "t": np.asarray(run.t),
        **_numbered("q", jax.vmap(lambda *x: integrate(truth, *x))(run.q, errors[0])),
        **_numbered("v", run.v + errors[1]),
        **_numbered("tau", jax.vmap(torque)(run.t)),
    }


def _numbered(name: str, rows: ArrayLike) -> Columns:
    return {f"{name}{k + 1}": column for k, column in enumerate(np.asarray(rows).T)}


_LOGS: dict[str, Callable[[], Columns]] = {
    "arm7": _arm,
    "simple_pendulum": _pendulum,
    "satellite": _satellite,
}
