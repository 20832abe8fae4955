"""What do measured flights of a tossed cube tell of attitude propagation, and of the cube?

The state at the start is found from the first ten samples of each flight, and predicts the others
up to the first impact. configs/tossed_cube.toml says where the data comes from; DATA is the folder
that holds the runs it names.

    python experiments/tossed_cube.py --data DATA --out tossed_cube --json tossed_cube.json

Result, 30 flights of 11 to 23 samples (8 minutes on 2 busy CPU cores):
    Attitude predicted with the inertia of a cube 0.13 deg rms, with the one found 0.12; tracking
    noise 0.05 deg. Of white noise of that size 0.06 to 0.11 would be seen: tracking errors last.
    No integrator shows in that: one step of RKMK4 over the longest flight, 0.15 s, adds 0.002 deg,
    of renormalised quaternions 0.03. All that are sound agree here.
    Steps that add 0.1 deg, worst toss: in 0.15 s none but Euler angles, 0.1 s; in 1 s of tumbling
    RKMK4 0.39 s, quaternions 0.13 s, Euler angles (which pass near their singularity) 0.026 s.
    Inertia over I_xx, errors from how tosses differ: I_yy 0.943 +- 0.019, I_zz 0.937 +- 0.017,
    I_xy 0.000 +- 0.009, I_xz 0.007 +- 0.005, I_yz -0.021 +- 0.012. A cube has 1, 1 and zeros: the
    diagonal is 3 and 4 errors away (5 and 6 of those for white noise, which are too small).
    The centre of mass is 0.099 +- 0.013 half edges, 5 mm, along z from the tracked centre. That
    does not turn a body in flight; a heavier face there would raise I_yy as well as I_xx, so that
    it does not explain the ratios; a colour of the noise that is the same in all tosses may.
    Half edge from gravity 53.48 +- 0.04 mm, where 52.4 is quoted for this cube: 149.5 rows a second
    instead of 148 would give that.
    The angular velocity is that of the body: 0.05 rad/s rms from differences of the attitude, where
    axes of the world give 3.0.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import numpy as np
import tyro
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.spatial.transform import Rotation

import difflie as dl
from difflie import identify as di
from difflie.io.results import machine, save_json
from difflie.io.study import read_study
from difflie.view.plots import figure, label, save

CONFIG = Path(__file__).parent.parent / "configs" / "tossed_cube.toml"
FIRST = 10  # samples that find the state; the others are predicted
LIMIT = 0.1  # degrees


@dataclass
class Options:
    """data: the folder of the measurements; out: a folder for the figure; json: a file."""

    data: Path
    out: Path = Path("tossed_cube")
    json: Path | None = None


def flights(data: Path) -> list[di.Recording]:
    """The tosses up to their first impact; v (n, 3) is the angular velocity that was recorded."""
    table = read_study(CONFIG).data
    (name, limit), q = *table.jump.items(), table.columns["q"]
    return [
        di.read_recording(
            data / run.file, names=table.names, rate=table.rate, q=q, v=["wx", "wy", "wz"]
        ).before_jump(q.index(name), limit)
        for run in read_study(CONFIG).run
    ]


def frame_of_angular_velocity(tosses: list[di.Recording]) -> dict[str, float]:
    """How far the recorded one is from that of the attitudes, rms in rad/s, by frame."""
    off: dict[str, list[NDArray]] = {"body": [], "world": []}
    for toss in tosses:
        assert toss.q is not None
        assert toss.v is not None
        turn, dt = Rotation.from_quat(toss.q[:, [1, 2, 3, 0]]), np.diff(toss.t)[:, None]
        told = (toss.v[1:] + toss.v[:-1]) / 2
        off["body"].append((turn[:-1].inv() * turn[1:]).as_rotvec() / dt - told)
        off["world"].append((turn[1:] * turn[:-1].inv()).as_rotvec() / dt - told)
    return {name: float(np.sqrt(np.mean(np.concatenate(x) ** 2))) for name, x in off.items()}


def errors_from_tosses(found: di.Fit, problem: di.Shooting) -> NDArray:
    """Standard errors (p,) from how the tosses differ, whatever the colour of their noise.

    H^-1 (sum g g^T) H^-1 with each toss's part g of the gradient (Liang and Zeger 1986), the
    states at the starts being eliminated toss by toss.
    """
    states = jnp.asarray(found.own[0]).reshape(len(problem.dt), -1)

    def residual(unknown: tuple, dt, q, v, tau) -> jax.Array:
        one = dataclasses.replace(
            problem, dt=dt[None], q=q[None], v=v[None], tau=tau[None], follows=jnp.zeros(1, bool)
        )
        return one.residual(found.parameters.machine(unknown[0]), unknown[1])

    def linear(unknown, *window):
        return residual(unknown, *window), jax.jacfwd(residual)(unknown, *window)

    each = jax.jit(jax.vmap(linear, in_axes=((None, 0), 0, 0, 0, 0)))
    windows = problem.dt, problem.q, problem.v, problem.tau
    r, (a, b) = jax.tree.map(np.asarray, each((jnp.asarray(found.x), states), *windows))
    h, g = np.zeros((a.shape[-1],) * 2), []
    for r_k, a_k, b_k in zip(r, a, b, strict=True):
        a_k = a_k - b_k @ np.linalg.lstsq(b_k, a_k, rcond=None)[0]
        h += a_k.T @ a_k
        g.append(a_k.T @ r_k)
    half = np.linalg.solve(h, np.stack(g, axis=1))
    through = np.asarray(jax.jacfwd(found.parameters.values)(jnp.asarray(found.x)))
    half = through @ half * np.sqrt(len(r) / (len(r) - 1))
    return np.sqrt(np.sum(half**2, axis=1))


@jax.jit
def departures(problem: di.Shooting, system: dl.System, own: jax.Array):
    """From measured to simulated poses (tosses, rows, 6): rad, then half edges; and the starts."""
    q, v = problem.motions(system, own)
    return problem.departure(system, q), (q[:, 0], v[:, 0])


def angles(problem: di.Shooting, off: jax.Array) -> NDArray:
    """Attitude errors (tosses, rows) in degrees, NaN after the flight."""
    gap = np.isnan(np.asarray(problem.q)).any(axis=-1)
    return np.where(gap, np.nan, np.degrees(np.linalg.norm(np.asarray(off)[..., :3], axis=-1)))


def rms(x: NDArray, axis: int | None = None) -> NDArray:
    return np.sqrt(np.nanmean(x**2, axis=axis))


def rk4(rate: Callable[[NDArray], NDArray], y: NDArray, h: float) -> NDArray:
    a = rate(y)
    b = rate(y + h / 2 * a)
    c = rate(y + h / 2 * b)
    return y + h / 6 * (a + 2 * b + 2 * c + rate(y + h * c))


def turned_by_quaternions(inertia: NDArray, turn: Rotation, w: NDArray, h: float, n: int):
    """RK4 of the quaternion's four numbers, which are normalised after each step."""

    def rate(y: NDArray) -> NDArray:
        (s, v), w = (y[:, :1], y[:, 1:4]), y[:, 4:]
        ds = -np.sum(v * w, axis=1, keepdims=True) / 2
        return np.concatenate((ds, (s * w + np.cross(v, w)) / 2, free(inertia, w)), axis=1)

    y = np.concatenate((turn.as_quat()[:, [3, 0, 1, 2]], w), axis=1)
    for _ in range(n):
        y = rk4(rate, y, h)
        y[:, :4] /= np.linalg.norm(y[:, :4], axis=1, keepdims=True)
    return Rotation.from_quat(y[:, [1, 2, 3, 0]])


