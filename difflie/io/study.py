"""Identifications described in TOML files.

    [system]                              [data]
    file = "pendulum.urdf"                columns.q = ["pos1", "pos2"]   # in the system's order
    gravity = [0.0, 0.0, -9.81]           columns.tau = ["tau1", "tau2"]
                                          time = "time"                  # s
    [[run]]                               scale.q = 0.0174533            # to SI; 1 if left out
    file = "swing_1.csv"                  resample = 0.002               # s, a uniform grid
    from = 0.0                            smooth = 41                    # rows: Savitzky-Golay,
    to = 3.0                              order = 2                      # gives v and a
    weight = 2.0                          # counts as two of it

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

[[drive]] has the numbers of difflie.Drive; without `delay` there is none to be found. Where there
are actuators columns.tau are their commands, in their order and units. Other actuators and forces
have tables as in difflie/io/couplings.py. Files without a header or times, and bodies that fly
until they hit something:

    [data]                                [[parameter]]
    names = ["x", "y", "z", ...]          path = "body/inertia"
    rate = 148.0                          ratios = true                # its scale stays
    columns.q = ["w", "i", "j", "k", "x", "y", "z"]                    # of a free joint
    jump.z = 100.0                        # per s^2: of a second derivative, which ends the run
    from = 0.02                           # s: of every run that gives no other

    [validation]
    observe = 10                          # rows of a window, which find the state it starts at

Files of runs are relative to the folder given with --data, or to that of the configuration. The
first row of a window is where its motion starts, or the first `observe` rows find the state there
and the others are predicted; measured torques are held. Without columns.tau they are 0; without
columns.v motions start at differences of q, for fit.states and validation.observe to correct.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..system.validation import nearest, shown
from .config import SystemTable
from .couplings import OWN, TABLES, Force, couplings_of
from .tables import ConfigError, instances, read_tables, rows_of

QUANTITIES = ("q", "v", "a", "tau")
ERRORS = ("torque", "motion", "both")
LOSSES = ("squares", "huber", "cauchy")
USES = ("fit", "validate")
_COARSEST = 1e-2
_SUBSTEPS = 1000


@dataclass(frozen=True)
class DataTable:
    """[data]: the columns of all files; smooth and order in rows, see `Recording.smoothed`.

    names: of the columns of files without a header. rate: rows in a second of files without times.
    jump: by names in columns.q, see `Recording.before_jump`. first, last: of runs that
    give no other.
    """

    columns: dict[str, Any]
    time: str | None = None
    names: list[str] | None = None
    rate: float | None = None
    jump: dict[str, float] = field(default_factory=dict)
    first: float | None = field(default=None, metadata={"key": "from"})
    last: float | None = field(default=None, metadata={"key": "to"})
    scale: dict[str, float] = field(default_factory=dict)
    resample: float | None = None
    smooth: int | None = None
    order: int = 2


@dataclass(frozen=True)
class RunTable:
    """[[run]]: a file, the part of it from one time to another (s), and what it is used for.

    weight: as how many of it a fit counts it.
    """

    file: str
    first: float | None = field(default=None, metadata={"key": "from"})
    last: float | None = field(default=None, metadata={"key": "to"})
    use: str = "fit"
    weight: float = 1.0


@dataclass(frozen=True)
class ParameterTable:
    """[[parameter]]: see `difflie.parameters.Parameter`; prior is a mean and a deviation.

    scaled: one free factor of the value, see `difflie.parameters.Scaled`. ratios: of an inertia of
    unknown scale, see `difflie.parameters.InertiaRatios`.
    """

    path: str
    start: float | list[float] | None = None
    lower: float | None = None
    upper: float | None = None
    prior: list[float] | None = None
    tied: bool = False
    fixed: bool = False
    scaled: bool = False
    ratios: bool = False


@dataclass(frozen=True)
class FitTable:
    """[fit]: the error, its standard deviations, and when to stop.

    leave_out: whether each run in turn is judged by a fit to the others. unactuated: the deviation
    of the torques (N m or N) where no actuator stands; without it these are left out.
    """

    error: str = "torque"
    torque: float | list[float] = 1.0
    unactuated: float | list[float] | None = None
    position: float | list[float] = 1.0
    velocity: float | list[float] | None = None
    window: float | None = None
    states: bool = False
    substeps: int = 1
    loss: str = "squares"
    limit: float = 2.0
    steps: int = 100
    tolerance: float = 1e-8
    leave_out: bool = False


@dataclass(frozen=True)
class ValidationTable:
    """[validation]: windows (s) of the motions that are simulated with measured torques.

    observe: rows of a window, two or more, that find its start and are not judged; without it the
    motion starts at the first row.
    """

    window: float = 0.5
    observe: int | None = None
    substeps: int = 1


@dataclass(frozen=True)
class Study:
    """A whole file; path is where it was read.

    couplings: its actuators and other forces, by the names of their tables, "drive[0]". encoder:
    the tables [[encoder]], of `difflie.identify.Encoder`.
    """

    path: Path
    system: SystemTable
    data: DataTable
    run: list[RunTable]
    parameter: list[ParameterTable]
    couplings: dict[str, Force]
    encoder: list[dict[str, Any]]
    fit: FitTable
    validation: ValidationTable


def read_study(path: str | os.PathLike[str]) -> Study:
    """The identification in a TOML file.

    Raises `ConfigError` for a missing or broken file, an unknown or missing key (with the nearest
    known one) and a value of a wrong type or out of range.
    """
    path = Path(path)
    tables = read_tables(path)
    single: dict[str, type] = {
        "system": SystemTable,
        "data": DataTable,
        "fit": FitTable,
        "validation": ValidationTable,
    }
    repeated: dict[str, type] = {
        "run": RunTable,
        "parameter": ParameterTable,
    }
    couplings = couplings_of(tables, path)
    encoder = rows_of(tables.pop("encoder", []), "encoder", path)
    others = "encoder", *OWN, *TABLES
    parts = instances(path, tables, single, repeated, others=others)
    study = Study(path=path, couplings=couplings, encoder=encoder, **parts)
    _check(study)
    return study


def _check(study: Study) -> None:
    def refuse(key: str, value: Any, needed: str) -> None:
        raise ConfigError(f"{study.path}: {key} is {shown(value)}; it must be {needed}")

    def one_of(key: str, value: str, known: tuple[str, ...]) -> None:
        if value not in known:
            refuse(key, value, f"one of {', '.join(map(repr, known))}{nearest(value, known)}")

    study.system.check(study.path)
    for quantity, names in study.data.columns.items():
        one_of("a key of data.columns", quantity, QUANTITIES)
        if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
            refuse(f"data.columns.{quantity}", names, "a list of texts")
        if not names:
            refuse(f"data.columns.{quantity}", names, "the names of one column or more")
    if "q" not in study.data.columns:
        refuse("data.columns", study.data.columns, "a table with the columns of q")
    for quantity, factor in study.data.scale.items():
        one_of("a key of data.scale", quantity, QUANTITIES)
        if not math.isfinite(factor) or factor == 0:
            refuse(f"data.scale.{quantity}", factor, "finite and not zero")
    if study.data.time is not None and study.data.rate is not None:
        refuse("data.rate", study.data.rate, "left out where data.time names a column")
    for name in study.data.jump:
        one_of("a key of data.jump", name, tuple(study.data.columns.get("q", ())))
    one_of("fit.error", study.fit.error, ERRORS)
    one_of("fit.loss", study.fit.loss, LOSSES)
    for i, run in enumerate(study.run):
        one_of(f"run[{i}].use", run.use, USES)
        if not 0 < run.weight < float("inf"):
            refuse(f"run[{i}].weight", run.weight, "positive and finite")
    for name, table in (("data", study.data), *((f"run[{i}]", r) for i, r in enumerate(study.run))):
        first = study.data.first if table.first is None else table.first
        last = study.data.last if table.last is None else table.last
        if first is not None and math.isnan(first):
            refuse(f"{name}.from", first, "a time")
        if last is not None and not last > (-math.inf if first is None else first):
            after = "" if first is None else f" after {first} s"
            refuse(f"{name}.to", last, f"a time{after}")
    for i, parameter in enumerate(study.parameter):
        if parameter.prior is not None and len(parameter.prior) != 2:
            refuse(f"parameter[{i}].prior", parameter.prior, "a mean and a standard deviation")
        if parameter.scaled and parameter.ratios:
            refuse(f"parameter[{i}].ratios", True, "left out of what is scaled")
    positive = {
        "data.rate": study.data.rate,
        **{f"data.jump.{name}": limit for name, limit in study.data.jump.items()},
        "data.resample": study.data.resample,
        "data.smooth": study.data.smooth,
        "fit.window": study.fit.window,
        "fit.limit": study.fit.limit,
        "fit.steps": study.fit.steps,
        "fit.substeps": study.fit.substeps,
        "validation.window": study.validation.window,
        "validation.substeps": study.validation.substeps,
    }
    for key, value in positive.items():
        if value is not None and not 0 < value < float("inf"):
            refuse(key, value, "positive and finite")
    for name in ("torque", "unactuated", "position", "velocity"):
        given = getattr(study.fit, name)
        each = given if isinstance(given, list) else [1.0 if given is None else given]
        if not each or not all(x > 0 for x in each):
            refuse(f"fit.{name}", given, "one positive deviation, or one for each velocity")
    if not 0 < study.fit.tolerance <= _COARSEST:
        refuse("fit.tolerance", study.fit.tolerance, f"positive and at most {_COARSEST}")
    for key in ("fit", "validation"):
        if getattr(study, key).substeps > _SUBSTEPS:
            refuse(f"{key}.substeps", getattr(study, key).substeps, f"at most {_SUBSTEPS}")
    if study.validation.observe is not None and study.validation.observe < 2:
        refuse("validation.observe", study.validation.observe, "two rows or more")
    if study.data.smooth is not None and study.data.smooth % 2 == 0:
        refuse("data.smooth", study.data.smooth, "an odd number of rows")
    if study.fit.leave_out and sum(run.use == "fit" for run in study.run) < 2:
        refuse("fit.leave_out", True, 'left out, with less than two runs of use = "fit"')
    for kind, given in (("run", study.run), ("parameter", study.parameter)):
        if not given:
            raise ConfigError(f"{study.path}: there is no [[{kind}]]; give one or more")
