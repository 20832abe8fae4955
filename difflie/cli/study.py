"""The parts of an identification file: machine, sensors, parameters, recordings, and the fit."""

from __future__ import annotations

import dataclasses
import inspect
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..identify import (
    ArmSettings,
    Cauchy,
    Encoder,
    Fit,
    Huber,
    InverseDynamics,
    LevenbergMarquardt,
    Loss,
    NominalPrior,
    Problem,
    RateCoupling,
    Readings,
    Recording,
    Sensor,
    Shooting,
    Squares,
    fit,
    identify_arm,
    log_warnings,
    pose_readings,
    rate_warnings,
    read_recording,
    with_sensors,
)
from ..identify.fitting import save_bare
from ..identify.sensors.measured import unwrapped
from ..io.loading import load_system, located
from ..io.modules import function
from ..io.study import RunTable, SensorTable, Study
from ..io.tables import ConfigError, instance
from ..parameters import InertiaRatios, Parameter, Parameters, Scaled
from ..quantities import Accelerometer, Gyroscope, JointWrench, Origin, Pose
from ..system import System
from ..system.frame import Frame
from ..system.validation import format_value, warn
from .output import say

_LOSSES: dict[str, Callable[[float], Loss]] = {
    "squares": lambda limit: Squares(),
    "huber": Huber,
    "cauchy": Cauchy,
}


def system_of(config: Study) -> System:
    """The machine of the file, with its actuators, other forces and sensors.

    Raises `ConfigError` for parts that do not suit the robot.
    """
    system = load_system(config)
    for where, table in config.encoder.items():
        encoder = instance(Encoder, table, config.path, where)
        with located(f"{config.path}: {where}: "):
            system = with_sensors(system, encoder)
    for k, table in enumerate(config.sensor):
        with located(f"{config.path}: sensor[{k}]: "):
            sensor = Sensor(table.name, _quantity(config, k, table), table.scale, table.bias)
            system = with_sensors(system, sensor)
    return system


def parameters_of(config: Study, system: System) -> Parameters:
    """The parameters that the file declares; raises `ConfigError` for unsuitable ones."""
    where = f"{config.path}: parameter"
    declared = [
        Parameter(
            p.path,
            bounds=None if p.lower is None and p.upper is None else (p.lower, p.upper),
            start=p.start,
            prior=None if p.prior is None else (p.prior[0], p.prior[1]),
            tied=p.tied,
            fixed=p.fixed,
            transform=Scaled() if p.scaled else InertiaRatios() if p.ratios else None,
            of=None
            if p.of is None
            else function(p.of, config.path, f"{where}[{k}].of", config.allow_code),
            unit=p.unit,
        )
        for k, p in enumerate(config.parameter)
    ]
    with located(f"{config.path}: [[parameter]]: "):
        return Parameters(system, declared)


def recordings_of(
    config: Study, system: System, validate: Sequence[Path] = ()
) -> dict[str, list[Recording]]:
    """The recordings of the file by their use, "fit" or "validate".

    validate: more files of the second kind. Raises `ConfigError` and DataError for files that
    cannot be read or do not match the configuration.
    """
    runs = [(config.folder / run.file, run) for run in config.run]
    runs += [(path, RunTable(str(path), use="validate")) for path in validate]
    recordings: dict[str, list[Recording]] = {"fit": [], "validate": []}
    for name, (path, run) in zip(unique_names([path for path, _ in runs]), runs, strict=True):
        recordings[run.use].append(_recording(config, system, path, name, run))
    return recordings


def tell(system: System, runs: dict[str, list[Recording]]) -> None:
    """Says what was done to the recordings, and warns of what does not suit the machine."""
    for recording in (recording for use in runs.values() for recording in use):
        for note in recording.notes:
            say(note)
        for message in log_warnings(system, recording):
            warn(message)
    for message in rate_warnings(runs["fit"]):
        warn(message)