def turned_by_euler_angles(inertia: NDArray, turn: Rotation, w: NDArray, h: float, n: int):
    """RK4 of yaw, pitch and roll, R = R_z(yaw) R_y(pitch) R_x(roll)."""

    def rate(y: NDArray) -> NDArray:
        _, pitch, roll, p, q, r = y.T
        yaw = (q * np.sin(roll) + r * np.cos(roll)) / np.cos(pitch)
        rates = yaw, q * np.cos(roll) - r * np.sin(roll), p + yaw * np.sin(pitch)
        return np.concatenate((np.stack(rates, axis=1), free(inertia, y[:, 3:])), axis=1)

    y = np.concatenate((turn.as_euler("ZYX"), w), axis=1)
    for _ in range(n):
        y = rk4(rate, y, h)
    return Rotation.from_euler("ZYX", y[:, :3])


def free(inertia: NDArray, w: NDArray) -> NDArray:
    """The angular acceleration without torques."""
    return np.linalg.solve(inertia, np.cross(w @ inertia, w).T).T


def step_sizes(system: dl.System, q: jax.Array, v: jax.Array, duration: float) -> dict[str, Any]:
    """Of each method what it adds to the attitude (degrees) after a duration (s), by its step (s).

    median and worst of the tosses; limit: the step at which the worst adds LIMIT, None where a
    single step adds less.
    """
    turn = Rotation.from_quat(np.asarray(q)[:, [1, 2, 3, 0]])
    w, inertia = np.asarray(v)[:, :3], np.asarray(system.bodies.inertia[-1])

    @jax.jit
    @jax.vmap
    def step(q, v, h):
        run = dl.simulate(system, q, v, dt=h, steps=1, method=dl.RKMK4())
        return run.q[-1], run.v[-1]

    def turned_by_rkmk(inertia, turn, w, h, n):
        state = q, v
        for _ in range(n):
            state = step(*state, jnp.full(len(q), h))
        return Rotation.from_quat(np.asarray(state[0])[:, [1, 2, 3, 0]])

    methods = {
        "RKMK4": turned_by_rkmk,
        "quaternion RK4": turned_by_quaternions,
        "Euler angles RK4": turned_by_euler_angles,
    }
    exact = turned_by_rkmk(inertia, turn, w, duration / 1024, 1024)
    counts = np.unique(np.round(np.geomspace(1, 256, 25)).astype(int))
    found = {}
    for name, method in methods.items():
        added = np.degrees(
            [
                (exact.inv() * method(inertia, turn, w, duration / n, n)).magnitude()
                for n in counts.tolist()
            ]
        )
        worst = added.max(axis=1)
        over = np.flatnonzero(worst > LIMIT)
        limit = None
        if len(over) and over[-1] + 1 < len(counts):
            k = over[-1]
            share = np.log(worst[k] / LIMIT) / np.log(worst[k] / worst[k + 1])
            limit = duration / counts[k] * (counts[k] / counts[k + 1]) ** share
        found[name] = {
            "step": duration / counts,
            "median": np.median(added, axis=1),
            "worst": worst,
            "limit": limit,
            "one_step": worst[0],
        }
    return found


