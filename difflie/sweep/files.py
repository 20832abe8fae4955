"""Sweeps described in TOML files.

    [system]                          [sweep]
    file = "robot.urdf"               samples = 4096           # of what is drawn
                                      sampling = "sobol"       # random, latin, saltelli
    [initial]                         seed = 0
    joints.elbow = 0.3                gradient = true          # derivatives are columns, too
                                      chunk = 4096             # rows at once; else measured
    [simulation]
    dt = 1e-3                         [[vary]]
    duration = 1.0                    path = "link7/mass"      # drawn:
    method = "RKMK4"                  uniform = [0.5, 2.0]     # log_uniform, normal

    [control]                         [[vary]]
    stiffness = [...]                 path = "joint*/damping"  # each with each of what is drawn:
    target = [...]                    grid = [0.1, 1.0, 10]    # log_grid, or values = [...]
                                      relative = true          # factors of the file's numbers
    [[keep]]
    quantity = "Energy"               [[vary]]
    reduction = "Drift"               path = "q0/elbow"        # v0/elbow, dt,
    name = "energy drift"             normal = [0.3, 0.1]      # control/stiffness[2]

    [[keep]]                          # of a class in difflie.quantities, its fields as keys, or
    quantity = "Distance"             # quantity = "mine:function" of (system, q, v, u, t) in
    first = {body = "hand"}           # mine.py beside the file, with its unit
    second = {position = [0.4, 0.0, 0.3]}
    reduction = "Least"               # Final, Peak, Greatest, Mean, RootMeanSquare, Drift, TimeTo

Every row says besides how its motion ended, and when a limit of a joint was exceeded. simulation.
save_every keeps q, v and internal states z of every n-th step of every row, and the motion ends
with the last. Paths of numbers of parts are theirs, such as "rubber/z0[0]", where a state starts.
Instead of a simulation,

    [sweep]
    function = "mine:solution"        # (numbers by name) -> arrays by name

sweeps any function that jax can trace, such as an optimal control; [system] and what belongs to it
are left out then. Modules that the file names are imported with --allow-code only. [system],
[initial], [simulation], [control], [[constraint]] and the tables of forces and actuators are those
of simulations, see difflie/io/config.py. Faults of the keys are reported all at once, in a
`ConfigError` with a line for each.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from .. import quantities as dq
from ..io.config import (
    ControlTable,
    MotionFile,
    SimulationTable,
    SystemTable,
    read_machine_file,
)
from ..io.kinds import STRING
from ..io.loading import control_of, located, start_of
from ..io.modules import function
from ..io.tables import describable, read, rows_of
from ..io.toml import ConfigError, Faults
from ..quantities.reductions import Reduction
from ..system.fields import number
from ..system.validation import format_value, nearest
from .design import Design, Grid
from .motions import Motions
from .samples import (
    Distribution,
    Drawn,
    LatinHypercube,
    LogUniform,
    Normal,
    Random,
    Saltelli,
    Sobol,
    Uniform,
)

_SAMPLES: dict[str, type[Drawn]] = {
    "sobol": Sobol,
    "random": Random,
    "latin": LatinHypercube,
    "saltelli": Saltelli,
}
_DRAWN: dict[str, type[Distribution]] = {
    "uniform": Uniform,
    "log_uniform": LogUniform,
    "normal": Normal,
}
_MOST_ON_AXIS = 10_000_000


def _subclasses(of: type) -> dict[str, type]:
    """The public classes in difflie.quantities that a table can describe, by name."""
    named = ((name, getattr(dq, name)) for name in dir(dq) if not name.startswith("_"))
    return {n: c for n, c in named if isinstance(c, type) and issubclass(c, of) and c is not of}


REDUCTIONS = _subclasses(Reduction)
QUANTITIES = {n: c for n, c in _subclasses(dq.Quantity).items() if describable(c)}


@dataclass(frozen=True)
class SweepTable:
    """[sweep]: how many rows are drawn and how, and what is computed for them.

    samples: of what is drawn, by sampling, from a seed. gradient: whether derivatives of all that
    is kept are columns, too. chunk: rows at once, measured if it is not given. function:
    "module:name" of (numbers by name) -> arrays by name, swept in place of a motion; to import it
    must be allowed, by --allow-code.
    """

    samples: Annotated[int, number(least=1)] = 1024
    sampling: Literal["sobol", "random", "latin", "saltelli"] = "sobol"
    seed: Annotated[int, number(least=0)] = 0
    gradient: bool = False
    chunk: Annotated[int, number(least=1)] | None = None
    function: str | None = None


def _one_way(
    values: Any, grid: Any, log_grid: Any, uniform: Any, log_uniform: Any, normal: Any
) -> Iterator[str]:
    ways = dict(locals())
    given = [name for name, value in ways.items() if value is not None]
    if len(given) != 1:
        said = f"has {' and '.join(given)}" if given else "has none"
        yield f"path {said} of {', '.join(ways)}; give one of them"


def _is_grid(grid: Any, log_grid: Any) -> Iterator[str]:
    for name, given in (("grid", grid), ("log_grid", log_grid)):
        if given is None:
            continue
        low, high, count = given
        if not (low < high and count == int(count) and 2 <= count <= _MOST_ON_AXIS):
            yield f"{name} is {given}; it must be [lower, upper, count], count 2 or more"
        elif name == "log_grid" and low <= 0:
            yield f"log_grid is {given}; its values must be positive"


@dataclass(frozen=True)
class VaryTable:
    """[[vary]]: a number, see `difflie.Motions`, and its values or its distribution.

    One of these: values; grid or log_grid, [first, last, how many]; uniform or log_uniform, [least,
    greatest]; normal, [mean, standard deviation]. In the unit of the number; with relative they are
    factors of what the machine has.
    """

    path: str
    values: Annotated[list[float], number(shape=None)] | None = None
    grid: Annotated[list[float], number(shape=(3,))] | None = None
    log_grid: Annotated[list[float], number(shape=(3,))] | None = None
    uniform: Annotated[list[float], number(shape=(2,))] | None = None
    log_uniform: Annotated[list[float], number(shape=(2,))] | None = None
    normal: Annotated[list[float], number(shape=(2,))] | None = None
    relative: bool = False
    conditions = (_one_way, _is_grid)

    @property
    def points(self) -> list[float] | None:
        """The values on a grid; None for a number that is drawn."""
        if self.values is not None:
            return self.values
        for given, space in ((self.grid, np.linspace), (self.log_grid, np.geomspace)):
            if given is not None:
                return space(given[0], given[1], int(given[2])).tolist()
        return None

    @property
    def distribution(self) -> Distribution:
        """That of a number that is drawn; raises ValueError for bounds the wrong way round."""
        name = next(name for name in _DRAWN if getattr(self, name) is not None)
        return _DRAWN[name](*getattr(self, name))


@dataclass(frozen=True, kw_only=True)
class SweepFile(MotionFile):
    """A whole sweep in a file.

    keep: reductions by name. system: None where a function is swept.
    """

    command = "sweep"
    sweep: SweepTable
    vary: list[VaryTable]
    keep: dict[str, Reduction]
    simulation: SimulationTable
    control: ControlTable
    system: SystemTable | None = None


def read_sweep(path: str | os.PathLike[str], *, allow_code: bool = False) -> SweepFile:
    """The sweep in a TOML file, see `difflie.sweep.files`.

    allow_code: whether Python modules that the file names may be imported, which runs them.
    Raises `ConfigError` for a missing or broken file, one that names modules if that is not
    allowed, and otherwise with all faults at once:
    unknown or missing keys (with the nearest known one) and values of a wrong type or out of range.
    """

    def own(tables: dict[str, Any], faults: Faults) -> dict[str, Any]:
        _check_system(tables, faults)
        return {"keep": _kept(tables, faults, allow_code)}

    return read_machine_file(SweepFile, path, allow_code, own)


def _check_system(tables: dict[str, Any], faults: Faults) -> None:
    """Reports a system beside a function that is swept, and neither of them."""
    swept = tables.get("sweep")
    alone = isinstance(swept, dict) and swept.get("function") is not None
    own = ("system", "initial", "simulation", "control", "keep", "constraint")
    if alone:
        faults.add(
            *(f"[{n}] must be left out: sweep.function is swept" for n in own if n in tables)
        )
    elif "system" not in tables:
        faults.add("there is no table [system]; give it, or sweep.function")


def _kept(tables: dict[str, Any], faults: Faults, allow_code: bool) -> dict[str, Reduction]:
    """The reductions of [[keep]] by name."""
    kept: dict[str, Reduction] = {}
    for i, row in enumerate(rows_of(tables, "keep", faults)):
        where, before = f"keep[{i}]", len(faults)
        words = {}
        for key, default in (("quantity", None), ("reduction", None), ("name", ""), ("unit", "")):
            if key in row:
                words[key] = STRING.read(row[key], f"{where}.{key}", faults)
            elif default is None:
                faults.add(f"{where} lacks the key {key!r}")
            else:
                words[key] = default
        rest = {key: value for key, value in row.items() if key not in words}
        if len(faults) > before:
            continue
        named = words["quantity"]
        quantity = None
        if ":" in named:
            with faults.caught("", ConfigError):
                found = function(named, faults.path, f"{where}.quantity", allow_code)
                quantity = dq.Function(found, words["name"] or named, words["unit"])
            faults.add(*(f"{where} has no key {format_value(key)}" for key in rest))
        elif named in QUANTITIES:
            quantity = read(QUANTITIES[named], rest, where, faults, f"{where}: {named}")
        else:
            near = nearest(named, QUANTITIES) or f"; known are {', '.join(QUANTITIES)}"
            faults.add(f"{where}: there is no quantity {format_value(named)}{near}")
        if words["reduction"] not in REDUCTIONS:
            near = nearest(words["reduction"], REDUCTIONS)
            known = near or f"; known are {', '.join(REDUCTIONS)}"
            faults.add(f"{where}: there is no reduction {format_value(words['reduction'])}{known}")
        if len(faults) > before or quantity is None:
            continue
        reduction = REDUCTIONS[words["reduction"]](quantity)
        name = words["name"] or reduction.name
        if name in kept:
            faults.add(
                f"{where}: two are kept by the name {format_value(name)}; give one another name"
            )
        kept[name] = reduction
    return kept


def design_of(config: SweepFile) -> Design:
    """The design of a file: all of what is drawn with each combination of what is on grids.

    Raises `ConfigError` for a number that is varied twice, and for bounds the wrong way round.
    """
    axes = {t.path: t.points for t in config.vary if t.points is not None}
    drawn = {}
    if len({t.path for t in config.vary}) < len(config.vary):
        paths = [t.path for t in config.vary]
        twice = next(p for p in paths if paths.count(p) > 1)
        raise ConfigError(
            f"{config.path}: vary: {format_value(twice)} is varied twice; leave one out"
        )
    for i, table in enumerate(config.vary):
        if table.points is None:
            with located(f"{config.path}: vary[{i}]: {table.path}: "):
                drawn[table.path] = table.distribution
    table = config.sweep
    with located(f"{config.path}: "):
        parts: list[Design] = [Grid(axes)] if axes else []
        parts += [_SAMPLES[table.sampling](drawn, table.samples, table.seed)] if drawn else []
        return parts[0] if len(parts) == 1 else parts[0] * parts[1]


def function_of(config: SweepFile) -> Any:
    """What a file sweeps: motions of its system, or its function.

    The start is assembled where the machine has constraints. Raises `ConfigError` for parts that do
    not suit the machine.
    """
    named = config.sweep.function
    if named is not None:
        return function(named, config.path, "sweep.function", config.allow_code)
    table = config.simulation
    system, q0, v0, _, method = start_of(config, "simulation.method", table.method)
    return Motions(
        system,
        config.keep,
        q0,
        v0,
        dt=table.dt,
        steps=table.given_steps,
        duration=table.duration,
        method=method,
        control=control_of(config.control, system, config.path, config.initial),
        relative=tuple(t.path for t in config.vary if t.relative),
        save_every=table.save_every if "save_every" in config.text.get("simulation", {}) else 0,
    )
