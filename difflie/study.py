"""Runs a configured identification: measurements in, a machine and what is known of it out."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from .forces import Drive, attach
from .identify import (
    Cauchy,
    Fit,
    Huber,
    InertiaRatios,
    InverseDynamics,
    Loss,
    Parameter,
    Parameters,
    Problem,
    Recording,
    Scaled,
    Shooting,
    Squares,
    fit,
    read_recording,
    whiteness,
)
from .io import load, save
from .io.results import machine, save_json
from .io.study import RunTable, Study
from .io.tables import ConfigError
from .system import ModelError, System
from .system.validation import nearest
from .view import identification

_LOSSES: dict[str, Callable[[float], Loss]] = {
    "squares": lambda limit: Squares(),
    "huber": Huber,
    "cauchy": Cauchy,
}


def study(
    config: Study,
    data: Path | None = None,
    validate: Sequence[Path] = (),
    parameters: Path | None = None,
    out: Path | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> dict[str, Any]:
    """Fits, or judges the given parameters, and returns the figures.

    data: the folder of the runs; validate: more files to judge by. parameters: a JSON file with
    numbers by name, or one that was written before: then nothing is fitted. Writes into `out` the
    figures, pictures, `report.html`, and the machine as URDF without its drives.

    Raises `ConfigError` and `DataError` for what does not fit together.
    """
    table = config.system
    folder = config.path.parent
    system = load(
        table.robot(folder),
        base=table.base,
        gravity=table.gravity,
        loops=table.loops_file(folder),
    )
    system = _driven(config, system)
    free = _parameters(config, system)
    where = data or folder
    runs = [run for run in config.run if run.use == "fit"]
    judged = [run for run in config.run if run.use == "validate"]
    training = [_recording(config, where, run) for run in runs]
    judging = [_recording(config, where, run) for run in judged]
    judging += [_recording(config, Path(), RunTable(str(path))) for path in validate]
    figures: dict[str, Any] = {"name": config.path.stem, "system": system.name}
    if parameters is None:
        if not training:
            raise ConfigError(f'{config.path}: no [[run]] has use = "fit"; give one')
        begin = time.perf_counter()
        found = fit(
            free,
            _problem(config, system, training),
            loss=_LOSSES[config.fit.loss](config.fit.limit),
            max_steps=config.fit.steps,
            tolerance=config.fit.tolerance,
            progress=progress,
        )
        seconds = time.perf_counter() - begin
        result, values = found.system, found.values
        figures |= {
            "parameters": _table(found),
            "fit": {
                "cost": found.cost,
                "variance": found.variance,
                "steps": found.steps,
                "message": found.message,
                "condition": found.information.condition,
                "unidentifiable": [dict(row) for row in found.information.unidentifiable],
                "seconds": seconds,
            },
            "converged": found.converged,
        }
    else:
        found, values = None, _given(free, parameters)
        result = free.with_values(jnp.asarray(values, system.dtype))
        start = np.asarray(free.values(free.start))
        rows = zip(free.names, start, values, strict=True)
        figures |= {
            "parameters": {n: {"start": s, "value": v, "std_error": None} for n, s, v in rows},
            "fit": None,
            "converged": None,
        }
    judgements = [_judged(config, result, recording) for recording in (*training, *judging)]
    uses = ["fit"] * len(training) + ["validation"] * len(judging)
    rows = [
        (use, row)
        for use, judgement in zip(uses, judgements, strict=True)
        for row in judgement["rows"]
    ]
    figures["validation"] = [row for use, row in rows if use == "validation"]
    figures["training"] = [row for use, row in rows if use == "fit"]
    figures["machine"] = machine()
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        save_json(out / "identification.json", figures)
        identification.report(out, figures, found, judgements, joint_labels(system))
        # URDF has no words for drives; the figures have their numbers. What else it cannot say
        # `save` refuses, when all the rest is written.
        others = tuple(c for c in result.couplings if not isinstance(c, Drive))
        save(dataclasses.replace(result, couplings=others), out / f"{system.name}.urdf")
    return figures


def joint_labels(system: System) -> list[str]:
    """A name for each velocity (nv,): its joint's, numbered where that has several."""
    t = system.topology
    labels = [""] * system.nv
    for row, b in enumerate(t.row_body):
        if row not in t.mimic_rows:
            count = len(t.kinds[b])
            suffix = f"[{row - int(t.row_start[b])}]" if count > 1 else ""
            labels[int(t.row_velocity[row])] = t.joints[b] + suffix
    return labels


def _driven(config: Study, system: System) -> System:
    for i, table in enumerate(config.drive):
        given = {k: v for k, v in dataclasses.asdict(table).items() if v is not None}
        try:
            system = attach(system, Drive(**given))
        except ModelError as error:
            raise ConfigError(f"{config.path}: drive[{i}]: {error}") from None
    return system


def _parameters(config: Study, system: System) -> Parameters:
    declared = []
    for p in config.parameter:
        bounds = None if p.lower is None and p.upper is None else (p.lower, p.upper)
        prior = None if p.prior is None else (p.prior[0], p.prior[1])
        given = {"bounds": bounds, "start": p.start, "prior": prior}
        transform = Scaled() if p.scaled else InertiaRatios() if p.ratios else None
        given |= {"tied": p.tied, "fixed": p.fixed, "transform": transform}
        declared.append(Parameter(p.path, **given))
    try:
        return Parameters(system, declared)
    except ValueError as error:
        raise ConfigError(f"{config.path}: [[parameter]]: {error}") from None