def main(options: Options) -> None:
    tosses = flights(options.data)
    frame = frame_of_angular_velocity(tosses)
    config = read_study(CONFIG)
    system = dl.load(config.system.robot(CONFIG.parent), base=config.system.base)
    poses = [dataclasses.replace(toss, v=None) for toss in tosses]
    problem = di.Shooting.of(system, poses, position=config.fit.position, free=True)

    declared = [di.Parameter("cube/inertia", di.InertiaRatios()), "cube/com", "gravity"]
    found = di.fit(di.Parameters(system, declared), problem)
    print(found.message)
    robust = errors_from_tosses(found, problem)
    off, (q, v) = departures(problem, found.system, jnp.asarray(found.own[0]))
    noise = rms(angles(problem, off))
    gap = np.isnan(np.asarray(problem.q)).any(axis=-1, keepdims=True)
    per_axis = rms(np.where(gap, np.nan, off).reshape(-1, 6), axis=0)

    # A cube predicts; what was found has seen the samples that are predicted.
    shape = system.bodies.inertia
    machines = {"cube": found.system.replace(inertia=shape), "found": found.system}
    predicted = {}
    for name, body in machines.items():
        begun = di.fit(di.Parameters(body, []), problem.beginnings(FIRST))
        own = jnp.asarray(begun.own[0])
        predicted[name] = angles(problem, departures(problem, body, own)[0])[:, FIRST:]
    error = predicted["cube"]
    # Of a line through ten points with white noise, at the samples behind them.
    later = np.arange(FIRST, FIRST + error.shape[1]) - (FIRST - 1) / 2
    white = noise * np.sqrt(1 + 1 / FIRST + later**2 / (FIRST * (FIRST**2 - 1) / 12))

    longest = max(toss.t[-1] for toss in tosses)
    steps = {f"{t:.3g}": step_sizes(found.system, q, v, t) for t in (float(longest), 1.0)}

    gravity = np.linalg.norm(found.values[-3:])
    rows = zip(found.parameters.names, found.values, found.standard_errors, robust, strict=True)
    figures: dict[str, Any] = {
        "name": "tossed_cube",
        "tosses": len(tosses),
        "samples_of_flight": [len(toss.t) for toss in tosses],
        "angular_velocity_off_rad_s": frame,
        "parameters": {
            n: {"value": x, "std_error": e, "std_error_from_tosses": r} for n, x, e, r in rows
        },
        "half_edge_m": 9.81 / gravity,
        "half_edge_std_error_m": 9.81 / gravity**2 * robust[-1],
        "tracking_noise_deg": noise,
        "tracking_noise_by_axis": per_axis,
        "predicted_deg": {name: rms(x) for name, x in predicted.items()},
        "predicted_deg_by_sample": rms(error, axis=0),
        "white_noise_deg_by_sample": white,
        "steps": steps,
        "machine": machine(),
    }
    show(figures)
    print(f"figure: {draw(figures, error, options.out / 'tossed_cube.png')}")
    if options.json is not None:
        save_json(options.json, figures)


