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

from .forces.at_joint import AtJoint
from .identify import (
    Cauchy,
    DataError,
    Encoder,
    Fit,
    Huber,
    InverseDynamics,
    LevenbergMarquardt,
    Loss,
    Problem,
    Recording,
    Shooting,
    Squares,
    fit,
    log_warnings,
    read_recording,
    whiteness,
    with_encoders,
)
from .io import load, save
from .io.couplings import coupled
from .io.files import file_name
from .io.results import machine, save_json
from .io.study import RunTable, Study
from .io.tables import ConfigError, instance
from .parameters import InertiaRatios, Parameter, Parameters, Scaled
from .system import ModelError, System
from .system.validation import nearest, shown, warn
from .view import identification

_LAGS = 20
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
    resume: Path | None = None,
    keep: Path | None = None,
) -> dict[str, Any]:
    """Fits, or judges the given parameters, and returns the results.

    data: the folder of the runs; validate: more files to judge by. parameters: a JSON file with
    numbers by name, or one that was written before: then nothing is fitted. resume: such a file to
    begin the fit with, its states too. After each step that is better the numbers found so far are
    in `keep` and among the results in `out`, so that one may resume what was killed. Writes into
    `out` the results, pictures, `report.html`, and the machine as URDF without what stands at its
    joints.

    With fit.leave_out the results have under left_out the errors of each run with what a fit to the
    others finds.

    In files null stands for what is no finite number. Standard errors are infinite of parameters
    that the measurements do not determine, which fit.undetermined names; fit.unidentifiable has the
    directions in which these may move together, with the share of each. fit.condition is infinite
    where there are any.

    Raises `ConfigError` and `DataError` for what does not fit together.
    """
    system = _equipped(config, _loaded(config))
    free = _parameters(config, system)
    where = data or config.path.parent
    runs = {
        use: [_recording(config, system, where, run) for run in config.run if run.use == use]
        for use in ("fit", "validate")
    }
    runs["validate"] += [
        _recording(config, system, Path(), RunTable(str(path))) for path in validate
    ]
    for said in [
        said for use in runs.values() for run in use for said in log_warnings(system, run)
    ]:
        warn(said)
    # What cannot be judged is said before the fit.
    trials = {use: [_trial(config, system, run) for run in runs[use]] for use in runs}
    results: dict[str, Any] = {"name": config.path.stem, "system": system.name}
    if parameters is not None and resume is not None:
        raise ConfigError("given parameters are judged only; leave out those to resume with")
    start = None if resume is None else _start(free, resume)
    if parameters is None and resume is None:
        _check_start(config, free)
    if parameters is None:
        if not runs["fit"]:
            raise ConfigError(f'{config.path}: no [[run]] has use = "fit"; give one')
        begin = time.perf_counter()
        files = [path for path in (keep, out and out / "identification.json") if path is not None]

        def improved(x: NDArray, own: tuple[NDArray, ...]) -> None:
            so_far = results | _so_far(free, x, own)
            for path in files:
                save_json(path, so_far)

        found = _fitted(config, free, runs["fit"], start, progress, improved)
        final = found.system
        results |= _of_fit(found, time.perf_counter() - begin)
    else:
        found, values = None, _given(free, parameters)
        final = _with_given(free, values, parameters)
        results |= _of_given(free, values)
    judged = {use: [_judged(config, final, trial) for trial in trials[use]] for use in trials}
    for name, use in (("validation", "validate"), ("training", "fit")):
        results[name] = [row for judgement in judged[use] for row in judgement["rows"]]
    if found is not None and config.fit.leave_out:
        results["left_out"] = _left_out(config, found, trials["fit"], start, progress)
    results["machine"] = machine()
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        save_json(out / "identification.json", results)
        judgements = [*judged["fit"], *judged["validate"]]
        names = [name for name, _ in final.topology.velocity_labels]
        identification.report(out, results, found, judgements, names)
        # URDF has no words for actuators and sensors; the results have their numbers. What else it
        # cannot say `save` refuses, when all the rest is written.
        others = tuple(c for c in final.couplings if not isinstance(c, AtJoint))
        bare = dataclasses.replace(final, couplings=others, actuators=(), sensors=())
        save(bare, out / f"{file_name(system.name)}.urdf")
    return results