def check_original(system: System, original: Path | None) -> None:
    """Raises as `save_bare` where an original does not suit, before anything is fitted."""
    if original is not None:
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they come when it is written
            save_bare(system, Path(folder), original)


def unique_names(paths: Sequence[Path]) -> list[str]:
    """The names of files, with as many of their folders as tell different ones apart."""
    parts = [path.absolute().parts for path in paths]

    def tail(own: tuple[str, ...]) -> str:
        others = [other for other in parts if other != own]
        counts = range(1, len(own) + 1)
        return "/".join(own[-next(k for k in counts if own[-k:] not in {o[-k:] for o in others}) :])

    return [tail(own) for own in parts]


def _recording(config: Study, system: System, path: Path, name: str, run: RunTable) -> Recording:
    """A run of the file, filtered and cut as it says; name: that of its file."""
    table, numbers = config.data, system.nq == system.nv
    if not (table.columns or numbers):
        raise ConfigError(
            f"{config.path}: {system.name} has attitudes, whose columns have no names of joints; "
            "give data.columns.q"
        )
    recording = read_recording(
        path,
        time=table.time,
        names=table.names,
        rate=table.rate,
        scale=table.scale,
        topic=table.topic,
        joints=[joint for joint, _ in system.topology.velocity_labels],
        readings={sensor.name: sensor.columns for sensor in config.sensor},
        **table.columns,
    )
    recording = with_poses(config, dataclasses.replace(recording, name=name, weight=run.weight))
    if table.resample is not None:
        recording = recording.resampled(table.resample, None if numbers else system.manifold)
    recording = _smoothed(config, system, recording)
    if table.every > 1:
        recording = recording.thinned(table.every)
    if np.any(table.slow):
        recording = recording.without_slow(table.slow)
    first = table.first if run.first is None else run.first
    last = table.last if run.last is None else run.last
    if first is not None or last is not None:
        ends = -np.inf if first is None else first, np.inf if last is None else last
        recording = recording.between(*ends)
    if run.first is not None or run.last is not None:
        part = f"{recording.name} ({recording.t[0]:.4g} to {recording.t[-1]:.4g} s)"
        recording = dataclasses.replace(recording, name=part)
    return recording


def _smoothed(config: Study, system: System, recording: Recording) -> Recording:
    table = config.data
    if table.smooth is None and table.lowpass is None:
        return recording
    if system.nq != system.nv:
        key = "lowpass" if table.smooth is None else "smooth"
        raise ConfigError(
            f"{config.path}: data.{key} is for configurations that are numbers, and "
            f"{system.name} has attitudes among them; leave it out, and fit motions"
        )
    if table.smooth is not None:
        return recording.smoothed(table.smooth, table.order or 2)
    assert table.lowpass is not None
    return recording.lowpassed(table.lowpass, table.order or 4)


def fitted(
    config: Study,
    free: Parameters,
    recordings: Sequence[Recording],
    x: NDArray | None = None,
    own: Sequence[NDArray] | None = None,
    *,
    progress: Callable[[int, float], None] | None = None,
    improved: Callable[[NDArray, tuple[NDArray, ...]], None] | None = None,
) -> Fit:
    """The fit that the file describes to recordings, from x (n,) if given; see `fit`.

    own, progress and improved as for `fit`. Raises `ConfigError` and DataError for inputs that do
    not fit together.
    """
    if not recordings:
        raise ConfigError(f'{config.path}: no [[run]] has use = "fit"; give one')
    problems, table = _problems(config, free.system, recordings), config.fit
    if own is not None and [o.shape for o in own] != [p.own.shape for p in problems]:
        warn("the states to resume with are those of other windows: left out")
        own = None
    return fit(
        free,
        problems,
        start=x,
        own=own,
        loss=_LOSSES[table.loss](table.limit),
        minimiser=LevenbergMarquardt(max_steps=table.steps, tolerance=table.tolerance),
        progress=progress,
        improved=improved,
    )