def _recording(config: Study, folder: Path, run: RunTable) -> Recording:
    table = config.data
    found = read_recording(
        folder / run.file,
        time=table.time or "time",
        names=table.names,
        rate=table.rate,
        scale=table.scale,
        **table.columns,
    )
    for name, limit in table.jump.items():
        found = found.before_jump(table.columns["q"].index(name), limit)
    if table.resample is not None:
        found = found.resampled(table.resample)
    if table.smooth is not None:
        found = found.smoothed(table.smooth, table.order)
    if run.first is not None or run.last is not None:
        first = -np.inf if run.first is None else run.first
        last = np.inf if run.last is None else run.last
        found = found.between(first, last)
        part = f"{found.name} ({found.t[0]:.4g} to {found.t[-1]:.4g} s)"
        found = dataclasses.replace(found, name=part)
    return found


def _problem(config: Study, system: System, recordings: Sequence[Recording]) -> Problem:
    table = config.fit
    if table.error == "torque":
        return InverseDynamics.of(system, recordings, table.torque)
    return Shooting.of(
        system,
        recordings,
        window=None if table.window is None else _rows(recordings[0], table.window),
        position=table.position,
        velocity=np.inf if table.velocity is None else table.velocity,
        free=table.states,
        substeps=table.substeps,
    )


def _rows(recording: Recording, window: float) -> int:
    return max(1, round(window / float(np.median(np.diff(recording.t)))))


def _judged(config: Study, system: System, recording: Recording) -> dict[str, Any]:
    """Errors of torques, and of motions in windows with the measured torques, joint by joint.

    torque_autocorrelation is the largest of the first twenty, over what white noise would have:
    where it is far above 1 the standard errors of the parameters are too small.
    """
    window = _rows(recording, config.validation.window)
    labels = joint_labels(system)
    torque = colour = position = [None] * len(labels)
    needed = predicted = error = None
    if recording.a is not None:
        problem = InverseDynamics.of(system, [recording])
        needed = np.asarray(problem.torques(system))
        gaps = np.isnan(np.asarray(problem.tau))
        off = np.where(gaps, np.nan, needed - np.asarray(problem.efforts(system)))
        torque = _rms(off)
        colour = [_colour(column) for column in off.T]
    observe = config.validation.observe
    if recording.v is not None or observe is not None:
        motion = Shooting.of(
            system,
            [recording],
            window=window,
            position=config.fit.position,
            free=observe is not None,
            substeps=config.validation.substeps,
        )
        own = motion.own
        if observe is not None:
            own = jnp.asarray(fit(Parameters(system, []), motion.beginnings(observe)).own[0])
        predicted, off = (np.asarray(x) for x in _predicted(motion, system, own))
        gap = jnp.isnan(motion.q).any(axis=-1, keepdims=True)
        error = np.where(np.asarray(gap), np.nan, off)
        position = _rms(error[:, observe or 1 :].reshape(-1, system.nv))
    keys = "torque_rmse", "torque_autocorrelation", "position_rmse"
    rows = [
        {"run": recording.name, "joint": name, **dict(zip(keys, errors, strict=True))}
        for name, *errors in zip(labels, torque, colour, position, strict=True)
    ]
    return {
        "recording": recording,
        "rows": rows,
        "torque": needed,
        "windows": predicted,
        "departure": error,
        "window": window,
    }


@eqx.filter_jit
def _predicted(motion: Shooting, system: System, own: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Simulated configurations of windows, and how they depart from the measured ones."""
    q = motion.motions(system, own)[0]
    return q, motion.departure(system, q)


def _rms(error: NDArray) -> list[float | None]:
    """Column by column; None where there is nothing."""
    found = [column[~np.isnan(column)] for column in error.T]
    return [float(np.sqrt(np.mean(column**2))) if len(column) else None for column in found]


def _colour(error: NDArray) -> float:
    found, bound = whiteness(error[~np.isnan(error)])
    return float(np.abs(found).max() / bound)


def _table(found: Fit) -> dict[str, Any]:
    rows = zip(
        found.parameters.names, found.start, found.values, found.standard_errors, strict=True
    )
    return {n: {"start": s, "value": v, "std_error": e} for n, s, v, e in rows}


def _given(free: Parameters, path: Path) -> NDArray:
    """The numbers (n,) in a JSON file, by name."""
    try:
        given = json.loads(path.read_text())
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file") from None
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path}: this is not JSON: {error}") from None
    given = given.get("parameters", given) if isinstance(given, dict) else None
    if not isinstance(given, dict):
        raise ConfigError(f"{path}: this is no table of parameters, {{name: number}}")
    for name in given:
        if name not in free.names:
            raise ConfigError(f"{path}: there is no parameter {name!r}{nearest(name, free.names)}")
    values = []
    for name in free.names:
        value = given.get(name)
        value = value.get("value") if isinstance(value, dict) else value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ConfigError(f"{path}: the parameter {name!r} is {value!r}; give a number")
        values.append(float(value))
    return np.array(values)
