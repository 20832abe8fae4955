"""`difflie run`: simulates the system of a TOML file, and writes the results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from ..io import read_appearance
from ..io.config import Config, read_config
from ..io.loading import control_of, start_of
from ..io.modules import code_allowed
from ..io.results import save_arrays
from ..simulate import Trajectory, simulate
from ..simulate.export import recorded
from ..simulate.report import SimulationResults, simulation_report, simulation_results
from ..system import System
from ..view.report import Report
from ..view.report_page import write_html
from ..view.report_terminal import print_report
from .output import check_outputs, configuration, console, say, step_counter, write_results


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
        results, report = run_config(config, out, step_counter(file.name, status.update))
    print_report(console, report)
    if out is not None:
        say(f"written: {out}/trajectory.npz, {out}/trajectory.csv, {out}/report.html")
    write_results(json, results)
    if not results.ok:
        raise SystemExit(1)


def run_config(
    config: Config, out: Path | None = None, progress: Callable[[int, int], None] | None = None
) -> tuple[SimulationResults, Report]:
    """Simulates, writes `trajectory.npz`, the same as CSV and `report.html`; results and report.

    The files have the state, the efforts of the control and the passive efforts, and the energy; in
    the archive `NAME_labels` (n, 2) are the name and the unit of each column of NAME. The method's
    own variables beyond q and v, such as multipliers, are in the archive as `states_NAME`. progress
    is called as by `simulate`. Raises `ConfigError`, and `ModelError` for constraints, where the
    configuration does not fit the system it names.
    """
    about = configuration(config.path)
    system, guess, trajectory = simulated(config, progress)
    method = config.simulation.method
    results = simulation_results(trajectory, system, config.path.stem, method, guess)
    if out is None:
        return results, simulation_report(trajectory, system, results, about, whole=False)
    _write(out, system, trajectory)
    appearance = read_appearance(config.robot, system)
    report = simulation_report(trajectory, system, results, about, appearance)
    write_html(report, out)
    return results, report


def simulated(
    config: Config, progress: Callable[[int, int], None] | None = None
) -> tuple[System, tuple[Any, Any], Trajectory]:
    """The system of a configuration, the guess (q (nq,), v (nv,)) of its start, and its motion.

    Raises as `run_config`.
    """
    table = config.simulation
    system, q0, v0, guess, method = start_of(config, "simulation.method", table.method)
    trajectory = simulate(
        system,
        q0,
        v0,
        dt=table.dt,
        steps=table.steps,
        method=method,
        control=control_of(config.control, system, config.path, config.initial),
        save_every=table.save_every,
        progress=progress,
    )
    return system, guess, trajectory


def _write(out: Path, system: System, trajectory: Trajectory) -> None:
    """The trajectory as an archive and a table."""
    curves = {c.name: c for c in recorded(trajectory, system)}
    save_arrays(
        out / "trajectory.npz",
        t=trajectory.t,
        joints=np.array(system.joint_names),
        **{name: c.values for name, c in curves.items()},
        **{f"{name}_labels": np.array(c.labels).reshape(-1, 2) for name, c in curves.items()},
        **_own_states(trajectory),
    )
    trajectory.to_csv(system, out / "trajectory.csv")


def _own_states(trajectory: Trajectory) -> dict[str, Any]:
    """The method's own variables beyond q and v, by name."""
    own = trajectory.states
    return {} if own is None else {f"states_{f.name}": getattr(own, f.name) for f in fields(own)}