def _fitted(
    config: Study,
    free: Parameters,
    runs: Sequence[Recording],
    start: tuple[NDArray, list[NDArray] | None] | None,
    progress: Callable[[int, float], None] | None,
    improved: Callable[[NDArray, tuple[NDArray, ...]], None] | None = None,
) -> Fit:
    x, own = start or (None, None)
    problems = _problems(config, free.system, runs)
    if own is not None and [o.shape for o in own] != [p.own.shape for p in problems]:
        warn("the states to resume with are those of other windows: left out")
        own = None
    return fit(
        free,
        problems,
        start=x,
        own=own,
        loss=_LOSSES[config.fit.loss](config.fit.limit),
        minimiser=LevenbergMarquardt(max_steps=config.fit.steps, tolerance=config.fit.tolerance),
        progress=progress,
        improved=improved,
    )


def _left_out(
    config: Study,
    found: Fit,
    trials: Sequence[_Trial],
    start: tuple[NDArray, list[NDArray] | None] | None,
    progress: Callable[[int, float], None] | None,
) -> list[dict[str, Any]]:
    """The errors of each run with what a fit to the others finds: cross-validation.

    Fits begin where that to all runs began: one that went to a bound would not come back. Without a
    run where the others do not suffice, and all if the fit to them ended early, which is warned of.
    """
    if not found.converged:
        warn("the fit has not converged, and no run is left out")
        return []
    rows = []
    # The states are those of all runs.
    start = None if start is None else (start[0], None)
    for k, trial in enumerate(trials):
        others = [t.recording for t in (*trials[:k], *trials[k + 1 :])]
        try:
            without = _fitted(config, found.parameters, others, start, progress)
        except DataError as error:
            warn(f"without {trial.recording.name}: {error}")
            continue
        if not without.converged:
            warn(f"without {trial.recording.name}: {without.message}")
        rows += _judged(config, without.system, trial)["rows"]
    return rows


def _of_fit(found: Fit, seconds: float) -> dict[str, Any]:
    table = _table(found)
    return {
        "parameters": table,
        "fit": {
            "cost": found.cost,
            "variance": found.variance,
            "steps": found.steps,
            "message": found.message,
            "condition": found.information.condition,
            "unidentifiable": [dict(row) for row in found.information.unidentifiable],
            "undetermined": [n for n, row in table.items() if np.isinf(row["std_error"])],
            "seconds": seconds,
        },
        "states": found.own,
        "converged": found.converged,
    }


def _so_far(free: Parameters, x: NDArray, own: tuple[NDArray, ...]) -> dict[str, Any]:
    """The results of a fit that has not ended, for one that goes on."""
    values = np.asarray(free.values(x)).tolist()
    table = {name: {"value": value} for name, value in zip(free.names, values, strict=True)}
    return {"parameters": table, "states": own, "fit": None, "converged": False}


def _of_given(free: Parameters, values: NDArray) -> dict[str, Any]:
    rows = zip(free.names, free.units, np.asarray(free.initial), values, strict=True)
    table = {
        n: {"unit": u, "start": s, "value": v, "std_error": None, "std_error_blockwise": None}
        for n, u, s, v in rows
    }
    return {"parameters": table, "fit": None, "converged": None}


def _loaded(config: Study) -> System:
    table, folder = config.system, config.path.parent
    return load(
        table.robot(folder),
        base=table.base,
        gravity=table.gravity,
        loops=table.loops_file(folder),
    )


def _equipped(config: Study, system: System) -> System:
    """With the actuators, other forces and encoders of the file."""
    system = coupled(system, config.couplings, config.path)
    for i, table in enumerate(config.encoder):
        encoder = instance(Encoder, table, config.path, f"encoder[{i}]")
        try:
            system = with_encoders(system, encoder)
        except ModelError as error:
            raise ConfigError(f"{config.path}: encoder[{i}]: {error}") from None
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


