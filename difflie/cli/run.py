"""`difflie run`: simulates the system of a TOML file, and writes the results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from ..constraints import assemble
from ..integrators import by_name
from ..io.config import Config, read_config
from ..io.joint_control import control_of
from ..io.loading import load_system, located, state_of
from ..io.loops import closed
from ..io.modules import code_allowed
from ..io.results import machine, save_arrays
from ..quantities import Curve, LimitLeft, curve
from ..simulate import Trajectory, simulate
from ..simulate.export import recorded
from ..system import System
from ..view.simulation import Simulated, write_report
from .output import check_outputs, configuration, console, say, step_counter, write_results
from .picture import pictured


def run(
    file: Annotated[Path, tyro.conf.Positional],
    out: Path | None = None,
    json: Path | None = None,
    allow_code: bool = False,
) -> None:
    """Run the simulation a TOML file describes.

    Args:
        file: the configuration; `python -m pydoc difflie.io.config` shows its keys.
        out: a folder for the trajectory (.npz, .csv), pictures and a report (HTML).
        json: a file for the results.
        allow_code: import the Python modules that the file names, which runs them; only for files
            that you trust. DIFFLIE_ALLOW_CODE=1 in the environment does the same.
    """
    config = read_config(file, allow_code=code_allowed(allow_code))
    check_outputs(out, json, "trajectory.npz", "trajectory.csv", "report.html")
    steps, left_out = config.simulation.saved, config.simulation.left_out
    if left_out:
        say(f"{file.name}: {left_out}")
    with console.status(f"{file.name}: compiling and running {steps} steps") as status:
        results = run_config(config, out, step_counter(file.name, status.update))
    if "assembly" in results:
        moved = results["assembly"]
        say(
            f"assembled: the initial coordinates moved by up to {moved['configuration']:.3g}, the "
            f"velocities by up to {moved['velocity']:.3g}; the constraints were kept to "
            f"{results['constraint_residual']:.2g}"
        )
    for message in results["messages"]:
        say(message)
    energy = results["energy"]
    say(
        f"energy {energy['start']:.6g} J at the start, {energy['end']:.6g} J at the end; "
        f"largest change {energy['largest_change']:.3g} J"
    )
    if out is not None:
        say(f"written: {out}/trajectory.npz, {out}/trajectory.csv, {out}/report.html")
    write_results(json, results)
    if not results["ok"]:
        raise SystemExit(1)


def run_config(
    config: Config, out: Path | None = None, progress: Callable[[int, int], None] | None = None
) -> dict[str, Any]:
    """Simulates, writes `trajectory.npz`, the same as CSV and `report.html`, returns the results.

    The files have the state, the efforts of the control and the passive efforts, and the energy; in
    the archive `NAME_labels` (n, 2) are the name and the unit of each column of NAME. The method's
    own variables beyond q and v, such as multipliers, are in the archive as `states_NAME`. progress
    is called as by `simulate`. Raises `ConfigError`, and `ModelError` for constraints, where the
    configuration does not fit the system it names.
    """
    about = configuration(config.path)
    system, guess, trajectory = simulated(config, progress)
    curves = {c.name: c for c in recorded(trajectory, system)}
    results = _results(config, system, trajectory, curves["energy"].values[:, -1])
    if system.constraints:
        results |= _kept(system, guess, trajectory)
    if out is not None:
        _write(out, system, trajectory, curves)
        seen = trajectory.computed()
        picture = pictured(config, system, seen)
        write_report(out, results, _simulated(system, trajectory, seen), about, [picture])
    return results


def simulated(
    config: Config, progress: Callable[[int, int], None] | None = None
) -> tuple[System, tuple[Any, Any], Trajectory]:
    """The system of a configuration, the guess (q (nq,), v (nv,)) of its start, and its motion.

    Raises as `run_config`.
    """
    table = config.simulation
    system = closed(load_system(config), config.constraint, config.path)
    with located(f"{config.path}: simulation.method: "):
        method = by_name(table.method)
    guess = state_of(system, config.initial, f"{config.path}: initial")
    with located(f"{config.path}: initial: "):
        q0, v0 = assemble(system, *guess)
    trajectory = simulate(
        system,
        q0,
        v0,
        dt=table.dt,
        steps=table.steps,
        method=method,
        control=control_of(config.control, system, config.path),
        save_every=table.save_every,
        progress=progress,
    )
    return system, guess, trajectory


def _write(out: Path, system: System, trajectory: Trajectory, curves: dict[str, Curve]) -> None:
    """The trajectory as an archive and a table."""
    save_arrays(
        out / "trajectory.npz",
        t=trajectory.t,
        joints=np.array(system.joint_names),
        **{name: c.values for name, c in curves.items()},
        **{f"{name}_labels": np.array(c.labels).reshape(-1, 2) for name, c in curves.items()},
        **_own_states(trajectory),
    )
    trajectory.to_csv(out / "trajectory.csv", system)


def _simulated(system: System, trajectory: Trajectory, seen: Trajectory) -> Simulated:
    """What the report shows; seen: the rows that were computed."""
    curves = {c.name: c for c in recorded(seen, system)}
    total, momentum = curves["energy"].values[:, -1], np.asarray(seen.momentum(system))
    drifts = {"energy [J]": np.abs(total - total[0])}
    if not np.any(np.asarray(system.gravity)):
        angular, linear = np.split(momentum - momentum[0], 2, axis=1)
        drifts["angular momentum [N m s]"] = np.linalg.norm(angular, axis=1)
        drifts["linear momentum [N s]"] = np.linalg.norm(linear, axis=1)
    violations: dict[str, np.ndarray] = {}
    if system.constraints:
        names = "positions [m or 1]", "velocities [m/s or 1/s]"
        kept = map(np.asarray, seen.constraint_violation(system))
        violations |= zip(names, kept, strict=True)
    return Simulated(
        motion=trajectory.plot(system),
        states=[curves["q"], curves["v"]],
        t=np.asarray(seen.t),
        drifts=drifts,
        violations=violations,
        limits=curve(LimitLeft(), system, seen),
    )


def _own_states(trajectory: Trajectory) -> dict[str, Any]:
    """The method's own variables beyond q and v, by name."""
    own = trajectory.states
    return {} if own is None else {f"states_{f.name}": getattr(own, f.name) for f in fields(own)}


