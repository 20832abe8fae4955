"""Identifications described in TOML files.

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
columns.tau are their commands, in their order and units. A table of what stands at a joint is for
several with joint = ["hinge1", "hinge2"]. Other actuators and forces have tables as
in difflie/io/couplings.py. Files without a header or times, and bodies in free flight:

    [data]                                [[parameter]]
    names = ["x", "y", "z", ...]          path = "body/inertia"
    rate = 148.0                          ratios = true                # its scale stays
    columns.q = ["w", "i", "j", "k", "x", "y", "z"]                    # of a free joint
    from = 0.02                           # s: of every run that gives no other

    [validation]
    observe = 10                          # rows of a window, which find the state it starts at

Other sensors have tables [[sensor]], as in difflie/io/sensor_tables.py. Without [[parameter]] all
numbers of an arm are found; difflie/io/arm_tables.py has its tables.
Beside [[parameter]], [nearness] with a weight holds all bodies near the file's.

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

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from ..system.fields import number
from ..system.validation import format_value
from .arm_tables import ArmTable, NearnessTable, RateCouplingTable
from .config import SystemTable
from .couplings import OWN, TABLES, Force, couplings_of
from .fit_tables import FitTable, Seconds, ValidationTable
from .modules import check_code
from .sensor_tables import SensorTable
from .tables import read_file, rows_by_place
from .toml import ConfigError, Faults, read_toml

_Names = Literal["q", "v", "a", "tau"]
Quantity = Annotated[str, _Names]
QUANTITIES: tuple[str, ...] = get_args(_Names)


def _has_columns(columns: dict[str, list[str]]) -> Iterator[str]:
    if columns and "q" not in columns:
        yield f"columns is {format_value(columns)}; it must have the columns of q, or be left out"
    for quantity in (name for name, names in columns.items() if not names):
        yield f"columns.{quantity} is []; it must be the names of one column or more"


def _has_scales(scale: dict[str, float]) -> list[str]:
    zero = {quantity: factor for quantity, factor in scale.items() if factor == 0}
    return [f"scale.{name} is {zero[name]}; it must be finite and not zero" for name in zero]


def _has_one_clock(time: str | None, rate: float | None) -> Iterator[str]:
    if time is not None and rate is not None:
        yield f"rate is {rate}; it must be left out where data.time names a column"


def _has_middle(smooth: int | None) -> Iterator[str]:
    if smooth is not None and smooth % 2 == 0:
        yield f"smooth is {smooth}; it must be an odd number of rows"


def _has_one_filter(smooth: int | None, lowpass: float | None, order: int | None) -> Iterator[str]:
    if smooth is not None and lowpass is not None:
        yield f"lowpass is {lowpass} Hz; it must be left out beside smooth"
    if order is not None and smooth is None and lowpass is None:
        yield f"order is {order}; it must be left out without smooth or lowpass"


def _in_order(first: float | None, last: float | None) -> Iterator[str]:
    if first is not None and last is not None and first >= last:
        yield f"to is {last}; it must be a time after {first} s"


@dataclass(frozen=True)
class DataTable:
    """[data]: the columns of all files, by quantity, and what is done to them.

    columns, time, names, rate, scale, topic: as of `difflie.identify.read_recording`. first, last
    (s): for runs that give none themselves. resample: the step in s. smooth (rows) or lowpass (Hz),
    with their order: as `Recording.smoothed` (2) and `Recording.lowpassed` (4). every (rows) and
    slow (rad/s or m/s), one for all joints or one for each velocity: of the torques, as
    `Recording.thinned` and `Recording.without_slow`.
    """

    columns: dict[Quantity, list[str]] = field(default_factory=dict)
    time: str | None = None
    names: list[str] | None = None
    rate: Annotated[float, number(unit="1/s", positive=True)] | None = None
    topic: str | None = None
    first: Annotated[float, number(unit="s")] | None = field(default=None, metadata={"key": "from"})
    last: Annotated[float, number(unit="s")] | None = field(default=None, metadata={"key": "to"})
    scale: dict[Quantity, float] = field(default_factory=dict)
    resample: Seconds | None = None
    smooth: Annotated[int, number(positive=True)] | None = None
    lowpass: Annotated[float, number(unit="Hz", positive=True)] | None = None
    order: Annotated[int, number(least=1, most=10)] | None = None
    every: Annotated[int, number(least=1)] = 1
    slow: Annotated[float | list[float], number(unit="rad/s or m/s", shape=None, least=0)] = 0.0
    conditions = (
        *(_has_columns, _has_scales, _has_one_clock, _has_middle, _has_one_filter),
        _in_order,
    )


@dataclass(frozen=True)
class RunTable:
    """[[run]]: a file, the part of it from one time to another (s), and what it is used for.

    weight: it counts in a fit like so many equal recordings.
    """

    file: str
    first: Annotated[float, number(unit="s")] | None = field(default=None, metadata={"key": "from"})
    last: Annotated[float, number(unit="s")] | None = field(default=None, metadata={"key": "to"})
    use: Literal["fit", "validate"] = "fit"
    weight: Annotated[float, number(positive=True)] = 1.0


def _is_prior(prior: list[float] | None) -> Iterator[str]:
    if prior is not None and len(prior) != 2:
        yield f"prior is {format_value(prior)}; it must be a mean and a standard deviation"


def _has_one_transform(ratios: bool, scaled: bool) -> Iterator[str]:
    if ratios and scaled:
        yield "ratios is True; it must be left out of what is scaled"


@dataclass(frozen=True)
class ParameterTable:
    """[[parameter]]: see `difflie.parameters.Parameter`, in whose units its numbers are.

    prior: a mean and a standard deviation. scaled: one free factor of the value, see
    `difflie.parameters.Scaled`. ratios: of an inertia of unknown scale, see
    `difflie.parameters.InertiaRatios`. of: "module:function" that writes the number into the
    system, in a module beside the file; path is then its name, and unit its unit.
    """

    path: str | list[str]
    start: float | list[float] | None = None
    lower: float | None = None
    upper: float | None = None
    prior: list[float] | None = None
    tied: bool = False
    fixed: bool = False
    scaled: bool = False
    ratios: bool = False
    of: str | None = None
    unit: str = ""
    conditions = _is_prior, _has_one_transform


def exclusive_tables(
    parameter: list[ParameterTable],
    fit: FitTable,
    validation: ValidationTable,
    arm: ArmTable,
    nearness: NearnessTable,
    rate_coupling: list[RateCouplingTable],
    sensor: list[SensorTable],
) -> Iterator[str]:
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
            yield from (f"run[{i}].{fault}" for fault in _in_order(first, last))


@dataclass(frozen=True)
class Study:
    """A whole identification file; path is where it was read.

    folder: that of the files of runs. allow_code: whether modules that the file names may be
    imported. couplings: its actuators and other forces, by the names of
    their tables, "drive[0]". encoder: the tables [[encoder]], of `difflie.identify.Encoder`, by
    their places likewise.
    """

    path: Path
    folder: Path
    allow_code: bool
    system: SystemTable
    data: DataTable
    run: list[RunTable]
    couplings: dict[str, Force]
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
    path = Path(path)
    folder = path.parent if data is None else data
    tables, faults = read_toml(path), Faults(path, ConfigError, folder)
    check_code(tables, path, allow_code)
    parts = {
        "path": path,
        "folder": folder,
        "allow_code": allow_code,
        "couplings": couplings_of(tables, faults, allow_code),
        "encoder": rows_by_place(tables, "encoder", faults),
    }
    return read_file(Study, tables, faults, ("encoder", *OWN, *TABLES), **parts)