def _check_start(config: Study, free: Parameters) -> None:
    """Raises `ConfigError` where the system has a number that no free ones make."""
    try:
        _ = free.start
    except ValueError as error:
        raise ConfigError(f"{config.path}: [[parameter]]: {error}") from None


def _recording(config: Study, system: System, folder: Path, run: RunTable) -> Recording:
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
    numbers = system.nq == system.nv
    if table.resample is not None:
        found = found.resampled(table.resample, None if numbers else system.manifold)
    if table.smooth is not None:
        if not numbers:
            raise ConfigError(
                f"{config.path}: data.smooth is for configurations that are numbers, and "
                f"{system.name} has attitudes among them; leave it out, and fit motions"
            )
        found = found.smoothed(table.smooth, table.order)
    found = dataclasses.replace(found, weight=run.weight)
    first = table.first if run.first is None else run.first
    last = table.last if run.last is None else run.last
    if first is not None or last is not None:
        found = found.between(-np.inf if first is None else first, np.inf if last is None else last)
    if run.first is not None or run.last is not None:
        part = f"{found.name} ({found.t[0]:.4g} to {found.t[-1]:.4g} s)"
        found = dataclasses.replace(found, name=part)
    return found


def _problems(config: Study, system: System, recordings: Sequence[Recording]) -> list[Problem]:
    table = config.fit
    problems: list[Problem] = []
    if table.error in ("torque", "both"):
        loose = np.inf if table.unactuated is None else table.unactuated
        problems.append(InverseDynamics.of(system, recordings, table.torque, loose))
    if table.error in ("motion", "both"):
        window = None
        if table.window is not None:
            window, *others = sorted({_rows(run, table.window) for run in recordings})
            if others:
                raise ConfigError(
                    f"{config.path}: in fit.window there are {window} to {others[-1]} rows, as the "
                    "runs have different steps; give data.resample"
                )
        problems.append(
            Shooting.of(
                system,
                recordings,
                window=window,
                position=table.position,
                velocity=np.inf if table.velocity is None else table.velocity,
                free=table.states,
                substeps=table.substeps,
            )
        )
    return problems


def _rows(recording: Recording, window: float) -> int:
    return max(1, round(window / float(np.median(np.diff(recording.t)))))


@dataclasses.dataclass(frozen=True)
class _Trial:
    """What a recording is judged by: None where it lacks what that needs; window in rows."""

    recording: Recording
    window: int
    torques: InverseDynamics | None
    motion: Shooting | None


def _trial(config: Study, system: System, recording: Recording) -> _Trial:
    window, observe = _rows(recording, config.validation.window), config.validation.observe
    if observe is not None and observe > window:
        raise ConfigError(
            f"{config.path}: validation.observe is {observe}, but a window of {recording.name} has "
            f"{window + 1} rows; take fewer, or a longer window"
        )
    torques = motion = None
    if recording.a is not None and recording.tau is not None and not system.constraints:
        try:
            torques = InverseDynamics.of(system, [recording])
        except DataError as error:
            warn(f"{error}; its torques are not judged")
    if recording.v is not None or observe is not None:
        try:
            motion = Shooting.of(
                system,
                [recording],
                window=window,
                position=config.fit.position,
                free=observe is not None,
                substeps=config.validation.substeps,
            )
        except DataError as error:
            warn(f"{error}; its motion is not judged")
    return _Trial(recording, window, torques, motion)