def _results(config: Config, system: System, trajectory: Trajectory, total: np.ndarray) -> dict:
    """total (m + 1,): the energy in J. The steps are those that were made."""
    momentum, result = np.asarray(trajectory.momentum(system)), trajectory.result
    failed = min(int(result.nonfinite_step), int(result.unsolved_step))
    return {
        "name": config.path.stem,
        "system": system.name,
        "method": config.simulation.method,
        "dt": config.simulation.dt,
        "steps": min(result.steps, failed - 1),
        "ok": bool(result.ok),
        "within_limits": bool(result.within_limits),
        "messages": result.messages(),
        "energy": {
            "start": total[0],
            "end": total[-1],
            "largest_change": np.abs(total - total[0]).max(),
        },
        "momentum": {"start": momentum[0], "end": momentum[-1]},
        "constraint_error": np.asarray(trajectory.constraint_error(system)).max(),
        "final": {"t": trajectory.t[-1], "q": trajectory.q[-1], "v": trajectory.v[-1]},
        "machine": machine(),
    }


def _kept(system: System, guess: tuple[Any, Any], trajectory: Trajectory) -> dict[str, Any]:
    """By how much assembly moved the guess (q, v), and the violation of the constraints."""
    q, v = guess
    moved = np.abs(system.manifold.difference(q, trajectory.q[0])).max(initial=0)
    changed = np.abs(trajectory.v[0] - v).max(initial=0)
    position, velocity = trajectory.constraint_violation(system)
    return {
        "assembly": {"configuration": moved, "velocity": changed},
        "constraint_residual": np.asarray(position).max(),
        "constraint_rate": np.asarray(velocity).max(),
    }
