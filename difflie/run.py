"""Runs a configured simulation and writes what came out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from .constraints import assemble
from .integrators import by_name
from .io import load
from .io.config import Config, ConfigError
from .io.couplings import coupled
from .io.loops import closed
from .io.results import machine, save_arrays, save_table
from .quantities import Coordinates, Curve, Effort, Energy, Passive, Velocities, curve
from .simulate import Trajectory, simulate
from .system import ModelError, System
from .system.arguments import checked
from .system.validation import nearest, shown
from .view.plots import curve_figure, save

_MEASURED = Coordinates(), Velocities(), Effort(), Passive(), Energy()
_FORCES = "effort", "passive"


def run(
    config: Config, out: Path | None, progress: Callable[[int, int], None] | None = None
) -> dict[str, Any]:
    """Simulates, writes `trajectory.npz`, the same as CSV and `motion.png`, returns the results.

    The files have the state, the efforts of the control and of the system by itself, and the
    energy; in the archive `NAME_labels` (n, 2) are the name and the unit of each column of NAME.
    What the method moves beyond q and v, such as multipliers, is in the archive as `states_NAME`.
    progress is called as by `simulate`. Raises `ConfigError` where the configuration does not fit
    the system it names.
    """
    system = load(
        config.system.robot(config.path.parent),
        base=config.system.base,
        gravity=config.system.gravity,
        loops=config.system.loops_file(config.path.parent),
    )
    system = coupled(system, config.couplings, config.path)
    system = _closed(config, system)
    table = config.simulation
    try:
        method = by_name(table.method)
    except ValueError as error:
        raise ConfigError(f"{config.path}: simulation.method: {error}") from None
    guess = _initial(config, system)
    q0, v0 = _assembled(config, system, *guess)
    trajectory = simulate(
        system,
        q0,
        v0,
        dt=table.dt,
        steps=table.steps,
        method=method,
        control=_control(config, system),
        save_every=table.save_every,
        progress=progress,
    )
    curves = {measured.name: curve(measured, system, trajectory) for measured in _MEASURED}
    if out is not None:
        _write(out, system, trajectory, curves)
    total = curves["energy"].values[:, -1]
    results = _results(config, system, trajectory, total)
    return results | _kept(system, guess, trajectory) if system.constraints else results


def _write(out: Path, system: System, trajectory: Trajectory, curves: dict[str, Curve]) -> None:
    """The trajectory as an archive, a table and a picture."""
    save_arrays(
        out / "trajectory.npz",
        t=trajectory.t,
        joints=np.array(system.joint_names),
        **{name: c.values for name, c in curves.items()},
        **{f"{name}_labels": np.array(c.labels).reshape(-1, 2) for name, c in curves.items()},
        **_own_states(trajectory),
    )
    columns = {
        f"{name} {entry} [{unit}]": column
        for name, c in curves.items()
        for (entry, unit), column in zip(c.labels, c.values.T, strict=True)
    }
    save_table(out / "trajectory.csv", {"t [s]": trajectory.t, **columns})
    # Forces that never act are left out.
    drawn = [c for name, c in curves.items() if name not in _FORCES or c.values.any()]
    save(curve_figure(drawn), out / "motion.png")


def _results(config: Config, system: System, trajectory: Trajectory, total: np.ndarray) -> dict:
    """total (m + 1,): the energy in J."""
    momentum = np.asarray(trajectory.momentum(system))
    return {
        "name": config.path.stem,
        "system": system.name,
        "method": config.simulation.method,
        "dt": config.simulation.dt,
        "steps": config.simulation.steps,
        "ok": bool(trajectory.result.ok),
        "within_limits": bool(trajectory.result.within_limits),
        "messages": trajectory.result.messages(),
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
    """How far assembly moved the guess (q, v), and how well the constraints were kept."""
    q, v = guess
    moved = np.abs(system.manifold.difference(q, trajectory.q[0])).max(initial=0)
    changed = np.abs(trajectory.v[0] - v).max(initial=0)
    position, velocity = trajectory.constraint_violation(system)
    return {
        "assembly": {"configuration": moved, "velocity": changed},
        "constraint_residual": np.asarray(position).max(),
        "constraint_rate": np.asarray(velocity).max(),
    }


def _own_states(trajectory: Trajectory) -> dict[str, Any]:
    """What the method moves beyond q and v, by name."""
    own = trajectory.states
    return {} if own is None else {f"states_{f.name}": getattr(own, f.name) for f in fields(own)}


def _closed(config: Config, system: System) -> System:
    """The system with the constraints of the configuration."""
    try:
        return closed(system, config.constraint, config.path)
    except ModelError as error:
        raise ConfigError(str(error)) from None


def _assembled(config: Config, system: System, q: Any, v: Any) -> tuple[Any, Any]:
    """The state near a guess that keeps the constraints."""
    try:
        return assemble(system, q, v)
    except ModelError as error:
        raise ConfigError(f"{config.path}: initial: {error}") from None


def _initial(config: Config, system: System) -> tuple[Any, Any]:
    table, t = config.initial, system.topology
    q = _list(config, "initial.q", table.q, system.nq, np.asarray(system.neutral()))
    v = _list(config, "initial.v", table.v, system.nv, np.zeros(system.nv))
    for key, values, vector, starts in (
        ("joints", table.joints, q, t.coordinate_start),
        ("rates", table.rates, v, t.velocity_start),
    ):
        scalar = {
            t.joints[b]: int(starts[b])
            for b in t.coordinate_joints
            if t.manifolds[b].plain and len(t.kinds[b]) == 1
        }
        for name, value in values.items():
            if name not in scalar:
                raise ConfigError(
                    f"{config.path}: initial.{key}: {system.name} has no joint {shown(name)} "
                    "with one "
                    f"degree of freedom{nearest(name, scalar)}"
                )
            if not np.isfinite(value):
                raise ConfigError(
                    f"{config.path}: initial.{key}.{name} is {value}; it must be finite"
                )
            vector[scalar[name]] = value
    try:
        q, v = checked(system, q=(q.tolist(), q.shape), v=(v.tolist(), v.shape))
    except ValueError as error:
        raise ConfigError(f"{config.path}: initial.q: {error}") from None
    return q, v


def _control(config: Config, system: System):
    table, nv = config.control, system.nv
    unfit = ("effort", "stiffness", "damping", "target") if system.actuators else ("command",)
    for name in unfit:
        if getattr(table, name) is not None:
            fix = "actuators; give control.command" if system.actuators else "no actuators"
            raise ConfigError(f"{config.path}: control.{name}: {system.name} has {fix}")
    if system.actuators:
        command = _list(config, "control.command", table.command, system.nu, np.zeros(system.nu))
        held = jnp.asarray(command, system.dtype)
        return lambda t, q, v: held
    zero = np.zeros(nv)
    values = {
        name: jnp.asarray(
            _list(config, f"control.{name}", getattr(table, name), nv, zero), system.dtype
        )
        for name in ("effort", "stiffness", "damping", "target")
    }
    if all(getattr(table, name) is None for name in values):
        return None
    if table.stiffness is not None and system.nq != nv:
        raise ConfigError(
            f"{config.path}: control.stiffness: {system.name} has joints that move on a group, "
            "towards which a spring on the coordinates is not defined; leave stiffness out"
        )

    def control(t, q, v):
        tau = values["effort"] - values["damping"] * v
        if table.stiffness is None:
            return tau
        return tau + values["stiffness"] * (values["target"] - q)

    return control


def _list(config: Config, key: str, given: list[float] | None, size: int, default: np.ndarray):
    if given is None:
        return np.array(default, float)
    if len(given) != size:
        raise ConfigError(f"{config.path}: {key} has {len(given)} numbers; {size} are needed")
    if not np.all(np.isfinite(given)):
        raise ConfigError(f"{config.path}: {key} is {given}; all must be finite")
    return np.array(given, float)