def _judged(config: Study, system: System, trial: _Trial) -> dict[str, Any]:
    """Errors of torques, and of motions in windows with the measured torques, joint by joint.

    torque_autocorrelation is the largest of the first twenty, over what white noise would have:
    where it is far above 1 the block-robust standard errors are the ones to believe.
    """
    labels = [name for name, _ in system.topology.velocity_labels]
    torque = colour = position = [None] * len(labels)
    needed = arrived = predicted = error = None
    if trial.torques is not None:
        there = np.asarray(trial.torques.there)
        needed = np.where(there, trial.torques.torques(system), np.nan)
        arrived = np.where(there, trial.torques.efforts(system), np.nan)
        off = needed - arrived
        torque = _rms(off)
        colour = [_colour(column) for column in off.T]
    if trial.motion is not None:
        # Of what was before each window, which their beginnings by themselves do not know.
        motion = dataclasses.replace(trial.motion, memories=trial.motion.remembered(system))
        observe, own = config.validation.observe, motion.own
        if observe is not None:
            own = jnp.asarray(fit(Parameters(system, []), motion.beginnings(observe)).own[0])
        predicted, off = (np.asarray(x) for x in _predicted(motion, system, own))
        gap = jnp.isnan(motion.q).any(axis=-1, keepdims=True)
        error = np.where(np.asarray(gap), np.nan, off)
        position = _rms(error[:, observe or 1 :].reshape(-1, system.nv))
    keys = "torque_rmse", "torque_autocorrelation", "position_rmse"
    rows = [
        {"run": trial.recording.name, "joint": name, **dict(zip(keys, errors, strict=True))}
        for name, *errors in zip(labels, torque, colour, position, strict=True)
    ]
    return {
        "recording": trial.recording,
        "rows": rows,
        "torque": needed,
        "effort": arrived,
        "windows": predicted,
        "departure": error,
        "window": trial.window,
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


def _colour(error: NDArray) -> float | None:
    known = error[~np.isnan(error)]
    if len(known) <= _LAGS:
        return None
    found, bound = whiteness(known, _LAGS)
    return float(np.abs(found).max() / bound)


def _table(found: Fit) -> dict[str, Any]:
    errors = found.standard_errors, found.blockwise_errors
    columns = found.parameters.units, found.start, found.values, *errors
    keys = "unit", "start", "value", "std_error", "std_error_blockwise"
    return {
        name: dict(zip(keys, row, strict=True))
        for name, *row in zip(found.parameters.names, *columns, strict=True)
    }


def _start(free: Parameters, path: Path) -> tuple[NDArray, list[NDArray] | None]:
    """The free numbers (n,) of those in a JSON file, and the states of an earlier fit, if any."""
    system = _with_given(free, _given(free, path), path)
    try:
        x = np.asarray(free.x_of(system))
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from None
    states = _json(path).get("states")
    try:
        return x, None if states is None else [np.asarray(own, float) for own in states]
    except (TypeError, ValueError):
        raise ConfigError(f"{path}: states are no lists of numbers; leave them out") from None


def _with_given(free: Parameters, values: NDArray, path: Path) -> System:
    """The system with the numbers (n,) of a JSON file."""
    try:
        return free.with_values(jnp.asarray(values, free.system.dtype))
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from None


def _json(path: Path) -> dict[str, Any]:
    """What a JSON file says; raises `ConfigError` for one that is missing or broken."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file") from None
    except OSError as error:
        raise ConfigError(f"{path}: this cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: this is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise ConfigError(f"{path}: this is no table of parameters, {{name: number}}")
    return found


def _given(free: Parameters, path: Path) -> NDArray:
    """The numbers (n,) in a JSON file, by name."""
    whole = _json(path)
    given = whole.get("parameters", whole)
    if not isinstance(given, dict):
        raise ConfigError(f"{path}: this is no table of parameters, {{name: number}}")
    for name in given:
        if name not in free.names:
            raise ConfigError(
                f"{path}: there is no parameter {shown(name)}{nearest(name, free.names)}"
            )
    values = []
    for name in free.names:
        value = given.get(name)
        value = value.get("value") if isinstance(value, dict) else value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ConfigError(
                f"{path}: the parameter {shown(name)} is {shown(value)}; give a number"
            )
        values.append(float(value))
    return np.array(values)