def _problems(config: Study, system: System, recordings: Sequence[Recording]) -> list[Problem]:
    table, readings = config.fit, deviations_of_sensors(config)
    problems: list[Problem] = []
    if table.error in ("torque", "both"):
        loose = np.inf if table.unactuated is None else table.unactuated
        problems.append(InverseDynamics.of(system, recordings, table.torque, loose))
    if table.error == "torque" and readings:
        problems.append(Readings.of(system, recordings, readings))
    if table.error in ("motion", "both"):
        problems.append(
            Shooting.of(
                system,
                recordings,
                window=_window(config, recordings),
                position=table.position if table.positions else np.inf,
                velocity=np.inf if table.velocity is None else table.velocity,
                free=table.states,
                substeps=table.substeps,
                readings=readings,
            )
        )
    if config.nearness.weight is not None:
        problems.append(NominalPrior.of(system, config.nearness.weight))
    return problems


def arm_fitted(config: Study, system: System, runs: dict[str, list[Recording]]) -> Fit:
    """All numbers of an arm, as a file without parameters describes it; see `identify_arm`.

    Raises `ConfigError` and DataError for inputs that do not fit together.
    """
    if not runs["fit"]:
        raise ConfigError(f'{config.path}: no [[run]] has use = "fit"; give one')
    near, table = config.nearness, config.arm
    settings = ArmSettings(
        offsets=table.offsets,
        stribeck=table.stribeck,
        load_friction=table.load_friction,
        bandwidth=table.bandwidth,
        weight=near.weight,
        distance=near.distance,
        blocks=near.blocks,
        couplings=tuple(
            RateCoupling(tuple(c.joints), tuple(c.ratios)) for c in config.rate_coupling
        ),
    )
    with located(f"{config.path}: "):
        return identify_arm(system, runs["fit"], runs["validate"], settings)


def _window(config: Study, recordings: Sequence[Recording]) -> int | None:
    """The steps in fit.window, equal for all recordings; None without windows."""
    seconds = config.fit.window
    if seconds is None:
        return None
    steps, *others = sorted({recording.steps_in(seconds) for recording in recordings})
    if others:
        raise ConfigError(
            f"{config.path}: in fit.window there are {steps} to {others[-1]} rows, as the runs "
            "have different steps; give data.resample"
        )
    return steps


_ON_BODIES: dict[str, Callable[[Frame], Any]] = {
    "accelerometer": Accelerometer,
    "gyroscope": Gyroscope,
    "point": Origin,
    "pose": Pose,
}


def deviations_of_sensors(config: Study) -> dict[str, float | list[float]]:
    """The standard deviations of the sensors' readings, by name."""
    return {table.name: table.deviation for table in config.sensor}


def with_poses(config: Study, recording: Recording) -> Recording:
    """The recording with poses of which successive ones are near; quaternions are read as such."""
    readings = dict(recording.readings)
    for table in (table for table in config.sensor if table.kind == "pose"):
        read = np.asarray(readings[table.name])
        if len(table.columns) == 7:
            with located(f"{config.path}: {recording.name}: {table.name}: "):
                readings[table.name] = pose_readings(read[:, :4], read[:, 4:])
        elif len(table.columns) == 6:
            readings[table.name] = unwrapped(read)
    return dataclasses.replace(recording, readings=readings)


def _quantity(config: Study, k: int, table: SensorTable) -> Any:
    if table.kind in _ON_BODIES:
        return _ON_BODIES[table.kind](Frame(table.body, table.position, table.rotation))
    if table.kind == "wrench":
        return JointWrench(str(table.joint), table.position, table.rotation)
    found = function(table.kind, config.path, f"sensor[{k}].kind", config.allow_code)
    if inspect.isclass(found):
        name = found.__name__
        raise ConfigError(
            f"{format_value(table.kind)} is a class; name an object, such as {name.lower()} = "
            f"{name}(...) in that module"
        )
    return found
