"""Identifications described in TOML files, and what these build; their tables: `tables.py`.

    [system]                              [data]
    file = "pendulum.urdf"                columns.q = ["pos1", "pos2"]   # in the system's order
    gravity = [0.0, 0.0, -9.81]           columns.tau = ["tau1", "tau2"]
                                          time = "time"                  # s
    [[run]]                               scale.q = 0.0174533            # to SI; 1 if left out
    file = "swing_1.csv"                  resample = 0.002               # s, a uniform grid
    from = 0.0                            smooth = 41                    # rows: Savitzky-Golay,
    to = 3.0                              order = 2                      # gives v and a
    weight = 2.0                          every = 10                     # rows; one counts
                                          slow = 0.02                    # rad/s: do not count
    [[run]]                               [fit]
    file = "swing_2.csv"                  error = "torque"               # or "motion", "both"
    use = "validate"                      torque = 0.1                   # N m, deviation(s)
                                          position = 0.01                # rad, of motions
    [[parameter]]                         velocity = 0.1                 # rad/s
    path = "*/inertial"                   window = 0.5                   # s, of motions
                                          states = true                  # found at their starts
    [[parameter]]                         loss = "huber"                 # squares, cauchy
    path = "hinge*/friction"              limit = 2.0                    # deviations
    start = 0.1                           steps = 100
    lower = 0.0                           leave_out = true               # each run once
    prior = [0.1, 0.05]                   [validation]
    tied = true                           window = 0.5                   # s

    [[drive]]                             [[stribeck]]                   # as of difflie.Stribeck
    joint = "hinge1"                      joint = "hinge1"
    load_friction = 0.1                   breakaway = 0.2                # N m
    delay = 0.004                         stribeck_velocity = 0.1        # rad/s

    [[encoder]]                           # as of difflie.identify.Encoder
    joint = "hinge2"
    position_bias = 0.02                  # rad

A column may be an expression of columns, and the unit in a header is read and converted to SI:

    [data]
    columns.q = ["th1", "th2 - th1"]      # columns, numbers, pi, + - * / and parentheses
    columns.tau = ["9.13 * cur1", "`current 2` / 3"]                     # odd names in backquotes
    time = "stamp / 1000"

Without columns they are found by the names or the numbers of the joints: t; q1, dq1, tau1;
pos_elbow, vel_elbow, eff_elbow, as they are read from bags of ROS 2 and MCAP files, of whose topics
`topic` names one. Instead of smooth,

    lowpass = 20.0                        # Hz: Butterworth, forwards and backwards
    order = 4                             # of each

`every` and `slow` are of fits of torques alone. A `weight` of 2 counts as two of the run.

[[drive]] has the numbers of difflie.Drive; without `delay` no delay is estimated. With actuators
columns.tau are their commands, in their order and units; without [[parameter]] where [arm] says
commands = true, and else torques at joints. A table of what stands at a joint is for
several with joint = ["hinge1", "hinge2"]. Other actuators and forces have tables as
in difflie/io/couplings.py. Files without a header or times, and bodies in free flight:

    [data]                                [[parameter]]
    names = ["x", "y", "z", ...]          path = "body/inertia"
    rate = 148.0                          ratios = true                # its scale stays
    columns.q = ["w", "i", "j", "k", "x", "y", "z"]                    # of a free joint
    from = 0.02                           # s: of every run that gives no other

    [validation]
    observe = 10                          # rows of a window, which find the state it starts at

Contacts with the ground, whose reactions fits of torques eliminate:

    [data]
    closed = {left_foot = "switch1", right_foot = "switch2"}   # columns; not zero: closed
    closed_below = 0.002                  # m: or from the gaps of shapes that touch

Other sensors have tables [[sensor]], see `SensorTable`. Without [[parameter]] all numbers of an arm
are found, see `ArmTable`. Beside [[parameter]], [nearness] with a weight holds all bodies near the
file's.

A number that is no field of the machine has a name, and a function (system, value) -> system which
writes it wherever it belongs, in wear.py beside the file, if to import it is allowed by
--allow-code; see `difflie.parameters.Parameter`:

    [[parameter]]
    path = "wear"
    of = "wear:both_hinges"
    start = 0.1
    unit = "N m"

Files of runs are relative to the folder given with --data, or to that of the configuration; the
robot's file is sought beside the configuration first, then there. system.locked holds joints that
were not moved, such as `locked = {finger = 0.02}` (rad or m); they have no columns. A path
"*/inertial" skips frames without mass; inertias that no body has start at the nearest that one has.

The motion in a window starts at its first row; with `observe` the first rows determine the initial
state, and the others are predicted. Measured torques are held. Without columns.tau they are 0;
without columns.v motions start with differences of q, which fit.states and validation.observe
correct.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..io.config import MachineFile, read_machine_file
from ..io.loading import load_system, located
from ..io.modules import function
from ..io.tables import ConfigError, instance, rows_by_place
from ..parameters import InertiaRatios, Parameter, Parameters, Scaled
from ..quantities import JointWrench
from ..sensors import Encoder, Sensor, with_sensors
from ..system.frame import Frame
from ..system.system import System
from ..system.validation import format_value, warn
from .arm import ArmSettings, identify_arm
from .consistency import NominalPrior
from .fitting import Fit, fit
from .inverse_dynamics import InverseDynamics
from .least_squares import Improved, LevenbergMarquardt, Progress
from .losses import Cauchy, Huber, Loss, Squares
from .problem import Problem
from .reactions import with_closed_contacts
from .reading.logs import read_recording
from .readings import Readings
from .recordings import Recording
from .sensors import pose_readings, unwrapped
from .shooting import Shooting
from .tables import (
    ON_BODIES,
    ArmTable,
    DataTable,
    FitTable,
    NearnessTable,
    ParameterTable,
    RateCouplingTable,
    RunTable,
    SensorTable,
    ValidationTable,
    in_order,
)
from .torque_rows import RateCoupling


def exclusive_tables(
    parameter: list[ParameterTable],
    fit: FitTable,
    validation: ValidationTable,
    arm: ArmTable,
    nearness: NearnessTable,
    rate_coupling: list[RateCouplingTable],
    sensor: list[SensorTable],
) -> Iterator[str]:
    """The faults of tables that exclude each other: those of an arm, and of declared parameters."""
    if parameter:
        if arm != ArmTable() or rate_coupling:
            yield "[arm] and [[rate_coupling]] must be left out beside [[parameter]]"
        if nearness != NearnessTable(nearness.weight):
            yield "nearness must have its weight alone beside [[parameter]]"
    else:
        if sensor:
            yield "[[sensor]] must be left out without [[parameter]]: it is no part of an arm's fit"
        for name, own in (("fit", fit), ("validation", validation)):
            if own != type(own)():
                yield f"{name} must be left out without [[parameter]]: all of an arm is found"


def _has_others(fit: FitTable, run: list[RunTable]) -> Iterator[str]:
    if fit.leave_out and sum(r.use == "fit" for r in run) < 2:
        yield ('fit.leave_out is True; it must be left out, with less than two runs of use = "fit"')


def _has_times(data: DataTable, run: list[RunTable]) -> Iterator[str]:
    for i, own in enumerate(run):
        first = data.first if own.first is None else own.first
        last = data.last if own.last is None else own.last
        if (own.first, own.last) != (None, None):
            yield from (f"run[{i}].{fault}" for fault in in_order(first, last))


@dataclass(frozen=True, kw_only=True)
class Study(MachineFile):
    """A whole identification file.

    folder: that of the files of runs. encoder: the tables [[encoder]], of
    `difflie.identify.Encoder`, by their places, "encoder[0]".
    """

    command = "identify"
    data: DataTable
    run: list[RunTable]
    encoder: dict[str, dict[str, Any]]
    fit: FitTable
    validation: ValidationTable
    arm: ArmTable
    nearness: NearnessTable
    parameter: list[ParameterTable] = field(default_factory=list)
    rate_coupling: list[RateCouplingTable] = field(default_factory=list)
    sensor: list[SensorTable] = field(default_factory=list)
    conditions = _has_others, _has_times, exclusive_tables


def read_study(
    path: str | os.PathLike[str], data: Path | None = None, *, allow_code: bool = False
) -> Study:
    """The identification in a TOML file.

    data: the folder of the measured runs, and of the robot's file if that is not beside the TOML
    file; by default that of the TOML file.
    allow_code: whether Python modules that the file names may be imported, which runs them.
    Raises `ConfigError` for a missing or broken file, one that names modules if that is not
    allowed, and otherwise with all faults at once: unknown or missing keys (with the nearest known
    one) and values of a wrong type or out of range.
    """
    return read_machine_file(
        Study,
        path,
        allow_code,
        lambda tables, faults: {"encoder": rows_by_place(tables, "encoder", faults)},
        data,
    )


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
        closed=table.closed,
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
    if table.closed_below is not None:
        recording = with_closed_contacts(system, recording, table.closed_below)
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
    progress: Progress | None = None,
    improved: Improved | None = None,
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
        given = table.torque, table.unactuated
        problems.append(InverseDynamics.of(system, recordings, *given))
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


def arm_fitted(
    config: Study,
    system: System,
    runs: dict[str, list[Recording]],
    progress: Callable[[str], None] = lambda stage: None,
) -> Fit:
    """All numbers of an arm, as a file without parameters describes it; see `identify_arm`.

    Raises `ConfigError` and DataError for inputs that do not fit together.
    """
    if not runs["fit"]:
        raise ConfigError(f'{config.path}: no [[run]] has use = "fit"; give one')
    couplings = [RateCoupling(tuple(c.joints), tuple(c.ratios)) for c in config.rate_coupling]
    given = dataclasses.asdict(config.arm) | dataclasses.asdict(config.nearness)
    with located(f"{config.path}: "):
        settings = ArmSettings(**given, couplings=tuple(couplings))
        return identify_arm(system, runs["fit"], runs["validate"], settings, progress=progress)


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
    if table.kind in ON_BODIES:
        return ON_BODIES[table.kind](Frame(table.body, table.position, table.rotation))
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
