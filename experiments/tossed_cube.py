"""What do measured flights of a tossed cube tell of attitude propagation, and of the cube?

The state at the start is found from the first samples of each flight, and predicts the others up to
the first impact. The hand still touches some cubes in the first rows, which are left out.
configs/tossed_cube.toml says how many, and where the data comes from; DATA is the folder that holds
the runs it names.

    python experiments/tossed_cube.py --data DATA --out tossed_cube --json tossed_cube.json

Result, 30 flights of 7 to 19 samples (12 minutes on 2 busy CPU cores):
    Attitude predicted 0.092 deg rms with the inertia of a cube, 0.090 with the one found; tracking
    noise 0.027 deg. Of white noise of that size 0.04 to 0.10 would be seen: tracking errors last.
    No integrator shows in that: one step of RKMK4 over the longest flight, 0.12 s, adds 0.001 deg,
    of renormalised quaternions 0.01. All that are sound agree here.
    Steps that add 0.1 deg, worst toss: in 0.12 s none but Euler angles, 0.119 s; in 1 s of tumbling
    RKMK4 0.41 s, quaternions 0.13 s, Euler angles (which pass near their singularity) 0.026 s.
    Inertia over I_xx, errors from leaving out toss after toss: I_yy 0.989 +- 0.012, I_zz 0.942 +-
    0.016, I_xy 0.001 +- 0.010, I_xz 0.014 +- 0.013, I_yz 0.007 +- 0.011. A cube has 1, 1 and zeros:
    I_zz alone is away, by 3.6 errors; every other toss gives 0.99 and 0.97, the rest 0.99 and 0.93.
    The centre of mass is 0.087 +- 0.016 half edges, 5 mm, along z from the tracked centre. A cube
    that is that much heavier at the face there would have I_yy / I_xx = 1 and I_zz / I_xx = 0.93 to
    0.94, so that both findings may have this one cause.
    Half edge from gravity 53.31 +- 0.03 mm, where 52.4 is quoted for this cube. Buoyancy and the
    air that moves along would take 0.3 off, drag as the flights have it 0.2 (twice that of a cube);
    0.4 mm are unexplained. With 148 rows a second, as quoted, it is 0.2 more, but the recorded
    velocities are differences over 1 / 148.3 s.
    The angular velocity is that of the body: 0.04 rad/s rms from differences of the attitude, where
    axes of the world give 3.0.

Why four rows are left out: run backwards, the flights miss the attitudes of the first four rows by
0.20, 0.11, 0.06 and 0.05 deg rms, up to 0.7, where noise would show 0.03. Those who cut this data
begin a toss with two rows that fall within 1 m/s^2 of 9.81 on average: a hand may still push. It
matters (attitudes alone, errors 0.024 to 0.008 and 0.014 to 0.022):

    rows left out    0       1       2       3       4       5       6
    I_yy / I_xx      0.944   0.963   0.976   0.982   0.989   0.987   0.996
    I_zz / I_xx      0.934   0.940   0.939   0.931   0.941   0.946   0.941

Less the last rows, with drag on the rotation, tracking errors linear in the pose, or noise like its
neighbours (0.3 from row to row) these move by less than two errors. Five tosses tell three quarters
of either: errors from the scores of tosses, without regard to what each tells, are up to two fifths
smaller, and those of blocks that cut across tosses 0.008 and 0.012.
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
from difflie.identify.files import read_study
from difflie.io.results import machine, save_json
from difflie.view.figures import figure, label, save

CONFIG = Path(__file__).parent.parent / "configs" / "tossed_cube.toml"
FIRST = 6  # samples that find the state; the others are predicted
LIMIT = 0.1  # degrees


@dataclass
class Options:
    """data: the folder of the measurements; out: a folder for the figure; json: a file.

    start: what is left out of a flight (s), as in the configuration where it is not given.
    """

    data: Path
    start: float = read_study(CONFIG).data.first or 0.0
    out: Path = Path("tossed_cube")
    json: Path | None = None


def flights(data: Path) -> list[di.Recording]:
    """The tosses up to their first impact; v (n, 3) is the angular velocity that was recorded."""
    table = read_study(CONFIG).data
    q = table.columns["q"]
    return [
        di.read_recording(
            data / run.file, names=table.names, rate=table.rate, q=q, v=["wx", "wy", "wz"]
        ).between(-np.inf, run.last or np.inf)
        for run in read_study(CONFIG).run
    ]


def turns(toss: di.Recording) -> Rotation:
    assert toss.q is not None
    return Rotation.from_quat(toss.q[:, [1, 2, 3, 0]])


def frame_of_angular_velocity(tosses: list[di.Recording]) -> dict[str, float]:
    """How far the recorded one is from that of the attitudes, rms in rad/s, by frame."""
    off: dict[str, list[NDArray]] = {"body": [], "world": []}
    for toss in tosses:
        assert toss.v is not None
        turn, dt = turns(toss), np.diff(toss.t)[:, None]
        told = (toss.v[1:] + toss.v[:-1]) / 2
        off["body"].append((turn[:-1].inv() * turn[1:]).as_rotvec() / dt - told)
        off["world"].append((turn[1:] * turn[:-1].inv()).as_rotvec() / dt - told)
    return {name: float(np.sqrt(np.mean(np.concatenate(x) ** 2))) for name, x in off.items()}


def rate_of_velocities(tosses: list[di.Recording]) -> float:
    """Rows in a second, by the angular velocities: medians of three of turns over their times."""
    rates: list[NDArray] = []
    for toss in tosses:
        assert toss.v is not None
        turn = turns(toss)
        step = (turn[:-1].inv() * turn[1:]).as_rotvec()
        rates.append((toss.v[1:] / step)[np.abs(step) > 5e-3])
    return float(np.median(np.concatenate(rates)))


def left_out(
    whole: list[di.Recording], tosses: list[di.Recording], system: dl.System, q: NDArray, v: NDArray
) -> NDArray:
    """Attitudes of the rows before the flights against these run backwards, in degrees.

    (tosses, rows) from the first row on; q and v are those at the starts of the flights.
    """
    count = len(whole[0].t) - len(tosses[0].t)
    turn, w = Rotation.from_quat(q[:, [1, 2, 3, 0]]), v[:, :3]
    inertia, dt = np.asarray(system.bodies.inertia[-1]), whole[0].t[1]
    off = np.empty((len(whole), count))
    for k in range(count):
        seen = Rotation.concatenate([turns(toss)[k] for toss in whole])
        run = turned_by_quaternions(inertia, turn, w, -dt, count - k)
        off[:, k] = np.degrees((seen.inv() * run).magnitude())
    return off


def of_a_line(rows: NDArray | int, at: NDArray | int) -> NDArray:
    """Of white noise 1 of so many rows: of a line through them less another sample, `at`."""
    away = np.asarray(at - (rows - 1) / 2)
    return np.sqrt(1 + 1 / rows + away**2 / (rows * (rows**2 - 1) / 12))


def errors_from_tosses(found: di.Fit, problem: di.Shooting) -> NDArray:
    """Standard errors (p,) from leaving out toss after toss, whatever the colour of their noise.

    The jackknife with a linear model, (H - H_k)^-1 g_k for each toss's part g_k of the gradient and
    H_k of the Hessian, the states at the starts being eliminated (MacKinnon and White 1985). Where
    few tosses tell most, errors from the g_k with H alone are too small.
    """
    states = jnp.asarray(found.own[0]).reshape(len(problem.dt), -1)

    def residual(unknown: tuple, dt, q, v, tau) -> jax.Array:
        one = dataclasses.replace(
            problem,
            dt=dt[None],
            q=q[None],
            v=v[None],
            tau=tau[None],
            deviation=problem.deviation[:1],
            follows=jnp.zeros(1, bool),
        )
        return one.residual(found.parameters.system_at(unknown[0]), unknown[1])

    def linear(unknown, *window):
        return residual(unknown, *window), jax.jacfwd(residual)(unknown, *window)

    each = jax.jit(jax.vmap(linear, in_axes=((None, 0), 0, 0, 0, 0)))
    windows = problem.dt, problem.q, problem.v, problem.tau
    r, (a, b) = jax.tree.map(np.asarray, each((jnp.asarray(found.x), states), *windows))
    h, g = [], []
    for r_k, a_k, b_k in zip(r, a, b, strict=True):
        a_k = a_k - b_k @ np.linalg.lstsq(b_k, a_k, rcond=None)[0]
        h.append(a_k.T @ a_k)
        g.append(a_k.T @ r_k)
    change = np.linalg.solve(sum(h) - np.stack(h), np.stack(g)[..., None])[..., 0]
    through = np.asarray(jax.jacfwd(found.parameters.values)(jnp.asarray(found.x)))
    return np.sqrt((1 - 1 / len(r)) * np.sum((change @ through.T) ** 2, axis=0))


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
    whole = flights(options.data)
    tosses = [toss.between(options.start, np.inf) for toss in whole]
    frame = frame_of_angular_velocity(tosses)
    config = read_study(CONFIG)
    system = dl.load(config.system.robot([CONFIG.parent]), base=config.system.base)
    poses = [dataclasses.replace(toss, v=None) for toss in tosses]
    problem = di.Shooting.of(system, poses, position=config.fit.position, free=True)

    declared = [dl.Parameter("cube/inertia", dl.parameters.InertiaRatios()), "cube/com", "gravity"]
    found = di.fit(dl.Parameters(system, declared), problem)
    print(found.message)
    robust = errors_from_tosses(found, problem)
    off, (q, v) = departures(problem, found.system, jnp.asarray(found.own[0]))
    rows = np.array([len(toss.t) for toss in tosses])
    noise = rms(angles(problem, off)) * np.sqrt(np.mean(rows) / np.mean(rows - 2))
    before = left_out(whole, tosses, found.system, np.asarray(q), np.asarray(v))
    ago = np.arange(before.shape[1], 0, -1)
    gap = np.isnan(np.asarray(problem.q)).any(axis=-1, keepdims=True)
    per_axis = rms(np.where(gap, np.nan, off).reshape(-1, 6), axis=0)

    # A cube predicts; what was found has seen the samples that are predicted.
    shape = system.bodies.inertia
    machines = {"cube": found.system.replace(inertia=shape), "found": found.system}
    predicted = {}
    for name, body in machines.items():
        begun = di.fit(dl.Parameters(body, []), problem.beginnings(FIRST))
        own = jnp.asarray(begun.own[0])
        predicted[name] = angles(problem, departures(problem, body, own)[0])[:, FIRST:]
    error = predicted["cube"]
    white = noise * of_a_line(FIRST, FIRST + np.arange(error.shape[1]))

    longest = max(toss.t[-1] - toss.t[0] for toss in tosses)
    steps = {f"{t:.3g}": step_sizes(found.system, q, v, t) for t in (float(longest), 1.0)}

    gravity = np.linalg.norm(found.values[-3:])
    columns = found.values, found.white_errors, found.standard_errors, robust
    kinds = "value", "std_error_white", "std_error", "std_error_from_tosses"
    parameters = zip(found.parameters.names, zip(*columns, strict=True), strict=True)
    figures: dict[str, Any] = {
        "name": "tossed_cube",
        "tosses": len(tosses),
        "samples_of_flight": rows,
        "rate_of_velocities_hz": rate_of_velocities(whole),
        "left_out_deg": rms(before, axis=0),
        "left_out_deg_worst": before.max(axis=0),
        "left_out_deg_of_white_noise": noise * rms(of_a_line(rows[:, None], -ago), axis=0),
        "angular_velocity_off_rad_s": frame,
        "parameters": {n: dict(zip(kinds, row, strict=True)) for n, row in parameters},
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
    table = Table("parameter", "value", "of white noise", "standard error", "from tosses")
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
    label(left, f"after sample {FIRST} [ms]", "attitude error [deg]", "Predicted attitude")
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
        kinds = ("std_error_white", "white noise"), ("std_error_from_tosses", "leaving out a toss")
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