def show(figures: dict[str, Any]) -> None:
    console = Console()
    table = Table("parameter", "value", "standard error", "from tosses")
    for name, row in figures["parameters"].items():
        table.add_row(name, *(f"{x:.4g}" for x in row.values()))
    console.print(table)
    table = Table("after (s)", "method", f"step for {LIMIT} deg (s)", "one step adds (deg)")
    for after, methods in figures["steps"].items():
        for name, row in methods.items():
            limit = "longer than that" if row["limit"] is None else f"{row['limit']:.3g}"
            table.add_row(after, name, limit, f"{row['one_step']:.2g}")
    console.print(table)
    for key, value in figures.items():
        if key not in ("parameters", "steps", "machine"):
            print(f"{key}: {value}")


def draw(figures: dict[str, Any], error: NDArray, path: Path) -> Path:
    canvas, axes = figure(1, 3, (17.0, 4.2))
    left, middle, right = axes[0]
    ahead = 1e3 * np.arange(1, error.shape[1] + 1) / read_study(CONFIG).data.rate
    left.plot(ahead, error.T, ".", color="#bbbbbb", markersize=4)
    left.plot(ahead, figures["predicted_deg_by_sample"], label="rms of tosses")
    left.plot(ahead, figures["white_noise_deg_by_sample"], "--", label="white noise")
    left.axhline(figures["tracking_noise_deg"], color="#444444", linewidth=1, label="tracking")
    label(left, "after the tenth sample [ms]", "attitude error [deg]", "Predicted attitude")
    methods = figures["steps"]["1"]
    for k, (name, row) in enumerate(methods.items()):
        middle.loglog(row["step"], np.maximum(row["worst"], 1e-12), f"C{k}", label=name)
        middle.loglog(row["step"], np.maximum(row["median"], 1e-12), f"C{k}:")
    middle.axhline(LIMIT, color="#444444", linewidth=1)
    middle.set_ylim(1e-8, 400)
    label(middle, "step [s]", "added error [deg]", "1 s of tumbling: worst, median dotted")
    names = [name for name in figures["parameters"] if "I_" in name]
    for k, name in enumerate(names):
        row = figures["parameters"][name]
        cube = 1.0 if name[7] == name[8] else 0.0
        away = row["value"] - cube
        kinds = ("std_error", "white noise"), ("std_error_from_tosses", "tosses differ")
        for i, (key, text) in enumerate(kinds):
            told = text if k == 0 else None
            at = k + 0.2 * i - 0.1
            right.errorbar(at, away, 2 * row[key], fmt=f"C{i}o", capsize=3, label=told)
    right.axhline(0, color="#444444", linewidth=1)
    right.set_xticks(range(len(names)), [name[5:9] for name in names])
    label(right, "inertia over I_xx", "difference, 2 standard errors", "Away from a cube")
    return save(canvas, path)


if __name__ == "__main__":
    main(tyro.cli(Options))
